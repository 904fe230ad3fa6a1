"""The category tree."""

from __future__ import annotations

from msgspec import Struct

from .common import CategoryPath, Json


class TreeView(Struct):
    """The tree in EvoClaw's shape; `nodes` counts the root, `size_bytes` is of its prompt.

    No category has more than `max_children` below it.
    """

    tree: dict[str, Json]
    nodes: int
    max_nodes: int
    size_bytes: int
    max_size_bytes: int
    depth: int
    max_depth: int
    max_children: int


class CategoryBody(Struct, forbid_unknown_fields=True):
    """A category to add, with its missing parents."""

    path: CategoryPath
    desc: str = ""


class CategoryAdded(Struct):
    """Whether the category exists now; `made` tells whether it is new."""

    path: str
    added: bool
    made: bool


class CategoryQuery(Struct, forbid_unknown_fields=True):
    """The category."""

    path: CategoryPath


class CategoryRemoved(Struct):
    """The category is removed, with those below it."""

    path: str
    removed: bool


class RenameBody(Struct, forbid_unknown_fields=True):
    """The category, and its new path, which must not exist yet."""

    path: CategoryPath
    to: CategoryPath


class CategoryRenamed(Struct):
    """The category and all below it are renamed; `memories` counts those refiled."""

    path: str
    to: str
    memories: int


class TreePruned(Struct):
    """The removed idle categories, and their number."""

    pruned: int
    paths: list[str]


class RebuildUndone(Struct):
    """The undone rebuild: its time, and its changes.

    `memories` counts those filed as before; memories refiled since then stay.
    """

    undone: bool
    at: float
    memories: int
    changes: list[str]
