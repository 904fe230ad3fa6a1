"""The state files: what people, agents and older tools read of an agent's memory.

They are rendered from one snapshot of the database. Nothing here writes to a disk.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable
from datetime import tzinfo
from typing import Any, Final

import msgspec

from ..memory import hot, markdown
from ..memory import tree as trees
from ..memory.merging import MergeRecord
from ..memory.records import Memory
from ..memory.scoring import DAY
from ..memory.warm import record
from . import hot_rows, merge_rows, tree_rows
from .rows import FIELDS, SELECT, from_row
from .transaction import SEGMENT_ROWS, Face, Rules

HOT_FILE: Final = "hot-memory-state.json"
WARM_FILE: Final = "warm-memory.json"
TREE_FILE: Final = "memory-tree.json"
METRICS_FILE: Final = "metrics.json"
KV_FILE: Final = "key-values.json"
MARKDOWN_FILE: Final = "MEMORY.md"
COLD_FOLDER: Final = "cold"

FILES: Final[dict[Face, str]] = {
    "hot": HOT_FILE,
    "warm": WARM_FILE,
    "tree": TREE_FILE,
    "metrics": METRICS_FILE,
    "kv": KV_FILE,
}
STORED_METRICS: Final = (
    "retrieval_count",
    "evictions_today",
    "reinforcements_today",
    "consolidation_count",
    "last_consolidation",
    "context_tokens_saved",
)
# Counts add up; of a moment the latest counts.
_OF_ALL_DEVICES: Final = "CASE WHEN name LIKE 'last_%' THEN max(value) ELSE total(value) END"


class ArchiveLine(Memory, frozen=True, kw_only=True, omit_defaults=True):
    """A memory in a file of the archive.

    Attributes:
        merge: where it is merged into another, what undoing that needs.
    """

    merge: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Segment(msgspec.Struct, frozen=True):
    """What a file of the archive holds, and how many of its lines could not be read."""

    memories: tuple[Memory, ...]
    merges: tuple[MergeRecord, ...]
    bad: int


class Rendered(msgspec.Struct, frozen=True):
    """One file: its name below the agent's folder, or None content where it should go."""

    name: str
    content: bytes | None


def version(db: sqlite3.Connection) -> int:
    """The highest version in the database."""
    row = db.execute("SELECT value FROM meta WHERE key = 'clock'").fetchone()
    return int(row[0]) if row else 0


def render(
    db: sqlite3.Connection, wanted: Iterable[Face], now: float, rules: Rules, local: tzinfo
) -> list[Rendered]:
    """The wanted files as they should stand. MEMORY.md comes with the hot state."""
    files: list[Rendered] = []
    for face in sorted(set(wanted)):
        if face == "hot":
            document = hot_rows.document(db, now, rules)
            text = markdown.render(document, now, local)
            files.append(Rendered(HOT_FILE, _json(document, rules.hot.max_bytes)))
            files.append(Rendered(MARKDOWN_FILE, text.encode()))
        elif face == "warm":
            warm = warm_document(db, now, rules)
            files.append(Rendered(WARM_FILE, _json(warm, rules.warm_max_bytes)))
        elif face == "tree":
            tree = tree_document(db)
            files.append(Rendered(TREE_FILE, _json(tree, rules.tree.max_size_bytes)))
        elif face == "metrics":
            files.append(Rendered(METRICS_FILE, _json(metrics_document(db, now), None)))
        elif face == "kv":
            files.append(Rendered(KV_FILE, _json(kv_document(db), None)))
    return files


def warm_document(db: sqlite3.Connection, now: float, rules: Rules) -> list[dict[str, Any]]:
    """The warm memories in EvoClaw's shape, the newest first."""
    # Left to itself SQLite takes the index that spares it the sorting, and reads the archive.
    rows = db.execute(
        f"{SELECT} INDEXED BY memories_warm"
        " WHERE archived_at IS NULL ORDER BY created_at DESC, row DESC"
    )
    return [record(from_row(row), now, rules.scoring) for row in rows]


