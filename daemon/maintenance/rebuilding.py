"""Rebuilds an agent's tree, as one change that can be undone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from ..errors import NotFound
from ..memory import tree_rebuild
from ..memory.tree_nodes import ROOT, Node
from ..memory.tree_rebuild import Move, Placed, Rebuilt, TreeChange
from ..schemas.tiers import RebuildUndone
from ..store import memories, memory_rows, meta, tree_rows
from ..store.agent_store import AgentStore
from ..store.transaction import Transaction

_KEY: Final = "tree_undo"


class Undo(msgspec.Struct, frozen=True):
    """What undoes a rebuild."""

    at: float  # the time of the rebuild
    operations: tuple[TreeChange, ...]
    nodes: dict[str, Node]  # the removed and changed categories, as they were before
    made: tuple[str, ...]
    # The id of each moved memory, and its category before and after.
    moved: tuple[tuple[str, str, str], ...]


async def checked(store: AgentStore, operations: Sequence[TreeChange]) -> Rebuilt:
    """The result of the operations; nothing is changed."""
    rules, now = store.rules, store.now

    def read(db: sqlite3.Connection) -> Rebuilt:
        tree, placed = tree_rows.load(db), _placed(db, operations)
        return tree_rebuild.apply(tree, operations, rules.tree, now, placed)

    return await store.read(read)


async def rebuild(store: AgentStore, operations: Sequence[TreeChange]) -> Rebuilt:
    """Apply the valid operations in one transaction, and record how to undo it.

    Only the last rebuild can be undone.
    """
    return await store.write(partial(_rebuild, operations=operations))


async def undo(store: AgentStore) -> RebuildUndone:
    """Undo the last rebuild (else `NotFound`): restore its categories, and those of its memories.

    Later changes stay: a memory that was moved since stays there, and a category with other
    memories stays.
    """
    return await store.write(_undo)


def last(db: sqlite3.Connection) -> Undo | None:
    """The rebuild that can be undone, or None."""
    return meta.read(db, _KEY, Undo | None)  # type: ignore[arg-type]


def describe(operation: TreeChange) -> str:
    """An operation as a line of text."""
    where = f"{operation.path} -> {operation.new_path}" if operation.new_path else operation.path
    return f"{operation.type} {where}" + (f": {operation.reason}" if operation.reason else "")


def _placed(db: sqlite3.Connection, operations: Sequence[TreeChange]) -> dict[str, Placed]:
    ids = [key for operation in operations for key in operation.ids]
    rows = db.execute(
        "SELECT id, category, archived_at IS NOT NULL FROM memories"
        " WHERE merged_into IS NULL AND id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(ids).decode(),),
    )
    return {key: Placed(category, bool(archived)) for key, category, archived in rows}


def _rebuild(tx: Transaction, operations: Sequence[TreeChange]) -> Rebuilt:
    before = tree_rows.load(tx.db)
    rebuilt = tree_rebuild.apply(
        before, operations, tx.rules.tree, tx.now, _placed(tx.db, operations)
    )
    if not rebuilt.done:
        return rebuilt
    concerned = _concerned(tx.db, rebuilt)
    for step in rebuilt.steps:
        if step.new != ROOT:
            tree_rows.ensure(tx, step.new)
        if isinstance(step, Move):
            _refile(tx, dict.fromkeys(step.ids, step.new), dict.fromkeys(step.ids, step.old))
        else:
            memories.relabel(tx, step.old, step.new)
    tree_rows.save(tx, before, rebuilt.tree)
    after = _categories(tx.db, concerned)
    undo = Undo(
        at=tx.now,
        operations=tuple(
            msgspec.structs.replace(tree_change, ids=()) for tree_change in rebuilt.done
        ),
        nodes={
            path: node
            for path, node in before.items()
            if path not in rebuilt.tree or rebuilt.tree[path].desc != node.desc
        },
        made=tuple(sorted(rebuilt.tree.keys() - before.keys())),
        moved=tuple((key, old, after[key]) for key, old in concerned.items()),
    )
    meta.write(tx, _KEY, undo)
    tx.tell("tree.rebuilt", operations=len(rebuilt.done), memories=len(concerned))
    return rebuilt


def _concerned(db: sqlite3.Connection, rebuilt: Rebuilt) -> dict[str, str]:
    whole = [step.old for step in rebuilt.steps if not isinstance(step, Move)]
    single = [key for step in rebuilt.steps if isinstance(step, Move) for key in step.ids]
    rows = db.execute(
        "SELECT id, category FROM memories WHERE category IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(whole).decode(),),
    )
    return _categories(db, single) | dict(rows.fetchall())


def _categories(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    rows = db.execute(
        "SELECT id, category FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(list(ids)).decode(),),
    )
    return dict(rows.fetchall())


def _refile(tx: Transaction, wanted: Mapping[str, str], before: Mapping[str, str]) -> int:
    """Move memories to another category, unless they have moved meanwhile."""
    moved = 0
    for key, category in wanted.items():
        memory = memory_rows.fetch(tx.db, key)
        if memory is not None and memory.category == before[key] != category:
            memories.replace(tx, memory, msgspec.structs.replace(memory, category=category))
            moved += 1
    return moved


def _undo(tx: Transaction) -> RebuildUndone:
    done = last(tx.db)
    if done is None:
        raise NotFound("there is no rebuild of the tree to undo")
    before = tree_rows.load(tx.db)
    tree_rows.save(tx, before, before | done.nodes)
    back = {key: old for key, old, _ in done.moved}
    for category in set(back.values()):
        tree_rows.ensure(tx, category)
    number = _refile(tx, back, {key: put for key, _, put in done.moved})
    between = tree_rows.load(tx.db)
    remaining = dict(between)
    for path in sorted(done.made, reverse=True):
        node = remaining.get(path)
        used = node is not None and (node.warm_count or node.cold_count)
        if not used and not any(other.startswith(f"{path}/") for other in remaining):
            remaining.pop(path, None)
    tree_rows.save(tx, between, remaining)
    meta.write(tx, _KEY, None)
    tx.tell("tree.undone", operations=len(done.operations), memories=number)
    return RebuildUndone(
        True, done.at, number, [describe(operation) for operation in done.operations]
    )
