"""The category tree: a map of where memories are filed.

The functions return new trees.
"""

from __future__ import annotations

import heapq
import math
from typing import Final, TypeAlias

import msgspec

from ..errors import Conflict, InvalidInput, NotFound
from .checks import check_category
from .scoring import DAY
from .tree_nodes import (
    ROOT,
    Node,
    Tree,
    TreeLimits,
    ancestors,
    branch,
    children,
    grow,
    joined,
    level,
    name_bytes,
    parent,
    size,
    with_parents,
)

COLD_SHARE: Final = 0.1
FADING_DAYS: Final = 7.0
# The categories that a full tree names as its least used.
_NAMED: Final = 3

# The order of merging: the lowest is merged first.
_Rank: TypeAlias = tuple[bool, float, float, str]


def add(tree: Tree, path: str, desc: str, now: float, limits: TreeLimits) -> dict[str, Node]:
    """The tree with the category `path` and its missing parents; `Conflict` if the tree is full.

    If the path exists, a non-blank `desc` replaces the old one. New nodes count as used `now`, so
    that the next pruning keeps them.
    """
    path = check_category(path, limits.max_depth, field="path")
    grown = with_parents(tree)
    if path != ROOT:
        grow(grown, path, desc, now)
    if path in grown and path not in tree and fit(grown, limits, now).merges:
        raise _full(tree, path, now, limits)
    return grown


def _full(tree: Tree, path: str, now: float, limits: TreeLimits) -> Conflict:
    below = children(tree)
    above = parent(next(step for step in (*ancestors(path), path) if step not in tree))
    if len(below.get(above, ())) >= limits.max_children:
        state = f"'{above}' has {len(below[above])} of {limits.max_children} categories below it"
        candidates = below[above]
    else:
        state = f"the tree has {len(tree) + 1} of {limits.max_nodes} categories"
        if len(tree) + 1 < limits.max_nodes:
            state += f" and {size(tree, limits):,} of {limits.max_size_bytes:,} bytes"
        candidates = [place for place in tree if place not in below]
    least = sorted(candidates, key=lambda place: (usage(tree[place], now), place))[:_NAMED]
    return Conflict(
        f"cannot add '{path}': {state}",
        field="path",
        hint=f"remove or rename one first; the least used: {', '.join(least)}",
    )


def remove(tree: Tree, path: str) -> dict[str, Node]:
    """The tree without `path` and everything below it; `Conflict` if memories are filed there."""
    path = path.strip().strip("/")
    if path in {ROOT, ""}:
        raise InvalidInput("cannot remove the root of the tree", field="path")
    if path not in tree:
        raise NotFound(f"the tree has no category '{path}'", field="path")
    gone = set(branch(tree, path))
    filed = sum(tree[below].warm_count + tree[below].cold_count for below in gone)
    if filed:
        raise Conflict(
            f"cannot remove '{path}': {filed} memories are filed in it or below it",
            field="path",
            hint="file them elsewhere or forget them first",
        )
    return {below: node for below, node in tree.items() if below not in gone}


def prune(tree: Tree, now: float, idle_days: float) -> tuple[dict[str, Node], tuple[str, ...]]:
    """The tree without its idle branches, and the removed paths, deepest first.

    A category is removed if it has no memories, all categories below it are removed, and it was
    not used for `idle_days` or never.
    """
    rest = dict(tree)
    sheltered: set[str] = set()
    removed: list[str] = []
    for path in sorted(tree, key=lambda path: (-level(path), path)):
        node = tree[path]
        is_idle = node.last_access <= 0 or now - node.last_access > idle_days * DAY
        if path not in sheltered and is_idle and not (node.warm_count or node.cold_count):
            del rest[path]
            removed.append(path)
        else:
            sheltered.add(parent(path))
    return rest, tuple(removed)


class FittedTree(msgspec.Struct, frozen=True):
    """A tree within its limits."""

    tree: Tree
    # (from, to) for every removed category. No `to` is itself removed, so the memories can be
    # relabelled in any order.
    merges: tuple[tuple[str, str], ...]


