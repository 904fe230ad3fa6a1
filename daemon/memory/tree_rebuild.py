"""Rebuilds the tree, by operations that are checked one by one against its limits.

No operation of a model loses a memory: the memories of a category move with it, and a category with
memories is never removed. An operation that would break a limit, or is invalid after the operations
before it, is refused; others are not affected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ..errors import Conflict, InvalidInput, ThermoclineError
from .checks import check_category
from .tree import remove
from .tree_nodes import (
    ROOT,
    Node,
    Tree,
    TreeLimits,
    branch,
    children,
    grow,
    joined,
    name_bytes,
    one_line,
    title,
)

# The number that a model is asked for, and that a person can review.
MOST_OPERATIONS: Final = 10

Kind: TypeAlias = Literal["add", "remove", "merge", "rename", "describe", "move"]


class TreeChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of the tree."""

    # `add` creates `path` and its missing parents; `remove` removes it and everything below;
    # `merge` merges it and everything below into the existing `new_path`; `rename` renames it to
    # `new_path`, which must not exist; `describe` sets its description to `summary`; `move` moves
    # the memories `ids` to `new_path`, creating it if necessary.
    type: Kind
    path: str
    new_path: str = ""
    summary: str = ""  # the description of the created or described category
    reason: str = ""  # for people
    ids: tuple[str, ...] = ()


class RefusedChange(msgspec.Struct, frozen=True):
    """An operation that was not done, and the reason."""

    operation: TreeChange
    why: str


class Placed(msgspec.Struct, frozen=True):
    """Where a memory is filed."""

    category: str
    archived: bool = False


class Relabel(msgspec.Struct, frozen=True, tag=True):
    """Every memory of category `old` is filed in `new`."""

    old: str
    new: str


class Move(msgspec.Struct, frozen=True, tag=True):
    """Some memories of category `old` are filed in `new`."""

    ids: tuple[str, ...]
    old: str
    new: str


class Rebuilt(msgspec.Struct, frozen=True):
    """The tree after some operations."""

    tree: dict[str, Node]
    steps: tuple[Relabel | Move, ...]  # the moves of memories, to be done in order
    # The operations.
    done: tuple[TreeChange, ...]
    refused: tuple[RefusedChange, ...]


def apply(
    tree: Tree,
    operations: Sequence[TreeChange],
    limits: TreeLimits,
    now: float,
    placed: Mapping[str, Placed] | None = None,
) -> Rebuilt:
    """Apply the operations in order, and refuse invalid ones.

    A tree within its limits stays within them. Operations after the first `MOST_OPERATIONS` are
    refused. Created categories count as used `now`; `placed` are the categories of the memories
    that operations move.
    """
    work = _Work(dict(tree), limits, now, dict(placed or {}))
    for number, operation in enumerate(operations):
        try:
            if number >= MOST_OPERATIONS:
                raise Conflict(f"at most {MOST_OPERATIONS} operations are done at once")
            work.do(operation)
        except ThermoclineError as error:
            work.refused.append(RefusedChange(operation, error.message))
    return Rebuilt(work.nodes, tuple(work.steps), tuple(work.done), tuple(work.refused))


def fits(nodes: Tree, limits: TreeLimits) -> str | None:
    """The limit that a tree breaks, in words; None if it breaks none."""
    if len(nodes) + 1 > limits.max_nodes:
        return f"the tree would have {len(nodes) + 1} nodes, and may have {limits.max_nodes}"
    for path, below in children(nodes).items():
        if len(below) > limits.max_children:
            return f"'{path}' would have {len(below)} children, and may have {limits.max_children}"
    taken = sum(map(name_bytes, nodes))
    if taken > limits.max_size_bytes:
        return f"the tree's names would take {taken} bytes, and may take {limits.max_size_bytes}"
    return None


