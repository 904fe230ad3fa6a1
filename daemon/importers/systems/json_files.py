"""JSON files: mem0's memories, the MCP server's graph, anybody's texts, our rows and archives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from ...errors import ThermoclineError
from ...memory.records import Json
from .. import state_files
from ..entries import Document, SourceEntry, category, entity
from ..source import Format, SourcePath, open_file
from ..values import reason

_OWN: Final = frozenset({"category", "categories", "tags"})
_KINDS: Final = {
    "person": "person",
    "project": "project",
    "technology": "technology",
    "tool": "technology",
    "place": "place",
    "location": "place",
    "organization": "organization",
    "organisation": "organization",
    "company": "organization",
}
# Of an object with a text: what a memory has, too.
_FIELDS: Final = frozenset({
    "category", "importance", "tags", "actor", "group", "position", "subject", "type", "event",
    "outcome", "pinned", "standing", "source", "created_at", "updated_at",
})  # fmt: skip
_GZIP: Final = b"\x1f\x8b"
_LINES: Final = 1_000
_BYTES: Final = 400_000
_LONGEST: Final = 16_777_216


# What mem0's `get_all()` returned


def _is_mem0(source: SourcePath) -> bool:
    begins = source.head.lstrip()[:1] in (b"{", b"[")
    return not source.is_folder and begins and b'"memory"' in source.head and bool(_results(source))


def _results(source: SourcePath) -> list[Json]:
    document = source.document()
    if isinstance(document, dict):
        document = document.get("results", document.get("memories"))
    listed = document if isinstance(document, list) else []
    return (
        listed if any(isinstance(item, dict) and "memory" in item for item in listed[:20]) else []
    )


def _mem0(source: SourcePath) -> Iterator[SourceEntry]:
    builder = source.builder("mem0", source.path)
    for number, result in enumerate(_results(source), 1):
        text = result.get("memory") if isinstance(result, dict) else None
        if not isinstance(text, str) or not text.strip():
            builder.fault(f"result {number}: it has no 'memory'")
            continue
        metadata = result.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        names = result.get("categories") or metadata.get("categories") or metadata.get("category")
        first = names[0] if isinstance(names, list) and names else names
        rest = {name: value for name, value in metadata.items() if name not in _OWN}
        yield from builder.memory(
            result.get("id") or text, text, category=category(first or "mem0"),
            actor=result.get("actor_id") or result.get("user_id") or result.get("agent_id"),
            group=result.get("run_id"), tags=metadata.get("tags"),
            created_at=result.get("created_at"), updated_at=result.get("updated_at"),
            data={"metadata": rest} if rest else None,
        )  # fmt: skip


# The knowledge graph of the MCP reference server `server-memory`, in lines


def _is_graph(source: SourcePath) -> bool:
    lines = source.first_lines()
    return any(lines) and all(_is_node(line) for line in lines if line)


def _is_node(line: dict[str, Json]) -> bool:
    names = {"entity": ("name",), "relation": ("from", "to", "relationType")}
    wanted = names.get(str(line.get("type")), ("",))
    return all(isinstance(line.get(name), str) for name in wanted)


def _graph(source: SourcePath) -> Iterator[SourceEntry]:
    """Each observation and each relation as a memory that names its entities."""
    builder = source.builder("mcp-memory", source.path)
    # The kinds of the entities so far, by their names.
    kinds: dict[str, str] = {}
    for number, line in source.lines(source.path):
        if not _is_node(line):
            builder.fault(f"line {number}: neither an entity nor a relation")
        elif line["type"] == "entity":
            name, kind = str(line["name"]), str(line.get("entityType") or "")
            kinds[name] = _KINDS.get(kind.lower(), "concept")
            observations = line.get("observations")
            if not isinstance(observations, list):
                builder.fault(f"line {number}: 'observations' is not a list")
                continue
            for position, text in enumerate(observations):
                if not isinstance(text, str):
                    builder.fault(f"line {number}: an observation is not text")
                yield from builder.memory(
                    f"{name}\0{text}", text, subject=name,
                    category=category("entities", kind), tags=[kind] if kind else [],
                    entities=[entity(name, kinds[name])],
                    data={"entity": name, "place": position},
                )  # fmt: skip
        else:
            subject, target = str(line["from"]), str(line["to"])
            relation = str(line["relationType"])
            about = entity(subject, kinds.get(subject), relation=relation.lower(), target=target)
            yield from builder.memory(
                f"{subject}\0{relation}\0{target}",
                f"{subject} {relation.replace('_', ' ')} {target}",
                category="entities/relations", tags=["relation"], subject=subject,
                entities=[about, entity(target, kinds.get(target))],
            )  # fmt: skip


# Texts with the fields of a memory in lines of JSON, as somebody's own script writes them


def _is_texts(source: SourcePath) -> bool:
    return not source.is_folder and any(_text_of(fields) for fields in source.first_lines())


def _texts(source: SourcePath) -> Iterator[SourceEntry]:
    builder = source.builder("texts", source.path)
    for number, fields in source.lines(source.path):
        if not (text := _text_of(fields)):
            builder.fault(f"line {number}: it has no 'text'")
            continue
        rest = fields.keys() - _FIELDS - {"text", "content", "id"}
        yield from builder.memory(
            fields.get("id") or text, text,
            **{name: value for name, value in fields.items() if name in _FIELDS},
            data={"metadata": {name: fields[name] for name in sorted(rest)}} if rest else None,
        )  # fmt: skip


def _text_of(fields: dict[str, Json]) -> str:
    text = fields.get("text") or fields.get("content")
    return text.strip() if isinstance(text, str) else ""


# Rows in lines of JSON, as in an export, and backup archives


def _is_rows(source: SourcePath) -> bool:
    whole = len(source.head) == source.stat.st_size
    return source.head.startswith(_GZIP) or state_files.are_rows(source.head, whole=whole)


def _rows(source: SourcePath) -> Iterator[Document]:
    """The lines in parts; those of an archive after all its checksums were verified."""
    try:
        if not source.head.startswith(_GZIP):
            with open_file(source.path, source.path.parent) as file:
                yield from _parts(source.path, file)
            return
        from ...cloud import archive  # noqa: PLC0415 - only archives need it

        with tempfile.TemporaryDirectory(prefix="thermocline-import-") as folder:
            manifest = archive.read(source.path, Path(folder))
            with (Path(folder) / archive.ROWS).open("rb") as file:
                yield from _parts(source.path, file)
        prefix = f"{archive.WORKSPACE}/"
        if files := sum(entry.path.startswith(prefix) for entry in manifest.files):
            source.fault(source.path, f"{files} files of its workspace")
    except (OSError, ThermoclineError) as error:
        source.fault(source.path, reason(error, source.path))


def _parts(path: Path, file: BinaryIO) -> Iterator[Document]:
    lines: list[bytes] = []
    size = 0
    while line := file.readline(_LONGEST):
        lines.append(line)
        size += len(line)
        if size > _BYTES or len(lines) >= _LINES:
            yield Document(path, b"".join(lines), 0.0, "rows")
            lines, size = [], 0
    if lines:
        yield Document(path, b"".join(lines), 0.0, "rows")


MEM0: Final = Format(
    "mem0", _is_mem0, _mem0, "the JSON of `get_all()`: a list of objects with 'memory'"
)
MCP_MEMORY: Final = Format(
    "mcp-memory", _is_graph, _graph, "JSON lines with the 'type' entity or relation"
)
TEXTS: Final = Format("texts", _is_texts, _texts, "JSON lines with 'text' or 'content'")
JSONL: Final = Format("jsonl", _is_rows, _rows, "rows of `thermocline export`, or a backup")