def usage(node: Node, now: float) -> float:
    """(warm + 0.1 cold) × exp(−idle_days / 7): EvoClaw's measure of what a node is good for."""
    idle_days = max(0.0, now - node.last_access) / DAY
    return (node.warm_count + COLD_SHARE * node.cold_count) * math.exp(-idle_days / FADING_DAYS)


def fit(tree: Tree, limits: TreeLimits, now: float, keep: str | None = None) -> FittedTree:
    """The tree with the least used categories merged into their parents until it is in limits.

    The parent gets the counts and the last access of a merged category; memories of a top-level
    category go to the root. Merged are first categories that are too deep, then the least used
    branches of parents with too many children, then the least used leaves until number and size are
    in limits. `keep`, which must not be too deep, and its parents are merged last.

    The size counts only names, since `prompt` can shorten descriptions. Takes O(n log n) time.
    """
    work = _Work(tree, now, keep)
    work.cut_depth(limits.max_depth)
    work.cut_width(limits.max_children)
    work.cut_leaves(limits.max_nodes, limits.max_size_bytes)
    return work.result()


class _Work:
    """A tree while it is being merged; keeps the size of its names current."""

    def __init__(self, tree: Tree, now: float, keep: str | None) -> None:
        self.nodes = with_parents(tree)
        self.children = {path: set(below) for path, below in children(self.nodes).items()}
        self.now = now
        self.protected = frozenset((*ancestors(keep), keep)) if keep else frozenset[str]()
        self.merges: dict[str, str] = {}
        self.size = sum(map(name_bytes, self.nodes))

    def cut_depth(self, max_depth: int) -> None:
        deep = [path for path in self.nodes if level(path) > max_depth]
        for path in sorted(deep, key=lambda path: (-level(path), path)):
            self.merge(path)

    def cut_width(self, max_children: int) -> None:
        wide = [path for path, below in self.children.items() if len(below) > max_children]
        for path in sorted(wide, key=lambda path: (path != ROOT, level(path), path)):
            below = self.children.get(path, set())
            surplus = max(0, len(below) - max_children)
            ranked = sorted((self.branch_rank(child), child) for child in below)
            for _, child in ranked[:surplus]:
                for member in reversed(self.branch(child)):
                    self.merge(member)

    def cut_leaves(self, max_nodes: int, max_size: int) -> None:
        heap = [self.rank(path) for path in self.nodes if path not in self.children]
        heapq.heapify(heap)
        while heap and (len(self.nodes) + 1 > max_nodes or self.size > max_size):
            path = heapq.heappop(heap)[-1]
            above = self.merge(path)
            if above != ROOT and above not in self.children:
                heapq.heappush(heap, self.rank(above))

    def rank(self, path: str) -> _Rank:
        node = self.nodes[path]
        return path in self.protected, usage(node, self.now), node.last_access, path

    def branch_rank(self, path: str) -> _Rank:
        ranks = [self.rank(below) for below in self.branch(path)]
        return (
            path in self.protected,
            math.fsum(rank[1] for rank in ranks),
            max(rank[2] for rank in ranks),
            path,
        )

    def branch(self, path: str) -> list[str]:
        """`path` and everything below it, parents before their children."""
        result = [path]
        for member in result:
            result.extend(sorted(self.children.get(member, ())))
        return result

    def merge(self, path: str) -> str:
        """Merge a leaf into its parent, and return the parent."""
        above = parent(path)
        self.size -= name_bytes(path)
        node = self.nodes.pop(path)
        siblings = self.children[above]
        siblings.remove(path)
        if not siblings:
            del self.children[above]
        if above != ROOT:
            self.nodes[above] = joined(self.nodes[above], node)
        self.merges[path] = above
        return above

    def result(self) -> FittedTree:
        # A later merge may be the target of an earlier one, so they are resolved backwards.
        ends: dict[str, str] = {}
        for path, above in reversed(self.merges.items()):
            ends[path] = ends.get(above, above)
        return FittedTree(tree=self.nodes, merges=tuple((path, ends[path]) for path in self.merges))
