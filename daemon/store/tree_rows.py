"""The category tree as rows. The counts are kept by triggers of the schema."""

from __future__ import annotations

import sqlite3
from typing import Final

from ..memory import tree as trees
from ..memory.tree import Node
from .transaction import Transaction

KIND: Final = "tree"


def load(db: sqlite3.Connection) -> dict[str, Node]:
    """Every node but the root, by path, with true counts."""
    rows = db.execute("SELECT path, desc, warm_count, cold_count, last_access FROM tree")
    return {
        path: Node(desc=desc, warm_count=warm, cold_count=cold, last_access=last)
        for path, desc, warm, cold, last in rows
    }


def totals(db: sqlite3.Connection) -> tuple[int, int]:
    """How many live memories are warm, and how many cold: the counts of the root.

    Cold ones that the replica alone holds are counted too.

    Every category but the root itself has its node, so this reads no row of a memory that is
    filed deeper.
    """
    row = db.execute(
        "SELECT total(warm), total(cold) FROM ("
        " SELECT warm_count AS warm, cold_count AS cold FROM tree UNION ALL"
        " SELECT archived_at IS NULL, archived_at IS NOT NULL FROM memories"
        " WHERE category = ?1 AND merged_into IS NULL UNION ALL"
        " SELECT 0, 1 FROM remote_only WHERE category = ?1)",
        (trees.ROOT,),
    ).fetchone()
    return int(row[0]), int(row[1])


def ensure(tx: Transaction, category: str) -> None:
    """Make the nodes of `category` that are missing. The caps are kept before the commit."""
    if category == trees.ROOT:
        return
    for path in (*trees.ancestors(category), category):
        # Mostly it is there, and to look costs a fifth of trying to insert it.
        if tx.db.execute("SELECT 1 FROM tree WHERE path = ?", (path,)).fetchone():
            continue
        tx.db.execute(
            "INSERT INTO tree(path, desc, last_access, clock, device) VALUES (?, ?, 0, 0, '')",
            (path, trees.title(path)),
        )
        _version(tx, path)
        tx.keep_category = category
        tx.tell("category.added", category=path)


def resolve(tx: Transaction, category: str) -> str:
    """Where a memory of `category` is filed now: there, or where its like were merged into.

    Without this a category that the caps have merged away would be made anew by the next memory
    filed in it, at the cost of another one.
    """
    if tx.db.execute("SELECT 1 FROM tree WHERE path = ?", (category,)).fetchone():
        return category
    merged = tx.db.execute(
        # The first condition is what the partial index needs to be told.
        "SELECT category FROM memories WHERE original_category <> '' AND original_category = ?1"
        " UNION ALL SELECT category FROM remote_only"
        " WHERE original_category <> '' AND original_category = ?1 LIMIT 1",
        (category,),
    ).fetchone()
    return str(merged[0]) if merged else category


def touch(tx: Transaction, category: str) -> None:
    """Note that `category` was used now."""
    tx.db.execute("UPDATE tree SET last_access = ? WHERE path = ?", (tx.now, category))
    tx.settle_tree = True


def prune(tx: Transaction) -> tuple[str, ...]:
    """Remove the categories that are empty and long unused; return them."""
    before = load(tx.db)
    after, removed = trees.prune(before, tx.now, tx.rules.prune_idle_days)
    save(tx, before, after)
    return removed


def save(tx: Transaction, old: dict[str, Node], new: trees.Tree) -> None:
    """Write what differs between two states of the tree."""
    for path in old.keys() - new.keys():
        tx.db.execute("DELETE FROM tree WHERE path = ?", (path,))
        tx.deleted(KIND, path)
    for path, node in new.items():
        before = old.get(path)
        if before is None or (before.desc, before.last_access) != (node.desc, node.last_access):
            tx.db.execute(
                "INSERT INTO tree(path, desc, last_access, clock, device) VALUES (?, ?, ?, 0, '')"
                " ON CONFLICT DO UPDATE SET desc = excluded.desc,"
                " last_access = excluded.last_access",
                (path, node.desc, node.last_access),
            )
            _version(tx, path)
    tx.faces.add("tree")


def _version(tx: Transaction, path: str) -> None:
    clock = tx.version()
    tx.db.execute("UPDATE tree SET clock = ?, device = ? WHERE path = ?", (clock, tx.device, path))
    tx.alive(KIND, path)
    tx.changed(KIND, path, clock)
    tx.settle_tree = True
    tx.faces.add("tree")
