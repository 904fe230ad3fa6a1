"""The content of the state files: the memory in EvoClaw's shapes, from the database."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

import msgspec

from ...config.settings import Rules
from ...memory import markdown, tree_nodes
from ...memory.scoring import record
from ..database import meta
from ..database.transaction import StateFile, Transaction
from . import hot_rows, memory_md, tree_rows
from .memory_rows import SELECT, from_row

HOT_FILE: Final = "hot-memory-state.json"
WARM_FILE: Final = "warm-memory.json"
TREE_FILE: Final = "memory-tree.json"
METRICS_FILE: Final = "metrics.json"
MARKDOWN_FILE: Final = "MEMORY.md"

FILES: Final[dict[StateFile, str]] = {
    "hot": HOT_FILE,
    "warm": WARM_FILE,
    "tree": TREE_FILE,
    "metrics": METRICS_FILE,
}
# Whether there is a section in MEMORY.md.
_SECTION: Final = "memory_md_section"
STORED_METRICS: Final = (
    "retrieval_count",
    "evictions_today",
    "reinforcements_today",
    "consolidation_count",
    "last_consolidation",
    "context_tokens_saved",
)


def render(
    db: sqlite3.Connection, wanted: Collection[StateFile], now: float, rules: Rules
) -> dict[str, str]:
    """The content of the given state files, by name; for MEMORY.md that of its section, or ""."""
    files: dict[str, str] = {}
    if "hot" in wanted:
        document = hot_rows.document(db, now, rules)
        files[HOT_FILE] = _json(document, rules.hot.max_bytes)
        files[MARKDOWN_FILE] = _page(document, now) if has_section(db) else ""
    if "metrics" in wanted:
        files[METRICS_FILE] = _json(metrics_document(db, now), None)
    if "tree" in wanted:
        files[TREE_FILE] = _json(tree_document(db), None)
    if "warm" in wanted:
        files[WARM_FILE] = _json(warm_document(db, now, rules), rules.warm.max_bytes)
    return files


def warm_document(db: sqlite3.Connection, now: float, rules: Rules) -> list[dict[str, Any]]:
    """The warm memories in EvoClaw's shape, newest first."""
    # By default SQLite uses the index that avoids sorting, and reads the archive.
    rows = db.execute(
        f"{SELECT} INDEXED BY memories_warm"
        " WHERE archived_at IS NULL ORDER BY created_at DESC, row DESC"
    )
    return [record(from_row(row), now, rules.scoring) for row in rows]


def tree_document(db: sqlite3.Connection) -> dict[str, Any]:
    """The tree in EvoClaw's shape, with true counts, the root's included."""
    return tree_nodes.document(tree_rows.load(db), *tree_rows.totals(db))


def metrics_document(db: sqlite3.Connection, now: float) -> dict[str, Any]:
    """The stored counters under EvoClaw's names, with 0 as the default."""
    values = meta.counter_totals(db, now)
    today = time.strftime("%Y-%m-%d", time.localtime(now))
    result: dict[str, Any] = {"_schema_version": "2.0"}
    for name in (*STORED_METRICS, "total_stored", "total_evicted", "total_retrieved"):
        value = values.get(f"{name}@{today}" if name.endswith("_today") else name, 0.0)
        result[name] = int(value) if value == int(value) else value
    return result


def section_size(document: dict[str, Any], now: float) -> int:
    """The bytes of the section of MEMORY.md for a hot document; 0: there is nothing to show."""
    page = _page(document, now)
    return len(memory_md.section(page).encode()) if page else 0


def has_section(db: sqlite3.Connection) -> bool:
    """Whether MEMORY.md gets a section, as soon as there is something to show."""
    return meta.read(db, _SECTION, bool) is not False


def want_section(tx: Transaction, *, wanted: bool) -> None:
    """Have the section of MEMORY.md written, or taken out for as long as nobody wants it again."""
    meta.write(tx, _SECTION, wanted)
    tx.state_files.add("hot")


def _page(document: dict[str, Any], now: float) -> str:
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    return markdown.render(document, now, zone) if markdown.body(document, zone) else ""


def _json(document: Any, limit: int | None) -> str:
    """Indented for people, unless that exceeds the limit."""
    compact = msgspec.json.encode(document)
    indented = msgspec.json.format(compact, indent=2) + b"\n"
    return (indented if limit is None or len(indented) <= limit else compact).decode()
