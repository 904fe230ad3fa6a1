"""The systems with an SQLite database: claude-mem, profClaw, ScalyClaw and Tiny Claw's engine.

A table is a SELECT `FROM t`, whose columns are those of an entry: `key`, `text` (or `texts`, a JSON
list of several), and the fields of a memory, a turn or an experience.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from thermocline.sync import Clocks, Row, stamp_at

from ...errors import InvalidInput
from ...memory.checks import parse_expiry
from ...memory.records import name_key
from ...store.apply import line_of
from ..entries import Document, EntryBuilder, SourceEntry, entity, json_list, json_of
from ..source import Format, SourcePath
from ..sqlite_copy import Copy
from ..values import seconds

_EXPERIENCE_TYPES: Final = frozenset(
    {"tool_chain", "user_preference", "task_solution", "error_recovery"}
)


class SelectedTable(NamedTuple):
    """What is read of a table."""

    select: str
    # What a row is. A turn without a `position` gets its number among those of its `group`.
    make: Literal["memory", "turn", "experience"] = "memory"
    order: str = "created_at"  # the column that orders the rows


def read_tables(
    system: str, tables: Mapping[str, SelectedTable], source: SourcePath, copy: Copy
) -> Iterator[SourceEntry]:
    """The entries of the tables that a database has."""
    for name, table in tables.items():
        builder = source.builder(system, copy.path, name)
        numbers: Counter[str] = Counter()
        for row in source.rows(copy, name, table.order, table.select):
            for column in row.keys() & {"tags", "paths"}:
                row[column] = json_list(row[column])
            for column in row.keys() & {"data", "solution"}:
                row[column] = json_of(row[column])
            if table.make == "experience":
                yield from _experience(builder, row)
            elif table.make == "turn":
                row.setdefault("position", numbers[row["group"]])
                numbers[row["group"]] += 1
                yield from builder.turn(row.pop("key"), row.pop("text"), **row)
            elif "texts" in row:
                key, texts = row.pop("key"), json_list(row.pop("texts"))
                for number, text in enumerate(texts):
                    yield from builder.memory(f"{key}/{number}", text, **row)
            else:
                yield from builder.memory(row.pop("key"), row.pop("text"), **row)


def _experience(builder: EntryBuilder, row: dict[str, Any]) -> Iterator[SourceEntry]:
    key, intent = row.pop("key"), str(row["intent"] or "").strip()
    if row["type"] not in _EXPERIENCE_TYPES or not intent:
        builder.fault(f"{key}: it has no known type, or no intent")
        return
    created = row["created_at"] or builder.written_at
    fields = {
        **row,
        "id": builder.id(f"experience/{key}"),
        "intent": intent[:4000],
        "conversation": str(row["conversation"] or "")[:200],
        "user": str(row["user"] or "")[:200],
        "created_at": created,
        "last_used_at": max(created, row["last_used_at"] or created),
    }
    yield SourceEntry(builder.place, fields, is_experience=True)


_CLAUDE_MEM_TABLES: Final = {
    # Each fact of an observation, else its narrative.
    "observations": SelectedTable(
        """SELECT joined(session, id) AS key, title AS subject, session AS "group",
            texts(facts, narrative, text, title) AS texts,
            category('projects', project) AS category, tags(json_array(kind), concepts) AS tags,
            CASE kind WHEN 'decision' THEN 0.8 WHEN 'bugfix' THEN 0.6 WHEN 'discovery' THEN 0.6
                ELSE 0.5 END AS importance,
            iif(kind = 'how-it-works', 'procedural', 'semantic') AS type, files_modified AS paths,
            iif(prompt_number, json_object('prompt', prompt_number), NULL) AS data,
            seconds(created_at_epoch, created_at) AS created_at
        FROM (SELECT coalesce(nullif(type, ''), 'observation') AS kind,
            coalesce(nullif(memory_session_id, ''), sdk_session_id, '') AS session, * FROM t)""",
        order="id",
    ),
    "session_summaries": SelectedTable(
        """SELECT joined(session, 'summary', id) AS key, session AS "group", request AS subject,
            labelled('request', request, 'investigated', investigated, 'learned', learned,
                'completed', completed, 'next steps', next_steps, 'notes', notes) AS text,
            'episodic' AS type, 'task_completed' AS event, '["session"]' AS tags,
            category('projects', project) AS category,
            seconds(created_at_epoch, created_at) AS created_at
        FROM (SELECT coalesce(nullif(memory_session_id, ''), sdk_session_id, '') AS session, *
            FROM t)""",
        order="id",
    ),
}


def _is_claude_mem(copy: Copy) -> bool:
    return copy.tables.keys() >= _CLAUDE_MEM_TABLES.keys()


def _claude_mem(source: SourcePath) -> Iterator[SourceEntry]:
    for copy in filter(_is_claude_mem, source.databases()):
        yield from read_tables("claude-mem", _CLAUDE_MEM_TABLES, source, copy)
        if prompts := sum(1 for _ in source.rows(copy, "user_prompts")):
            why = f"{prompts} prompts are not read: Claude Code's transcripts have them"
            source.fault(f"{copy.path}: user_prompts", f"{why}, with the answers")


_CHUNKS: Final = {
    # Each piece of a file or of a chat.
    "memory_chunks": SelectedTable(
        """SELECT joined('chunk', file, id) AS key, text, start_line AS position,
            iif(chat, 'conversations/profclaw', category('notes', file_name(file))) AS category,
            iif(chat, 'episodic', NULL) AS type, iif(chat, substr(file, 8), file) AS "group",
            json_object('lines', json_array(start_line, end_line)) AS data,
            seconds(created_at) AS created_at, seconds(updated_at) AS updated_at
        FROM (SELECT coalesce(path, '') AS file, path GLOB 'chat://*' AS chat, * FROM t)""",
        order="rowid",
    )
}
_EXPERIENCES: Final = {
    "experiences": SelectedTable(
        """SELECT id AS key, type, intent, solution, tags(tags) AS tags,
            within(success_score, 0.0, 1.0, 1.0) AS success_score,
            source_conversation_id AS conversation, user_id AS user,
            iif(typeof(use_count) = 'integer', use_count, 1) AS use_count,
            within(weight, 0.0, 1.0, 1.0) AS weight,
            seconds(created_at) AS created_at, seconds(last_used_at) AS last_used_at
        FROM t""",
        "experience",
    )
}


def _has_experiences(copy: Copy) -> bool:
    return copy.tables.get("experiences", set()) >= {"intent", "solution", "success_score"}


def _is_profclaw(copy: Copy) -> bool:
    return "memory_chunks" in copy.tables or _has_experiences(copy)


def _profclaw(source: SourcePath) -> Iterator[SourceEntry]:
    for copy in filter(_is_profclaw, source.databases()):
        tables = _CHUNKS | (_EXPERIENCES if _has_experiences(copy) else {})
        yield from read_tables("profclaw", tables, source, copy)


# Importance is from 1 to 10 there, from 0 to 1 here.
_SCALYCLAW: Final = """
    SELECT id AS key, content AS text, subject, type, category('scalyclaw', type) AS category,
        tags(tags) AS tags, coalesce(nullif(source, ''), 'scalyclaw') AS source, access_count,
        within(importance, 1.0, 10.0, 5.0) / 10.0 AS importance, consolidated_into AS merged_into,
        ttl AS expires_at, seconds(created_at) AS created_at, seconds(updated_at) AS updated_at,
        seconds(last_accessed_at) AS last_accessed_at
    FROM t"""


def _is_scalyclaw(copy: Copy) -> bool:
    return copy.tables.get("memories", set()) >= {"subject", "content", "consolidated_into"}


def _scalyclaw(source: SourcePath) -> Iterator[SourceEntry | Document]:
    """Each memory with its entities; a consolidated one is merged into its replacement.

    Entities were also named by deleted memories: rows have the number and the times of those
    mentions.
    """
    for copy in filter(_is_scalyclaw, source.databases()):
        builder = source.builder("scalyclaw", copy.path, "memories")
        entities: dict[str, list[dict[str, Any]]] = {}
        unstated, counted = 0, b""
        try:
            entities, unstated = _entities(copy)
            counted = _entity_rows(copy)
        except sqlite3.DatabaseError as error:
            source.fault(copy.path, f"the entities cannot be read ({error})")
        if unstated:
            why = f"relations that no memory states are not read: {unstated}"
            source.fault(f"{copy.path}: memory_relations", why)
        for row in source.rows(copy, "memories", "created_at", _SCALYCLAW):
            ttl, row["tags"] = row["expires_at"], json_list(row["tags"])
            row["expires_at"] = None
            if isinstance(ttl, str) and ttl.strip():
                try:
                    row["expires_at"] = parse_expiry(ttl, row["created_at"] or 0.0)
                except InvalidInput:
                    builder.fault(f"{row['key']}: ttl cannot be read; it is kept without")
            into = row["merged_into"]
            row["merged_into"] = builder.id(into) if into else None
            row["entities"] = entities.get(str(row["key"]))
            yield from builder.memory(row.pop("key"), row.pop("text"), **row)
        if counted:
            yield Document(copy.path, counted, builder.written_at, "rows")


def _entities(copy: Copy) -> tuple[dict[str, list[dict[str, Any]]], int]:
    entities = {str(row["id"]): row for row in copy.rows("memory_entities")}
    named: dict[str, dict[str, dict[str, Any]]] = {}
    unstated = 0

    def of_memory(memory: str, key: str) -> dict[str, Any]:
        fields = entity(entities[key].get("name"), entities[key].get("entity_type"))
        return named.setdefault(memory, {}).setdefault(key, fields)

    for row in copy.rows("memory_entity_mentions"):
        if str(row.get("entity_id")) in entities:
            of_memory(str(row.get("memory_id")), str(row["entity_id"]))
    for row in copy.rows("memory_relations"):
        subject, target = str(row.get("source_id")), str(row.get("target_id"))
        if row.get("memory_id") and subject in entities and target in entities:
            relation = str(row.get("relation"))[:120]
            link = {"relation": relation, "target": entities[target].get("name")}
            of_memory(str(row["memory_id"]), subject).setdefault("relations", []).append(link)
        else:
            unstated += 1
    return {memory: [*of_it.values()] for memory, of_it in named.items()}, unstated


def _entity_rows(copy: Copy) -> bytes:
    """Rows for the entities with more mentions than there are memories that name them."""
    mentions = Counter(str(row.get("entity_id")) for row in copy.rows("memory_entity_mentions"))
    lines = b""
    for row in copy.rows("memory_entities"):
        count, name = row.get("mention_count"), str(row.get("name") or "").strip()[:120]
        last = seconds(row.get("last_seen"))
        more = count - mentions[str(row["id"])] if isinstance(count, int) else 0
        if more <= 0 or last is None or not name_key(name):
            continue
        first = seconds(row.get("first_seen")) or last
        data = {"first_seen": first, "last_seen": last, "mentions": more, "name": name}
        clocks = Clocks(at=(stamp_at(last), "scalyclaw"))
        lines += line_of(Row(kind="entity", id=name_key(name), data=data, clocks=clocks))
    return lines


def _detects(is_ours: Any, source: SourcePath) -> bool:
    return any(map(is_ours, source.databases()))


CLAUDE_MEM: Final = Format(
    *("claude-mem", partial(_detects, _is_claude_mem), _claude_mem),
    f"an SQLite database with the tables {' and '.join(_CLAUDE_MEM_TABLES)}",
)
PROFCLAW: Final = Format(
    *("profclaw", partial(_detects, _is_profclaw), _profclaw),
    "an SQLite database with the table memory_chunks or experiences",
)
SCALYCLAW: Final = Format(
    *("scalyclaw", partial(_detects, _is_scalyclaw), _scalyclaw),
    "an SQLite database with the table memories (subject, content, consolidated_into)",
)
