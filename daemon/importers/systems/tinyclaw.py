"""Tiny Claw's memory engine (SQLite), and TinyClaw's folder of files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...memory.agent_files import NO_SUMMARY, whole_index
from ...memory.records import Json
from ..entries import EntryBuilder, SourceEntry
from ..memory_md import statements
from ..source import Format, SourcePath, head_of
from ..sqlite_copy import Copy
from ..values import seconds
from .databases import SelectedTable, read_tables

_NAME: Final = "tinyclaw"
_KNOWLEDGE, _REFLECTIONS, _EPISODES = "knowledge.md", "reflections.jsonl", "episodes.jsonl"
_SKILLS: Final = "skills/index.json"
_EVENTS: Final = {"failure": "error_recovery", "success": "task_solution"}
# The user `default-user` is the only one of a device.
_ACTOR: Final = "coalesce(nullif(user_id, 'default-user'), '') AS actor"
_TABLES: Final = {
    "episodic_memory": SelectedTable(
        f"""SELECT id AS key, content AS text, outcome, 'episodic' AS type, event_type AS event,
            importance, access_count, {_ACTOR}, 'episodes' AS category,
            seconds(created_at) AS created_at, seconds(last_accessed_at) AS last_accessed_at
        FROM t"""
    ),
    "memory": SelectedTable(
        f"""SELECT joined('kv', coalesce(user_id, ''), name) AS key,
            name || ': ' || coalesce(value, 'None') AS text, name AS subject, 'facts' AS category,
            {_ACTOR}, 0.6 AS importance,
            seconds(created_at) AS created_at, seconds(updated_at) AS updated_at
        FROM (SELECT coalesce(key, '') AS name, * FROM t)"""
    ),
    "messages": SelectedTable(
        """SELECT joined('message', id) AS key, content AS text, role,
            'tinyclaw/' || coalesce(user_id, '') AS "group", seconds(created_at) AS created_at
        FROM t""",
        "turn",
    ),
    # The summaries of older messages, which the engine may no longer have.
    "compactions": SelectedTable(
        f"""SELECT joined('compaction', id) AS key, summary AS text, 'episodic' AS type,
            'task_completed' AS event, {_ACTOR}, 'episodes' AS category,
            seconds(created_at) AS created_at
        FROM t"""
    ),
}


def _is_engine(copy: Copy) -> bool:
    return "episodic_memory" in copy.tables


def _detect(source: SourcePath) -> bool:
    return bool(_folder(source)) or any(map(_is_engine, source.databases()))


def _read(source: SourcePath) -> Iterator[SourceEntry]:
    """Events, key-value facts and messages of the engine; knowledge, logs and skills of files."""
    for copy in filter(_is_engine, source.databases()):
        yield from read_tables(_NAME, _TABLES, source, copy)
    folder = _folder(source)
    if folder is None:
        return
    knowledge = folder / _KNOWLEDGE
    if knowledge.is_file():
        builder = source.builder(_NAME, knowledge)
        for category, statement in _knowledge(source.text(knowledge)):
            yield from builder.memory(f"knowledge/{statement}", statement, category=category)
    for name, entry in ((_REFLECTIONS, _reflection), (_EPISODES, _episode)):
        path = folder / name
        builder = source.builder(_NAME, path)
        for _, line in source.lines(path) if path.exists() else ():
            yield from entry(builder, line)
    yield from _skills(source, folder / _SKILLS)


def _folder(source: SourcePath) -> Path | None:
    """The folder with entries; the files themselves are made at an agent's start."""
    for folder in (source.path, source.path / "memory") if source.is_folder else ():
        if next(_knowledge(head_of(folder / _KNOWLEDGE).decode(errors="replace")), None):
            return folder
        logs = (_REFLECTIONS, _EPISODES, _SKILLS)
        if any(head_of(folder / name).strip() not in (b"", b"{}") for name in logs):
            return folder
    return None


def _knowledge(text: str) -> Iterator[tuple[str, str]]:
    for _, category, statement in statements(text):
        if not statement.startswith("_No entries yet"):
            yield category, statement


def _reflection(builder: EntryBuilder, line: dict[str, Json]) -> Iterator[SourceEntry]:
    lesson, context = str(line.get("lesson") or ""), str(line.get("context") or "")
    yield from builder.memory(
        f"reflection/{line.get('ts')}/{lesson}", f"{context}: {lesson}" if context else lesson,
        outcome=line.get("action"), category="reflections",
        event=_EVENTS.get(str(line.get("type")), "fact_stored"), importance=0.7,
        tags=[str(line.get("type") or "insight")], created_at=seconds(line.get("ts")),
    )  # fmt: skip


def _episode(builder: EntryBuilder, line: dict[str, Json]) -> Iterator[SourceEntry]:
    summary, outcome = str(line.get("summary") or ""), str(line.get("outcome") or "")
    if summary == NO_SUMMARY:
        builder.fault("episodes without a summary")
        return
    yield from builder.memory(
        f"episode/{line.get('ts')}/{summary}", summary, type="episodic",
        event="task_completed", category="episodes", tags=line.get("tags"),
        outcome="" if outcome == "unknown" else outcome,
        actor=line.get("user"), created_at=seconds(line.get("ts")),
    )  # fmt: skip


def _skills(source: SourcePath, path: Path) -> Iterator[SourceEntry]:
    if not path.is_file() or not (text := source.text(path)):
        return
    if (index := whole_index(text)) is None:
        source.fault(path, "it is not a JSON object")
        return
    builder = source.builder(_NAME, path)
    for name, description in index.items():
        if "/" in name or name.startswith("."):
            source.fault(path, "a skill's name is a path")
            continue
        body = source.text(path.parent / f"{name}.md")
        yield from builder.memory(
            f"skill/{name}", f"{name}: {description}\n\n{body}".strip(),
            type="procedural", category="skills", subject=name,
        )  # fmt: skip


TINYCLAW: Final = Format(
    *(_NAME, _detect, _read),
    f"an SQLite database with the table episodic_memory, or a folder with {_REFLECTIONS}",
)
