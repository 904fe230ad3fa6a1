"""Filling a database from what the files and a damaged predecessor still hold."""

from __future__ import annotations

from typing import Any

import msgspec

from ..memory import hot
from ..memory import tree as trees
from ..memory.hot import Entry
from ..memory.merging import MergeRecord
from ..memory.records import Memory, joined
from . import (
    conversations,
    hot_rows,
    key_values,
    memories,
    memory_rows,
    merge_rows,
    merging,
    tree_rows,
)
from .faces import STORED_METRICS
from .salvage import Salvaged
from .settling import archive_faded
from .sources import Found
from .transaction import Transaction


def adopt(tx: Transaction, found: Found, salvaged: Salvaged | None) -> dict[str, int]:
    """Store everything found that is not there yet, and return how many of each kind.

    What the database itself still held goes before what the files showed, and of two versions
    of a memory the newer is kept. What a tombstone says was deleted stays so.
    """
    if salvaged is not None:
        _bury(tx, salvaged)
    # Before the memories, which else make their categories without a description.
    counts = {"categories": _adopt_tree(tx, found, salvaged)}
    counts["memories"] = _adopt_memories(tx, found, salvaged)
    _adopt_notes(tx, salvaged)
    _adopt_merges(tx, found, salvaged)
    merging.mend_links(tx)
    counts["hot_entries"] = _adopt_hot(tx, found, salvaged)
    counts["key_values"] = _adopt_pairs(tx, found, salvaged)
    _adopt_metrics(tx, found, salvaged)
    _adopt_uses(tx, salvaged)
    if salvaged is not None:
        conversations.adopt(tx, salvaged.conversations, salvaged.turns)
    archive_faded(tx)
    return counts


def _bury(tx: Transaction, salvaged: Salvaged) -> None:
    for row in salvaged.tombstones:
        tx.db.execute(
            "INSERT OR REPLACE INTO tombstones (kind, id, deleted_at, clock, device)"
            " VALUES (?, ?, ?, ?, ?)",
            row,
        )


def _buried(tx: Transaction, kind: str) -> dict[str, int]:
    """The versions at which rows of `kind` were deleted, by id."""
    return dict(tx.db.execute("SELECT id, clock FROM tombstones WHERE kind = ?", (kind,)))


def _adopt_memories(tx: Transaction, found: Found, salvaged: Salvaged | None) -> int:
    buried = _buried(tx, memories.KIND)
    for memory in salvaged.memories if salvaged else ():
        _prefer_database(found, memory)
    taken = 0
    # The order of the rows is that of time, which the search goes by where nothing else decides.
    for memory in sorted(found.memories.values(), key=lambda m: (m.created_at, m.clock)):
        if buried.get(memory.id, -1) >= memory.clock or memory_rows.known(tx.db, memory.id):
            continue
        memories.insert(tx, memory)
        taken += 1
    return taken


def _adopt_notes(tx: Transaction, salvaged: Salvaged | None) -> None:
    """Keep the notes of what the replica alone holds, where nothing else held it."""
    for row in salvaged.remote_only if salvaged else ():
        if not memory_rows.known(tx.db, row[0]):
            marks = ", ".join("?" * len(row))
            tx.db.execute(f"INSERT OR IGNORE INTO remote_only VALUES ({marks})", row)


def _prefer_database(found: Found, memory: Memory) -> None:
    """A file may lag behind the database by its last half second, and never leads it."""
    shown = found.memories.get(memory.id)
    found.memories[memory.id] = memory if shown is None else joined(shown, memory)


def _adopt_merges(tx: Transaction, found: Found, salvaged: Salvaged | None) -> None:
    """Keep the records of the merges that still stand, each once, in the order of the merges."""
    records = [merge for text, _ in salvaged.merges if (merge := _record(text))] if salvaged else []
    records += sorted(found.merges, key=lambda record: record.merged_at)
    for record in records:
        standing = tx.db.execute(
            "SELECT 1 FROM memories WHERE id = ? AND merged_into = ?"
            " AND id NOT IN (SELECT id FROM merges)",
            (record.retired, record.kept),
        ).fetchone()
        if standing is not None:
            merge_rows.put(tx, record)
    for (key,) in salvaged.kept_apart if salvaged else ():
        tx.db.execute(
            "INSERT OR IGNORE INTO kept_apart SELECT id, ?, ? FROM memories"
            " WHERE id = ? AND merged_into IS NULL",
            (tx.version(), tx.device, key),
        )


def _record(text: str) -> MergeRecord | None:
    try:
        return merge_rows.decode(text)
    except msgspec.DecodeError:
        return None


def _adopt_hot(tx: Transaction, found: Found, salvaged: Salvaged | None) -> int:
    entries = dict(hot_rows.entries(tx.db))
    before = len(entries)
    for section, key, value, position, _clock in salvaged.hot if salvaged else ():
        decoded = _decoded(value)
        if decoded is not None:
            entries.setdefault((section, key), Entry(value=decoded, position=position))
    buried = _buried(tx, hot_rows.KIND)
    for state in found.hot:
        for key, entry in hot.entries(state).items():
            if "/".join(key) not in buried:
                entries.setdefault(key, entry)
    if len(entries) > before:
        hot_rows.save(tx, hot.from_entries(entries))
    return len(entries) - before


def _decoded(value: Any) -> Any:
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, TypeError):
        return None


def _adopt_tree(tx: Transaction, found: Found, salvaged: Salvaged | None) -> int:
    buried = _buried(tx, tree_rows.KIND)
    categories = {path: node for path, node in found.tree.items() if path not in buried}
    for path, desc, last_access in salvaged.tree if salvaged else ():
        categories[path] = trees.Node(desc=desc, last_access=last_access)
    before = tree_rows.load(tx.db)
    after = dict(before)
    for path, node in trees.with_parents(categories).items():
        if path not in before or before[path].desc == trees.title(path):
            after[path] = msgspec.structs.replace(node, warm_count=0, cold_count=0)
    tree_rows.save(tx, before, after)
    return len(after) - len(before)


def _adopt_pairs(tx: Transaction, found: Found, salvaged: Salvaged | None) -> int:
    buried = _buried(tx, key_values.KIND)
    pairs = {key: pair for key, pair in found.kv.items() if key not in buried}
    for key, value, made in salvaged.kv if salvaged else ():
        pairs[key] = (value, made)
    for key, (value, made) in pairs.items():
        if not tx.db.execute("SELECT 1 FROM kv WHERE key = ?", (key,)).fetchone():
            key_values.put(tx, key, value, created_at=made)
    return len(pairs)


def _adopt_metrics(tx: Transaction, found: Found, salvaged: Salvaged | None) -> None:
    """What the database held goes by device; a file shows the sum of all."""
    kept = salvaged.metrics if salvaged else ()
    known = {name for name, *_ in kept}
    shown = {n: v for n, v in found.metrics.items() if n in STORED_METRICS and n not in known}
    for name, device, value in (*kept, *((name, tx.device, v) for name, v in shown.items())):
        if not name.endswith("_today"):
            tx.db.execute(
                "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?)",
                (name, device or tx.device, value, tx.version()),
            )


def _adopt_uses(tx: Transaction, salvaged: Salvaged | None) -> None:
    for row in salvaged.uses if salvaged else ():
        tx.db.execute("INSERT OR REPLACE INTO uses VALUES (?, ?, ?, ?, ?)", row)