def tree_document(db: sqlite3.Connection) -> dict[str, Any]:
    """The tree in EvoClaw's shape, with true counts, the root's included."""
    return trees.document(tree_rows.load(db), *tree_rows.totals(db))


def metrics_document(db: sqlite3.Connection, now: float) -> dict[str, Any]:
    """The stored counters under EvoClaw's names, each 0 until something counts it."""
    values = dict(
        db.execute(
            f"SELECT name, {_OF_ALL_DEVICES} FROM metrics"
            # A moment in the future is a sum of moments, as EvoClaw makes them, or a wrong clock.
            " WHERE name NOT LIKE 'last\\_%' ESCAPE '\\' OR value <= ? GROUP BY name",
            (now + DAY,),
        )
    )
    today = time.strftime("%Y-%m-%d", time.localtime(now))
    found: dict[str, Any] = {"_schema_version": "2.0"}
    for name in (*STORED_METRICS, "total_stored", "total_evicted", "total_retrieved"):
        value = values.get(f"{name}@{today}" if name.endswith("_today") else name, 0.0)
        found[name] = int(value) if value == int(value) else value
    return found


def kv_document(db: sqlite3.Connection) -> dict[str, Any]:
    """Every pair, with its times."""
    rows = db.execute("SELECT key, value, created_at, updated_at FROM kv ORDER BY key")
    return {k: {"value": v, "created_at": made, "updated_at": at} for k, v, made, at in rows}


def segment_name(segment: int) -> str:
    """The file of the archive that shows the rows of `segment`."""
    return f"{COLD_FOLDER}/{segment:06d}.jsonl"


def render_segment(db: sqlite3.Connection, segment: int) -> Rendered:
    """One file of the archive: a line of JSON for each memory. None when it has none left."""
    rows = db.execute(
        f"SELECT (SELECT record FROM merges WHERE merges.id = memories.id), {', '.join(FIELDS)}"
        " FROM memories WHERE row >= ? AND row < ? AND archived_at IS NOT NULL",
        (segment * SEGMENT_ROWS, (segment + 1) * SEGMENT_ROWS),
    )
    lines = [_line(record, from_row(row)) for record, *row in rows]
    content = b"\n".join([*lines, b""]) if lines else None
    return Rendered(segment_name(segment), content)


def read_segment(content: bytes) -> Segment:
    """Read a file of the archive, line by line. Of a bad record only the undoing is lost."""
    memories: list[Memory] = []
    merges: list[MergeRecord] = []
    bad = 0
    for text in content.splitlines():
        try:
            line = msgspec.json.decode(text, type=ArchiveLine)
        except (msgspec.DecodeError, UnicodeDecodeError):
            bad += 1
            continue
        memories.append(Memory(**{name: getattr(line, name) for name in Memory.__struct_fields__}))
        if line.merge is not msgspec.UNSET:
            with contextlib.suppress(msgspec.DecodeError):
                merges.append(merge_rows.decode(line.merge))
    return Segment(tuple(memories), tuple(merges), bad)


def _line(record: str | None, memory: Memory) -> bytes:
    if record is None:
        return msgspec.json.encode(memory)
    fields = {name: getattr(memory, name) for name in Memory.__struct_fields__}
    return msgspec.json.encode(ArchiveLine(**fields, merge=msgspec.Raw(record)))


def _json(document: Any, limit: int | None) -> bytes:
    """Indented for people, as long as even that stays within the limit."""
    compact = msgspec.json.encode(document)
    indented = msgspec.json.format(compact, indent=2) + b"\n"
    return indented if limit is None or len(indented) <= limit else compact


def compact_size(document: Any) -> int:
    """The bytes by which every limit is measured: compact JSON in UTF-8."""
    return hot.document_size(document)
