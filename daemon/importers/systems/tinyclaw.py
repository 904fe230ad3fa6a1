"""Tiny Claw's memory engine (SQLite), and TinyClaw's folder of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from ..found import GivenPath, Origin, ReadFault, Reading, lines_of, text_of, written
from ..memory_md import statements
from .tables import seconds, table_rows

NAME: Final = "tinyclaw"
_TABLE: Final = "episodic_memory"
_KNOWLEDGE, _REFLECTIONS, _EPISODES = "knowledge.md", "reflections.jsonl", "episodes.jsonl"
_SKILLS: Final = "skills/index.json"
_EVENTS: Final = {"failure": "error_recovery", "success": "task_solution"}
_ALONE: Final = frozenset({"", "default-user"})


def detect(look: GivenPath) -> bool:
    """Whether a database has its table, or a folder the logs."""
    return bool(_folder(look)) or bool(look.with_tables(_TABLE))


def read(look: GivenPath) -> Reading:
    """Events, key-value facts and messages of the engine; knowledge, logs and skills of files."""
    for copy in look.with_tables(_TABLE):
        origin = Origin(NAME, copy.path.stat().st_mtime)
        for table, entry in (
            ("episodic_memory", _event),
            ("memory", _pair),
            ("messages", _message),
        ):
            positions: dict[str, int] = {}
            for row in table_rows(copy, table, "created_at"):
                if isinstance(row, ReadFault):
                    yield row
                    continue
                user = str(row.get("user_id") or "")
                positions[user] = positions.get(user, -1) + 1
                yield from entry(origin, f"{copy.path}: {table}", row, positions[user])
    if folder := _folder(look):
        yield from _files(folder)


def _folder(look: GivenPath) -> Path | None:
    if not look.is_folder:
        return None
    places = (look.path, look.path / "memory")
    return next((one for one in places if (one / _REFLECTIONS).is_file()), None)


def _event(origin: Origin, place: str, row: dict[str, Any], _: int) -> Reading:
    text, user = str(row.get("content") or ""), str(row.get("user_id") or "")
    yield from origin.memory(
        place, str(row.get("id")), text, outcome=str(row.get("outcome") or "")[:4000],
        type="episodic", event=str(row.get("event_type") or "")[:64] or None,
        importance=row.get("importance"), access_count=row.get("access_count"),
        actor="" if user in _ALONE else user[:200], category="episodes",
        created_at=seconds(row.get("created_at")),
        last_accessed_at=seconds(row.get("last_accessed_at")),
    )  # fmt: skip


def _pair(origin: Origin, place: str, row: dict[str, Any], _: int) -> Reading:
    key, user = str(row.get("key") or ""), str(row.get("user_id") or "")
    yield from origin.memory(
        place, f"kv/{user}/{key}", f"{key}: {row.get('value')}", subject=key[:500],
        category="facts", actor="" if user in _ALONE else user[:200], importance=0.6,
        created_at=seconds(row.get("created_at")), updated_at=seconds(row.get("updated_at")),
    )  # fmt: skip


def _message(origin: Origin, place: str, row: dict[str, Any], position: int) -> Reading:
    user = str(row.get("user_id") or "")
    yield from origin.turn(
        place, f"message/{row.get('id')}", row.get("content"), role=str(row.get("role") or ""),
        group=f"{NAME}/{user}", position=position, created_at=seconds(row.get("created_at")),
    )  # fmt: skip


def _files(folder: Path) -> Reading:
    knowledge = folder / _KNOWLEDGE
    if knowledge.is_file():
        origin, text = Origin(NAME, written(knowledge)), text_of(knowledge, folder)
        if isinstance(text, ReadFault):
            yield text
        else:
            for _, category, said in statements(text):
                if not said.startswith("_No entries yet"):
                    key = f"knowledge/{said}"
                    yield from origin.memory(str(knowledge), key, said, category=category)
    for name, entry in ((_REFLECTIONS, _reflection), (_EPISODES, _episode)):
        path = folder / name
        origin = Origin(NAME, written(path))
        for line in lines_of(path, folder) if path.exists() else ():
            if isinstance(line, ReadFault):
                yield line
            else:
                yield from entry(origin, str(path), line[1])
    yield from _skills(folder)


def _reflection(origin: Origin, place: str, line: dict[str, Any]) -> Reading:
    lesson, context = str(line.get("lesson") or ""), str(line.get("context") or "")
    said = f"{context}: {lesson}" if context else lesson
    yield from origin.memory(
        place, f"reflection/{line.get('ts')}/{lesson}", said,
        outcome=str(line.get("action") or "")[:4000], category="reflections",
        event=_EVENTS.get(str(line.get("type")), "fact_stored"), importance=0.7,
        tags=[str(line.get("type") or "insight")], created_at=seconds(line.get("ts")),
    )  # fmt: skip


def _episode(origin: Origin, place: str, line: dict[str, Any]) -> Reading:
    summary, outcome = str(line.get("summary") or ""), str(line.get("outcome") or "")
    yield from origin.memory(
        place, f"episode/{line.get('ts')}/{summary}", summary, type="episodic",
        event="task_completed", category="episodes", tags=line.get("tags"),
        outcome="" if outcome == "unknown" else outcome[:4000],
        actor=str(line.get("user") or "")[:200], created_at=seconds(line.get("ts")),
    )  # fmt: skip


def _skills(folder: Path) -> Reading:
    path = folder / _SKILLS
    if not path.is_file():
        return
    text = text_of(path, folder)
    try:
        index = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError) as error:
        yield ReadFault(str(path), f"it is not JSON ({error})")
        return
    if isinstance(text, ReadFault):
        yield text
    for name, description in index.items() if isinstance(index, dict) else ():
        if "/" in name or name.startswith("."):
            yield ReadFault(str(path), "a skill's name is a path")
            continue
        body = text_of(path.parent / f"{name}.md", folder)
        if isinstance(body, ReadFault):
            yield body
            body = ""
        origin = Origin(NAME, written(path))
        yield from origin.memory(
            str(path), f"skill/{name}", f"{name}: {description}\n\n{body}".strip(),
            type="procedural", category="skills", subject=name[:500],
        )  # fmt: skip