class _Work(msgspec.Struct):
    """The tree while operations are applied. Each operation leaves it consistent."""

    nodes: dict[str, Node]
    limits: TreeLimits
    now: float
    placed: dict[str, Placed]
    steps: list[Relabel | Move] = []
    done: list[TreeChange] = []
    refused: list[RefusedChange] = []

    def do(self, operation: TreeChange) -> None:
        """Apply one operation; a failure changes nothing."""
        path = self._existing(operation.path) if operation.type != "add" else ""
        before = dict(self.nodes)
        steps: list[Relabel | Move] = []
        try:
            if operation.type == "add":
                self._make(self._path(operation.path), operation.summary, fresh=True)
            elif operation.type == "remove":
                self.nodes = remove(self.nodes, path)
            elif operation.type == "describe":
                if path == ROOT or not one_line(operation.summary):
                    raise InvalidInput(f"cannot use this description of '{path}'")
                grow(self.nodes, path, operation.summary, self.now)
            elif operation.type == "move":
                steps = [self._move(path, operation)]
            else:
                steps = self._relocate(path, operation)
            if self.nodes != before and (fault := fits(self.nodes, self.limits)):
                raise Conflict(fault)
        except ThermoclineError:
            self.nodes = before
            raise
        self.steps += steps
        self._follow(steps)
        self.done.append(operation)

    def _path(self, path: str) -> str:
        return check_category(path, self.limits.max_depth, field="path")

    def _existing(self, path: str) -> str:
        path = self._path(path)
        if path not in self.nodes and path != ROOT:
            raise Conflict(f"the tree has no category '{path}'")
        return path

    def _make(self, path: str, summary: str, *, fresh: bool = False) -> None:
        if path == ROOT or (fresh and path in self.nodes):
            raise Conflict(f"the category '{path}' is already there")
        grow(self.nodes, path, summary, self.now)

    def _relocate(self, path: str, operation: TreeChange) -> list[Relabel | Move]:
        """Move a branch; categories that exist in both places are merged."""
        target = self._path(operation.new_path)
        if path in {ROOT, target} or target.startswith(f"{path}/"):
            raise Conflict(f"cannot move '{path}' to '{target}'")
        if operation.type == "merge":
            self._existing(target)
        elif target == ROOT or target in self.nodes:
            raise Conflict(f"the category '{target}' is already there")
        steps: list[Relabel | Move] = []
        for item in sorted(branch(self.nodes, path)):
            rest = item.removeprefix(path)
            # A child of the root has its name alone.
            new = (rest.lstrip("/") or ROOT) if target == ROOT else f"{target}{rest}"
            new = self._path(new)
            node = self.nodes.pop(item)
            if new != ROOT:
                fresh = new not in self.nodes
                self._make(new, node.desc if fresh and node.desc != title(item) else "")
                self.nodes[new] = joined(self.nodes[new], node)
                if fresh:
                    self.nodes[new] = replace(self.nodes[new], last_access=node.last_access)
            steps.append(Relabel(item, new))
        if operation.type == "rename":
            grow(self.nodes, target, operation.summary, self.now)
        return steps

    def _move(self, path: str, operation: TreeChange) -> Move:
        target = self._path(operation.new_path)
        ids = tuple(
            key
            for key in dict.fromkeys(operation.ids)
            if key in self.placed and self.placed[key].category == path
        )
        if not ids or target in {path, ROOT}:
            raise Conflict(f"none of these memories can move from '{path}' to '{target}'")
        self._make(target, operation.summary if target not in self.nodes else "")
        cold = sum(self.placed[key].archived for key in ids)
        moved = Node(desc="", warm_count=len(ids) - cold, cold_count=cold)
        self.nodes[target] = joined(self.nodes[target], moved)
        if path != ROOT:
            left = self.nodes[path]
            self.nodes[path] = replace(
                left,
                warm_count=max(0, left.warm_count - moved.warm_count),
                cold_count=max(0, left.cold_count - moved.cold_count),
            )
        return Move(ids, path, target)

    def _follow(self, steps: Sequence[Relabel | Move]) -> None:
        for step in steps:
            if isinstance(step, Move):
                keys: Sequence[str] = step.ids
            else:
                keys = [key for key, at in self.placed.items() if at.category == step.old]
            for key in keys:
                self.placed[key] = Placed(step.new, self.placed[key].archived)
