"""The category tree: the map that a model reads to find where memories are filed.

The functions return new trees and leave theirs as they are. `tree_nodes` has the nodes, `tree_fit`
keeps the limits, `tree_text` writes the tree; their public names are given on here.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ..errors import Conflict, InvalidInput, NotFound
from .checks import check_category
from .scoring import DAY
from .tree_fit import Fitted, fit, usage
from .tree_nodes import (
    ROOT,
    Node,
    Tree,
    TreeLimits,
    ancestors,
    children,
    depth,
    level,
    one_line,
    parent,
    title,
    with_parents,
)
from .tree_text import document, prompt, show, size

__all__ = [
    "IDLE_DAYS",
    "ROOT",
    "Fitted",
    "Node",
    "Tree",
    "TreeLimits",
    "add",
    "ancestors",
    "children",
    "depth",
    "document",
    "fit",
    "level",
    "one_line",
    "parent",
    "prompt",
    "prune",
    "remove",
    "show",
    "size",
    "title",
    "usage",
    "with_parents",
]

IDLE_DAYS: Final = 60.0


def add(tree: Tree, path: str, desc: str, now: float, limits: TreeLimits) -> dict[str, Node]:
    """The tree with the category `path` and whatever parents it lacked.

    A path that exists is a success; a `desc` that is not blank then replaces the old one. New
    nodes count as used `now`, so that the next pruning leaves them alone. The tree may be
    beyond its other limits afterwards: `fit` it, with `keep=path`.

    Raises:
        InvalidInput: `path` is no category, or deeper than the limit.
    """
    path = check_category(path, limits.max_depth, field="path")
    grown = with_parents(tree)
    if path == ROOT:
        return grown
    for step in (*ancestors(path), path):
        grown.setdefault(step, Node(desc=title(step), last_access=now))
    if described := one_line(desc):
        grown[path] = msgspec.structs.replace(grown[path], desc=described)
    return grown


def remove(tree: Tree, path: str) -> dict[str, Node]:
    """The tree without `path` and everything below it.

    Raises:
        InvalidInput: `path` is the root.
        NotFound: there is no such category.
        Conflict: it, or a category below it, has memories.
    """
    path = path.strip().strip("/")
    if path in {ROOT, ""}:
        raise InvalidInput("cannot remove the root of the tree", field="path")
    if path not in tree:
        raise NotFound(f"the tree has no category '{path}'", field="path")
    branch = {below for below in tree if below == path or below.startswith(f"{path}/")}
    filed = sum(tree[below].warm_count + tree[below].cold_count for below in branch)
    if filed:
        raise Conflict(
            f"cannot remove '{path}': {filed} memories are filed in it or below it",
            field="path",
            hint="file them elsewhere or forget them first",
        )
    return {below: node for below, node in tree.items() if below not in branch}


def prune(
    tree: Tree, now: float, idle_days: float = IDLE_DAYS
) -> tuple[dict[str, Node], tuple[str, ...]]:
    """The tree without its idle branches, and the paths that are gone, the deepest first.

    Leaves go first, and their parents once they are leaves: a category goes when it has no
    memories, nothing below it is left, and it was never used or not for `idle_days`.
    """
    kept = dict(tree)
    sheltered: set[str] = set()
    removed: list[str] = []
    for path in sorted(tree, key=lambda path: (-level(path), path)):
        if path not in sheltered and _is_idle(tree[path], now, idle_days):
            del kept[path]
            removed.append(path)
        else:
            sheltered.add(parent(path))
    return kept, tuple(removed)


def _is_idle(node: Node, now: float, idle_days: float) -> bool:
    if node.warm_count or node.cold_count:
        return False
    return node.last_access <= 0 or now - node.last_access > idle_days * DAY
