"""The nodes of the category tree, its limits, and functions on paths."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

# The name of the root, which is not in a `Tree`.
ROOT: Final = "root"
DESC_CHARS: Final = 100


class Node(msgspec.Struct, frozen=True):
    """One category.

    Attributes:
        desc: one line of at most 100 characters; see `one_line`.
        warm_count, cold_count: the memories filed exactly here, not below.
        last_access: seconds since the epoch, 0 for never.
    """

    desc: str
    warm_count: int = 0
    cold_count: int = 0
    last_access: float = 0.0


# Path -> node, without the root; always contains all parents of a node.
Tree: TypeAlias = Mapping[str, Node]


class TreeLimits(msgspec.Struct, frozen=True):
    """The limits of a tree, and how long an empty branch stays; section `tree`.

    `max_nodes` counts the root; the size is that of `tree_text.prompt`.
    """

    max_nodes: Annotated[int, Meta(ge=1, le=10_000)] = 50
    max_depth: Annotated[int, Meta(ge=1, le=16)] = 4
    max_size_bytes: Annotated[int, Meta(ge=256, le=1_048_576)] = 2_048
    max_children: Annotated[int, Meta(ge=1, le=10_000)] = 10
    prune_idle_days: Annotated[float, Meta(ge=0, le=36_500)] = 60.0


def title(path: str) -> str:
    """The default description of a category: its last level as a title."""
    return one_line(path.rpartition("/")[2].replace("_", " ").title())


def one_line(text: str) -> str:
    """`text` as a description: one line of printable characters, at most 100 of them."""
    words = " ".join(text[: 8 * DESC_CHARS].split())
    printable = (char for char in words if unicodedata.category(char) not in {"Cc", "Cs"})
    return "".join(printable)[:DESC_CHARS].strip()


def parent(path: str) -> str:
    """The path above, `root` for a top-level category."""
    return path.rpartition("/")[0] or ROOT


def ancestors(path: str) -> tuple[str, ...]:
    """The paths above `path` from the top down, neither the root nor `path` itself among them."""
    segments = path.split("/")
    return tuple("/".join(segments[:length]) for length in range(1, len(segments)))


def is_within(path: str, branch: str) -> bool:
    """Whether `path` is `branch` or lies below it."""
    return path == branch or path.startswith(f"{branch}/")


def level(path: str) -> int:
    """The number of levels of `path` below the root."""
    return path.count("/") + 1


def depth(tree: Tree) -> int:
    """The number of levels of the tree below the root; 0 if it is empty."""
    return max(map(level, tree), default=0)


def joined(node: Node, other: Node) -> Node:
    """`node` with the memories of `other`, and the later access of both."""
    return msgspec.structs.replace(
        node,
        warm_count=node.warm_count + other.warm_count,
        cold_count=node.cold_count + other.cold_count,
        last_access=max(node.last_access, other.last_access),
    )


def grow(nodes: dict[str, Node], path: str, desc: str, now: float) -> None:
    """Add `path` and its missing parents, used `now`; a non-blank `desc` replaces the old one."""
    for step in (*ancestors(path), path):
        nodes.setdefault(step, Node(desc=title(step), last_access=now))
    if described := one_line(desc):
        nodes[path] = msgspec.structs.replace(nodes[path], desc=described)


def branch(paths: Iterable[str], path: str) -> list[str]:
    """`path` and everything below it."""
    return [one for one in paths if is_within(one, path)]


def children(paths: Iterable[str]) -> dict[str, list[str]]:
    """The sorted children of every path that has any; the top level is under `root`."""
    found: dict[str, list[str]] = {}
    for path in sorted(paths):
        found.setdefault(parent(path), []).append(path)
    return found


def with_parents(tree: Tree) -> dict[str, Node]:
    """A copy of `tree` with all missing parents."""
    complete = dict(tree)
    for path in tree:
        above = parent(path)
        while above != ROOT and above not in complete:
            complete[above] = Node(desc=title(above))
            above = parent(above)
    return complete
