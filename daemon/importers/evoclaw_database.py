"""A database that EvoClaw filled: what its tables hold, as memories and critical state.

Its tables are only read. Ids are EvoClaw's, so that an import can be repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..memory.records import Json, Memory
from . import hot_file, tree_file, warm_file
from .intake import Intake, Report
from .values import moment

_TABLES: Final = ("cold_memories", "cold_memory", "warm_memory", "core_memory")
_KNOWN: Final = frozenset(("hot_state", "tree_nodes", "timestamp"))


def memories(found: Iterable[Mapping[str, Json]], now: float, report: Report) -> list[Memory]:
    """The memories in the rows of EvoClaw's tables.

    Args:
        found: each with `table`, `id`, `text`, `category`, `importance`, `created_at` and
            `access_count`.
        now: the time of what has none.
        report: where what is read, and left out, is noted.
    """
    by_table: dict[str, list[dict[str, Any]]] = {}
    for fields in found:
        by_table.setdefault(str(fields["table"]), []).append(dict(fields))
    texts: dict[str, str] = {}
    read: list[Memory] = []
    for table in sorted(by_table, key=_rank):
        for fields in by_table[table]:
            del fields["table"]
            if texts.setdefault(fields["id"], fields["text"]) != fields["text"]:
                # Ids are unique within one table only.
                digest = hashlib.sha256(f"{fields['id']}\0{fields['text']}".encode())
                fields["id"] = digest.hexdigest()[:16]
        parsed = warm_file.parse(by_table[table], now)
        read += parsed.memories
        report.read.append({"table": table, "entries": len(parsed.memories)})
        report.note(table, *parsed.faults)
    return read


def take_critical(intake: Intake, critical: Mapping[str, Json]) -> None:
    """Take the hot state and the tree that EvoClaw stored as an agent's critical state."""
    entries = 0
    # What has no time gets the same one each time.
    at = moment(critical.get("timestamp")) or 0.0
    if (given := critical.get("tree_nodes")) is not None:
        tree = tree_file.parse(given, at)
        intake.categories(tree.tree)
        intake.report.note("critical_state.tree_nodes", *tree.faults)
        entries += len(tree.tree)
    if (given := critical.get("hot_state")) is not None:
        state = hot_file.parse(given, at)
        intake.hot(state.state)
        intake.report.note("critical_state.hot_state", *state.faults)
        entries += 1
    unknown = sorted(critical.keys() - _KNOWN)
    intake.report.note("critical_state", *(f"unknown key '{name}'" for name in unknown))
    intake.report.read.append({"table": "critical_state", "entries": entries})


def _rank(table: str) -> tuple[int, str]:
    return (_TABLES.index(table) if table in _TABLES else len(_TABLES), table)
