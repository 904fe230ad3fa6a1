"""The category tree as rows; counts and last uses are derived, in the table `tree`."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from thermocline.sync import Row

from ...errors import InvalidInput, StoreDamaged
from ...memory import tree as trees
from ...memory import tree_nodes
from ...memory.checks import CATEGORY_CHARS, check_category
from ...memory.tree_nodes import ROOT, Node, one_line
from ..database import rows
from ..database.connection import column, scalar
from ..database.rows import Kind
from ..database.transaction import Transaction


def load(db: sqlite3.Connection) -> dict[str, Node]:
    """Every node except the root, by path, with its counts; `StoreDamaged` if not valid."""
    rows = db.execute("SELECT path, desc, warm_count, cold_count, last_access FROM tree").fetchall()
    if any(None in row for row in rows):
        raise StoreDamaged("cannot trust the categories: a value is missing")
    return {
        path: Node(desc=desc, warm_count=warm, cold_count=cold, last_access=last)
        for path, desc, warm, cold, last in rows
    }


def totals(db: sqlite3.Connection) -> tuple[int, int]:
    """The numbers of live memories, warm and cold: the counts of the root.

    Every category except the root has a node, so only memories filed in the root are read.
    """
    row = db.execute(
        "SELECT total(warm), total(cold) FROM ("
        " SELECT warm_count AS warm, cold_count AS cold FROM tree UNION ALL"
        " SELECT archived_at IS NULL, archived_at IS NOT NULL FROM memories"
        " WHERE category = ? AND merged_into IS NULL)",
        (tree_nodes.ROOT,),
    ).fetchone()
    return int(row[0]), int(row[1])


def total(db: sqlite3.Connection) -> int:
    """The number of live memories: the sum of `totals`, from indexes alone.

    Reading whether each memory of the root is archived takes a hundred times as long.
    """
    number = scalar(
        db,
        "SELECT (SELECT total(warm_count + cold_count) FROM tree)"
        " + (SELECT count(*) FROM memories WHERE category = ?1)"
        # The sign keeps SQLite from reading the category instead of the few that were merged.
        " - (SELECT count(*) FROM memories WHERE merged_into IS NOT NULL AND +category = ?1)",
        tree_nodes.ROOT,
    )
    return int(number)


def ensure(tx: Transaction, category: str) -> None:
    """Create the missing nodes of `category`. The caps are enforced before the commit."""
    if category == tree_nodes.ROOT or category in _known(tx):
        return
    for path in (*tree_nodes.ancestors(category), category):
        if path in _known(tx):
            continue
        before = KIND.load(tx.db, path)
        # Older than any description written by a person, here or on another device.
        stamp = (0 if before is None else (before.clocks.deleted or (0, ""))[0] + 1, tx.device)
        rows.write(tx, KIND, path, {"desc": tree_nodes.title(path)}, stamp=stamp)
        tx.keep_category = category
        tx.emit("category.added", category=path)


def _known(tx: Transaction) -> set[str]:
    if tx.cache.categories is None:
        tx.cache.categories = {*column(tx.db, "SELECT path FROM tree")}
    return tx.cache.categories


def resolve(tx: Transaction, category: str) -> str:
    """The category in which a memory of `category` is filed now, after merges of categories.

    Otherwise the next memory would create a merged category again, and displace another one.
    """
    if category in _known(tx):
        return category
    # SQLite uses the partial index only with the first condition.
    merged = "original_category <> '' AND original_category = ?"
    now = scalar(tx.db, f"SELECT category FROM memories WHERE {merged} LIMIT 1", category)
    return category if now is None else str(now)


def recount(tx: Transaction) -> None:
    """Count the memories of each category again, and note the last use of each."""
    counts = tx.db.execute(
        "SELECT total(archived_at IS NULL), total(archived_at IS NOT NULL), max(updated_at),"
        " category FROM memories WHERE merged_into IS NULL GROUP BY category"
    ).fetchall()
    tx.db.execute("UPDATE tree SET warm_count = 0, cold_count = 0")
    tx.db.executemany(
        "UPDATE tree SET warm_count = ?, cold_count = ?, last_access = max(last_access, ?)"
        " WHERE path = ?",
        counts,
    )
    tx.enforce_tree = True


def is_used(db: sqlite3.Connection, category: str) -> bool:
    """Whether a category has memories, was merged into another, or has others below it."""
    filed = "SELECT 1 FROM memories WHERE category = ?1 OR original_category = ?1"
    below = "SELECT 1 FROM tree WHERE path > ?1 || '/' AND path < ?1 || '0'"
    return scalar(db, f"{filed} UNION ALL {below} LIMIT 1", category) is not None


def touch(tx: Transaction, category: str) -> None:
    """Record a use of `category`."""
    tx.db.execute("UPDATE tree SET last_access = ? WHERE path = ?", (tx.now, category))


def prune(tx: Transaction) -> tuple[str, ...]:
    """Remove categories that are empty and long unused; return them."""
    _, removed = trees.prune(load(tx.db), tx.now, tx.rules.tree.prune_idle_days)
    for path in removed:
        remove_unused(tx, path)
    return removed


def remove_unused(tx: Transaction, category: str) -> None:
    """Remove a category because it is empty, unless another device has described it."""
    if row := rows.load(tx.db, KIND, category):
        rows.write(tx, KIND, category, None, stamp=(row.clocks.latest[0] + 1, tx.device))


def save(tx: Transaction, old: dict[str, Node], new: tree_nodes.Tree) -> None:
    """Write the differences between two states of the tree."""
    for path in old.keys() - new.keys():
        rows.write(tx, KIND, path, None)
    for path, node in new.items():
        before = old.get(path)
        if before is None or before.desc != node.desc:
            rows.write(tx, KIND, path, {"desc": node.desc})
        if before is None or before.last_access != node.last_access:
            tx.db.execute(
                "UPDATE tree SET last_access = ? WHERE path = ?", (node.last_access, path)
            )
    tx.state_files.add("tree")


def _applied(tx: Transaction, _before: Row | None, after: Row) -> None:
    if KIND.lives(after):
        # The last use of a category from another device is the newest change of its memories.
        tx.db.execute(
            "INSERT INTO tree (path, desc, last_access) VALUES (?1, ?2, coalesce("
            " (SELECT max(updated_at) FROM memories WHERE category = ?1), ?3))"
            " ON CONFLICT DO UPDATE SET desc = excluded.desc",
            (after.id, after.data["desc"], tx.now),
        )
    else:
        tx.db.execute("DELETE FROM tree WHERE path = ?", (after.id,))
    tx.cache.categories = None
    tx.enforce_tree = True
    tx.state_files.add("tree")


def _check(row: Row) -> None:
    desc = msgspec.convert(row.data.get("desc"), str)
    if row.id == ROOT or check_category(row.id, CATEGORY_CHARS, field="path") != row.id:
        raise InvalidInput(f"cannot take '{row.id}' for a category", field="path")
    if one_line(desc) != desc:
        raise InvalidInput(f"cannot take the description of '{row.id}'", field="desc")


KIND: Final = Kind(
    name="category",
    clears_secrets=True,
    fields=frozenset({"desc"}),
    liveness_fields=("desc",),
    urgent=True,
    check=_check,
    applied=_applied,
)
