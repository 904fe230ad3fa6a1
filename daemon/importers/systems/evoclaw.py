"""EvoClaw: state files, a workspace with its agents, MEMORY.md, and the tables of a database.

Its tables are only read. Ids are EvoClaw's, so that an import can be repeated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ...errors import InvalidInput
from ...memory.records import FileFormat, Json, Memory
from .. import state_files, takeover, warm_file
from ..entries import Document, Reading, SourceEntry, json_of
from ..intake import ImportReport, Intake
from ..source import LARGEST_FILE, Format, SourcePath
from ..sqlite_copy import Copy
from ..values import count, moment

_DEFAULT: Final = "default"
_TABLES: Final = ("cold_memories", "cold_memory", "core_memory", "warm_memory")
_CRITICAL: Final = "critical_state"
# The parts of the critical state, and the format of each.
_PARTS: Final[dict[str, FileFormat]] = {"tree_nodes": "tree", "hot_state": "hot"}


def _detect(source: SourcePath) -> bool:
    """Whether a folder holds state files, a file is one, or a database has its tables."""
    if source.is_folder:
        if any(_files(source, agent) for agent in _agents(source)):
            return True
    elif not source.databases():
        try:
            small = source.stat.st_size <= LARGEST_FILE
            content = source.path.read_bytes() if small else b""
            state_files.format_of(content, source.path.name)
        except (InvalidInput, OSError):
            return False
        return True
    return any(
        _CRITICAL in copy.tables
        or any(copy.tables.get(name, set()) >= {"agent_id", "id"} for name in _TABLES)
        for copy in source.databases()
    )


def _read(source: SourcePath) -> Iterator[SourceEntry | Document]:
    """The state files of all agents as documents, and the rows of the tables."""
    databases = source.databases()
    for copy in databases:
        yield from _tables(source, copy)
    if source.is_folder:
        for agent in _agents(source):
            for path in _files(source, agent):
                yield from _document(source, path, agent)
    elif not databases:
        yield from _document(source, source.path, "")


def _agents(source: SourcePath) -> list[str]:
    """The agents whose state files may be in a folder; "" for files in the folder itself."""
    return ["", _DEFAULT, *(name for name, _ in takeover.others(source.path, _DEFAULT))]


def _files(source: SourcePath, agent: str) -> list[Path]:
    memory = source.path / "memory"
    special = {"": [source.path], _DEFAULT: [memory, memory / _DEFAULT]}
    folders = special.get(agent, [memory / agent])
    paths = [folder / name for folder in folders for name in state_files.FILES]
    return [path for path in paths if path.is_symlink() or path.exists()]


def _document(
    source: SourcePath, path: Path, agent: str, format_: str | None = None
) -> Iterator[Document]:
    if (read := source.content(path, agent)) is not None:
        yield Document(path, *read, format_, agent)


def state_file(source: SourcePath, format_: str) -> Reading:
    """A file whose format was named."""
    return source.reading(_document(source, source.path, "", format_))


def _tables(source: SourcePath, copy: Copy) -> Iterator[SourceEntry | Document]:
    for table in _TABLES:
        for row in source.rows(copy, table):
            fields = record({"table": table, **row})
            if str(fields["text"]).strip():
                agent = str(row.get("agent_id") or "")
                yield SourceEntry(f"{copy.path}: {table}", fields, agent=agent)
    for row in source.rows(copy, _CRITICAL):
        state = json_of(row.get("data") or "{}")
        if not isinstance(state, dict):
            source.fault(f"{copy.path}: {_CRITICAL}", "its data is not a JSON object")
            continue
        for key, format_ in _PARTS.items():
            if state.get(key) is not None:
                content, at = json.dumps(state[key]).encode(), float(row.get("updated_at") or 0)
                yield Document(copy.path, content, at, format_, str(row.get("agent_id") or ""))


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
    value = json_of(text)
    if isinstance(value, dict):
        for name in ("fact", "text", "content", "summary"):
            if isinstance(value.get(name), str) and value[name].strip():
                return str(value[name])
    return value if isinstance(value, str) else text


def memories(rows: Iterable[Mapping[str, Json]], now: float, report: ImportReport) -> list[Memory]:
    """The memories in the rows of EvoClaw's tables; `now` is the default of missing times.

    Each row has its `table`, its `id`, and the other columns. Rows read and left out are counted in
    the report.
    """
    by_table: dict[str, list[dict[str, Json]]] = {}
    texts: dict[str, str] = {}
    for row in rows:
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
        read += parsed.content
        report.read.append({"table": table, "entries": len(parsed.content)})
        report.note(table, *parsed.faults)
    return read


def take_critical(intake: Intake, critical: Mapping[str, Json]) -> None:
    """Import the hot state and the tree that EvoClaw stored as an agent's critical state."""
    entries = 0
    # Entries without a time get the same time at each import.
    at = moment(critical.get("timestamp")) or 0.0
    for key, format_ in _PARTS.items():
        if (part := critical.get(key)) is not None:
            name = f"{_CRITICAL}.{key}"
            entries += state_files.take_document(part, format_, intake, name, at)
    unknown = sorted(critical.keys() - {*_PARTS, "timestamp"})
    intake.report.note(_CRITICAL, *(f"unknown key '{name}'" for name in unknown))
    intake.report.read.append({"table": _CRITICAL, "entries": entries})


EVOCLAW: Final = Format(
    *("evoclaw", _detect, _read),
    f"a workspace, one of {', '.join(state_files.FILES)}, MEMORY.md, or a database with the table"
    f" {', '.join(_TABLES)} or {_CRITICAL}",
)
