"""Tiny Claw's memory engine (SQLite), and TinyClaw's folder of files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ..found import Found, GivenPath, Origin
from ..memory_md import statements
from ..values import seconds

NAME: Final = "tinyclaw"
_TABLE: Final = "episodic_memory"
_KNOWLEDGE, _REFLECTIONS, _EPISODES = "knowledge.md", "reflections.jsonl", "episodes.jsonl"
_SKILLS: Final = "skills/index.json"
_EVENTS: Final = {"failure": "error_recovery", "success": "task_solution"}
_ALONE: Final = frozenset({"", "default-user"})


def detect(look: GivenPath) -> bool:
    """Whether a database has its table, or a folder the logs."""
    return bool(_folder(look)) or bool(look.with_tables(_TABLE))


def read(look: GivenPath) -> Iterator[Found]:
    """Events, key-value facts and messages of the engine; knowledge, logs and skills of files."""
    for copy in look.with_tables(_TABLE):
        for table, entry in ((_TABLE, _event), ("memory", _pair), ("messages", _message)):
            origin = look.origin(NAME, copy.path, table)
            positions: dict[str, int] = {}
            for row in look.rows(copy, table, "created_at"):
                user = str(row.get("user_id") or "")
                positions[user] = positions.get(user, -1) + 1
                yield from entry(origin, row, user, positions[user])
    if folder := _folder(look):
        yield from _files(look, folder)


def _folder(look: GivenPath) -> Path | None:
    if not look.is_folder:
        return None
    places = (look.path, look.path / "memory")
    return next((one for one in places if (one / _REFLECTIONS).is_file()), None)


def _event(origin: Origin, row: dict[str, Any], user: str, _: int) -> Iterator[Found]:
    yield from origin.memory(
        str(row.get("id")), str(row.get("content") or ""), outcome=row.get("outcome"),
        type="episodic", event=row.get("event_type"),
        importance=row.get("importance"), access_count=row.get("access_count"),
        actor="" if user in _ALONE else user, category="episodes",
        created_at=seconds(row.get("created_at")),
        last_accessed_at=seconds(row.get("last_accessed_at")),
    )  # fmt: skip


def _pair(origin: Origin, row: dict[str, Any], user: str, _: int) -> Iterator[Found]:
    key = str(row.get("key") or "")
    yield from origin.memory(
        f"kv/{user}/{key}", f"{key}: {row.get('value')}", subject=key,
        category="facts", actor="" if user in _ALONE else user, importance=0.6,
        created_at=seconds(row.get("created_at")), updated_at=seconds(row.get("updated_at")),
    )  # fmt: skip


def _message(origin: Origin, row: dict[str, Any], user: str, position: int) -> Iterator[Found]:
    yield from origin.turn(
        f"message/{row.get('id')}", row.get("content"), role=row.get("role"),
        group=f"{NAME}/{user}", position=position, created_at=seconds(row.get("created_at")),
    )  # fmt: skip


def _files(look: GivenPath, folder: Path) -> Iterator[Found]:
    knowledge = folder / _KNOWLEDGE
    if knowledge.is_file():
        origin = look.origin(NAME, knowledge)
        for _, category, said in statements(look.text(knowledge)):
            if not said.startswith("_No entries yet"):
                yield from origin.memory(f"knowledge/{said}", said, category=category)
    for name, entry in ((_REFLECTIONS, _reflection), (_EPISODES, _episode)):
        path = folder / name
        origin = look.origin(NAME, path)
        for _, line in look.lines(path) if path.exists() else ():
            yield from entry(origin, line)
    yield from _skills(look, folder)


def _reflection(origin: Origin, line: dict[str, Any]) -> Iterator[Found]:
    lesson, context = str(line.get("lesson") or ""), str(line.get("context") or "")
    said = f"{context}: {lesson}" if context else lesson
    yield from origin.memory(
        f"reflection/{line.get('ts')}/{lesson}", said,
        outcome=line.get("action"), category="reflections",
        event=_EVENTS.get(str(line.get("type")), "fact_stored"), importance=0.7,
        tags=[str(line.get("type") or "insight")], created_at=seconds(line.get("ts")),
    )  # fmt: skip


def _episode(origin: Origin, line: dict[str, Any]) -> Iterator[Found]:
    summary, outcome = str(line.get("summary") or ""), str(line.get("outcome") or "")
    yield from origin.memory(
        f"episode/{line.get('ts')}/{summary}", summary, type="episodic",
        event="task_completed", category="episodes", tags=line.get("tags"),
        outcome="" if outcome == "unknown" else outcome,
        actor=line.get("user"), created_at=seconds(line.get("ts")),
    )  # fmt: skip


def _skills(look: GivenPath, folder: Path) -> Iterator[Found]:
    path = folder / _SKILLS
    if not path.is_file() or not (text := look.text(path)):
        return
    try:
        index = json.loads(text)
    except (ValueError, RecursionError) as error:
        look.fault(path, f"it is not JSON ({error})")
        return
    origin = look.origin(NAME, path)
    for name, description in index.items() if isinstance(index, dict) else ():
        if "/" in name or name.startswith("."):
            look.fault(path, "a skill's name is a path")
            continue
        body = look.text(path.parent / f"{name}.md")
        yield from origin.memory(
            f"skill/{name}", f"{name}: {description}\n\n{body}".strip(),
            type="procedural", category="skills", subject=name,
        )  # fmt: skip
