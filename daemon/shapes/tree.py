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
    """A category to make; its parents come with it."""

    path: CategoryPath
    desc: str = ""


class CategoryAdded(Struct):
    """Whether the category is there now; `made` tells whether it is new."""

    path: str
    added: bool
    made: bool


class CategoryQuery(Struct, forbid_unknown_fields=True):
    """The category that is meant."""

    path: CategoryPath


class CategoryRemoved(Struct):
    """The category is gone, with those below it."""

    path: str
    removed: bool


class RenameBody(Struct, forbid_unknown_fields=True):
    """The category that is meant, and the path that it gets; no category has that yet."""

    path: CategoryPath
    to: CategoryPath


class CategoryRenamed(Struct):
    """The category and all below it are called otherwise; `memories` counts those refiled."""

    path: str
    to: str
    memories: int


class TreePruned(Struct):
    """How many idle categories were removed, and which."""

    pruned: int
    paths: list[str]


class RebuildUndone(Struct):
    """What was taken back: when it had been done, and the changes.

    `memories` counts those that are filed as before; what was filed elsewhere since is not.
    """

    undone: bool
    at: float
    memories: int
    changes: list[str]
