"""Rebuilds an agent's tree, as one change that can be undone; and reports what could be better."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ..errors import NotFound
from ..memory import tree_rebuild
from ..memory.scoring import DAY
from ..memory.tree_nodes import ROOT, Node, Tree, TreeLimits, children, depth, desc_of
from ..memory.tree_rebuild import Move, Placed, Rebuilt, TreeChange
from ..runtime.problems import first_names
from ..schemas.tiers import RebuildUndone
from ..store.database import meta, rows
from ..store.database.connection import to_json
from ..store.database.transaction import Transaction
from ..store.records import memories, memory_rows, tree_rows

_KEY: Final = "tree_undo"
REPORT_FILE: Final = "tree-report.md"
# From this number of memories on a category may be too full.
_OVERFULL: Final = 40
_LARGEST: Final = 5
_NAMED: Final = 10
# The share of a limit from which a report warns of it.
_NEARLY: Final = 0.9


class Undo(msgspec.Struct, frozen=True):
    """What undoes a rebuild."""

    at: float  # the time of the rebuild
    operations: tuple[TreeChange, ...]
    nodes: dict[str, Node]  # the removed and changed categories, as they were before
    made: tuple[str, ...]
    # The id of each moved memory, and its category before and after.
    moved: tuple[tuple[str, str, str], ...]


def checked(
    db: sqlite3.Connection, operations: Sequence[TreeChange], limits: TreeLimits, now: float
) -> Rebuilt:
    """The result of the operations; nothing is changed."""
    return tree_rebuild.apply(tree_rows.load(db), operations, limits, now, _placed(db, operations))


def last(db: sqlite3.Connection) -> Undo | None:
    """The rebuild that can be undone, or None."""
    return meta.read(db, _KEY, Undo | None)  # type: ignore[arg-type]


def describe(operation: TreeChange) -> str:
    """An operation as a line of text."""
    where = f"{operation.path} -> {operation.new_path}" if operation.new_path else operation.path
    return f"{operation.type} {where}" + (f": {operation.reason}" if operation.reason else "")


def _placed(db: sqlite3.Connection, operations: Sequence[TreeChange]) -> dict[str, Placed]:
    ids = [key for operation in operations for key in operation.ids]
    cursor = db.execute(
        "SELECT id, category, archived_at IS NOT NULL FROM memories"
        " WHERE merged_into IS NULL AND id IN (SELECT value FROM json_each(?))",
        (to_json(ids),),
    )
    return {key: Placed(category, bool(archived)) for key, category, archived in cursor}


def rebuild(tx: Transaction, operations: Sequence[TreeChange]) -> Rebuilt:
    """Apply the valid operations, and record how to undo that, which only the last one can be."""
    before = tree_rows.load(tx.db)
    rebuilt = checked(tx.db, operations, tx.rules.tree, tx.now)
    if not rebuilt.done:
        return rebuilt
    concerned = _concerned(tx.db, rebuilt)
    for path in sorted(rebuilt.tree.keys() - before.keys()):
        rows.note_mark(tx, tree_rows.KIND.name, path, rows.CREATED)
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
    tx.emit("tree.rebuilt", operations=len(rebuilt.done), memories=len(concerned))
    return rebuilt


def _concerned(db: sqlite3.Connection, rebuilt: Rebuilt) -> dict[str, str]:
    whole = [step.old for step in rebuilt.steps if not isinstance(step, Move)]
    single = [key for step in rebuilt.steps if isinstance(step, Move) for key in step.ids]
    cursor = db.execute(
        "SELECT id, category FROM memories WHERE category IN (SELECT value FROM json_each(?))",
        (to_json(whole),),
    )
    return _categories(db, single) | dict(cursor.fetchall())


def _categories(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    cursor = db.execute(
        "SELECT id, category FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (to_json([*ids]),),
    )
    return dict(cursor.fetchall())


def _refile(tx: Transaction, wanted: Mapping[str, str], before: Mapping[str, str]) -> int:
    """Move memories to another category, unless they have moved meanwhile."""
    moved = 0
    for key, category in wanted.items():
        memory = memory_rows.fetch(tx.db, key)
        if memory is not None and memory.category == before[key] != category:
            memories.replace(tx, memory, msgspec.structs.replace(memory, category=category))
            moved += 1
    return moved


def undo(tx: Transaction) -> RebuildUndone:
    """Undo the last rebuild (else `NotFound`): restore its categories, and those of its memories.

    Later changes stay: a memory that was moved since stays there, and a category with other
    memories stays.
    """
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
    tx.emit("tree.undone", operations=len(done.operations), memories=number)
    return RebuildUndone(
        True, done.at, number, [describe(operation) for operation in done.operations]
    )


# The report, which names categories and counts, never the text of a memory or of a description.


def analyse(tree: Tree, totals: tuple[int, int], limits: TreeLimits, now: float) -> list[str]:
    """The findings, a line each, the sizes first.

    `totals` are the numbers of warm and cold memories, in the root too.
    """
    inner = children(tree)
    counts = {path: node.warm_count + node.cold_count for path, node in tree.items()}
    warm, cold = totals
    filed = sum(counts.values())
    largest = sorted((path for path in counts if counts[path]), key=lambda path: -counts[path])
    nodes, levels = f"{len(tree) + 1} of {limits.max_nodes}", f"{depth(tree)} of {limits.max_depth}"
    memories = f"{warm + cold:,} memories: {warm:,} warm, {cold:,} archived"
    findings = [
        f"{nodes} categories, {levels} levels",
        f"{memories}; {warm + cold - filed:,} in no category",
    ]
    groups = {
        "largest": [f"{path} ({counts[path]})" for path in largest[:_LARGEST]],
        f"with {_OVERFULL} memories or more": [path for path in tree if counts[path] >= _OVERFULL],
        "empty": [path for path in tree if not counts[path] and path not in inner],
        f"not used for {limits.prune_idle_days:g} days": [
            path
            for path, node in tree.items()
            if counts[path] and now - node.last_access > limits.prune_idle_days * DAY
        ],
        "without a description": [path for path, node in tree.items() if not desc_of(path, node)],
        "of the same name": list(_namesakes(tree)),
        "nearly full": [
            f"{path} ({len(below)} of {limits.max_children} below it)"
            for path, below in inner.items()
            if len(below) >= _NEARLY * limits.max_children
        ],
    }
    named = {title: first_names(paths, _NAMED) for title, paths in groups.items() if paths}
    return findings + [f"{title}: {names}" for title, names in named.items()]


def markdown(agent: str, at: str, findings: Sequence[str], done: Sequence[str]) -> str:
    """The report as a file.

    `at` is the time in ISO 8601; `findings` are those of `analyse`; `done` is what the run did, a
    line each.
    """
    lines = [f"# The tree of '{agent}', {at}", "", *(f"- {line}" for line in findings)]
    if done:
        lines += ["", "## Changed by this run", "", *(f"- {line}" for line in done)]
    return "\n".join(lines) + "\n"


def _namesakes(tree: Tree) -> Iterator[str]:
    paths: dict[str, list[str]] = {}
    for path in tree:
        paths.setdefault(path.rpartition("/")[2].casefold(), []).append(path)
    return (" and ".join(several) for several in paths.values() if len(several) > 1)
