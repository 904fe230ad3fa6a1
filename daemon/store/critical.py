"""The critical state: hot state and tree as one document, in the shape that EvoClaw knows."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from ..errors import InvalidInput
from ..memory import hot
from ..memory.hot import HotState
from ..memory.variants import hot_file, tree_file
from . import faces, hot_rows, tree_rows
from .transaction import Rules, Transaction


def document(db: sqlite3.Connection, now: float, rules: Rules) -> str:
    """The critical state as it stands, as a JSON object."""
    found = {
        "hot_state": hot_rows.document(db, now, rules),
        "tree_nodes": faces.tree_document(db),
        "timestamp": int(now),
    }
    return msgspec.json.encode(found).decode()


def adopt(tx: Transaction, data: str) -> bool:
    """Add what another tool's hot state and tree have and ours has not.

    What was deleted here stays so.

    Returns:
        Whether it could be read.
    """
    try:
        found = msgspec.json.decode(data, type=dict[str, Any])
        state = hot_file.parse(found.get("hot_state") or {}, tx.now).state
        tree = tree_file.parse(found.get("tree_nodes") or {}, tx.now).tree
    except (msgspec.DecodeError, InvalidInput, RecursionError):
        return False
    _add_entries(tx, state)
    _add_nodes(tx, tree)
    return True


def _add_entries(tx: Transaction, state: HotState) -> None:
    entries = dict(hot_rows.entries(tx.db))
    known = len(entries)
    for key, entry in hot.entries(state).items():
        if not _buried(tx, hot_rows.KIND, "/".join(key)):
            entries.setdefault(key, entry)
    if len(entries) > known:
        hot_rows.save(tx, hot.from_entries(entries))


def _add_nodes(tx: Transaction, tree: dict[str, Any]) -> None:
    before = tree_rows.load(tx.db)
    after = dict(before)
    for path, node in tree.items():
        if path not in before and not _buried(tx, tree_rows.KIND, path):
            after[path] = msgspec.structs.replace(node, warm_count=0, cold_count=0)
    tree_rows.save(tx, before, after)


def _buried(tx: Transaction, kind: str, key: str) -> bool:
    found = tx.db.execute("SELECT 1 FROM tombstones WHERE kind = ? AND id = ?", (kind, key))
    return found.fetchone() is not None
