"""A database that EvoClaw filled: its tables as memories and critical state.

Its tables are only read. Ids are EvoClaw's, so that an import can be repeated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..memory.records import Json, Memory
from . import state_files, warm_file
from .intake import ImportReport, Intake
from .values import count, moment

_KNOWN: Final = frozenset(("hot_state", "tree_nodes", "timestamp"))


def memories(found: Iterable[Mapping[str, Json]], now: float, report: ImportReport) -> list[Memory]:
    """The memories in the rows of EvoClaw's tables; `now` is the default of missing times.

    Each row has its `table`, its `id`, and the other columns. Rows read and left out are counted in
    the report.
    """
    by_table: dict[str, list[dict[str, Json]]] = {}
    texts: dict[str, str] = {}
    for row in found:
        fields = record(row)
        if not fields["text"].strip():
            continue
        if texts.setdefault(fields["id"], fields["text"]) != fields["text"]:
            # Ids are unique within one table only.
            digest = hashlib.sha256(f"{fields['id']}\0{fields['text']}".encode())
            fields["id"] = digest.hexdigest()[:16]
        by_table.setdefault(row["table"], []).append(fields)
    read: list[Memory] = []
    for table, records in by_table.items():
        parsed = warm_file.parse(records, now)
        read += parsed.found
        report.read.append({"table": table, "entries": len(parsed.found)})
        report.note(table, *parsed.faults)
    return read


def take_critical(intake: Intake, critical: Mapping[str, Json]) -> None:
    """Import the hot state and the tree that EvoClaw stored as an agent's critical state."""
    entries = 0
    # Entries without a time get the same one at each import.
    at = moment(critical.get("timestamp")) or 0.0
    parts: dict[str, state_files.Format] = {"tree_nodes": "tree", "hot_state": "hot"}
    for key, format_ in parts.items():
        if (given := critical.get(key)) is not None:
            name = f"critical_state.{key}"
            entries += state_files.take_document(given, format_, intake, name, at)
    unknown = sorted(critical.keys() - _KNOWN)
    intake.report.note("critical_state", *(f"unknown key '{name}'" for name in unknown))
    intake.report.read.append({"table": "critical_state", "entries": entries})


def record(row: Mapping[str, Json]) -> dict[str, Any]:
    """A row, with its `table`, as a record of the warm file."""
    category, importance = row.get("category") or row.get("event_type"), row.get("importance")
    if row["table"] == "core_memory":
        category, importance = f"core/{row.get('memory_type') or 'general'}", 0.9
    return {
        "id": row["id"],
        "text": str(
            row.get("text") or _fact(row.get("content")) or row.get("distilled_summary") or ""
        ),
        "category": category,
        "importance": importance if isinstance(importance, int | float) else None,
        "created_at": row.get("created_at") or row.get("timestamp"),
        "access_count": count(row.get("access_count")) or 0,
    }


def _fact(content: Json) -> str:
    """The statement in a content, which is JSON or plain text."""
    text = str(content or "")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(found, dict):
        for name in ("fact", "text", "content", "summary"):
            if isinstance(found.get(name), str) and found[name].strip():
                return str(found[name])
    return found if isinstance(found, str) else text
