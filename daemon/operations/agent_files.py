"""The agent's own files: knowledge, reflections, episodes, skills."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Annotated, Final, TypeVar

from msgspec import UNSET, Meta
from msgspec.structs import asdict

from ..errors import InvalidInput, NotFound
from ..files.agent_files import long_warning
from ..language.secrets import secrets_in
from ..memory import agent_files, checks
from ..memory.agent_files import (
    EPISODES,
    KNOWLEDGE,
    REFLECTIONS,
    EpisodeLine,
    EpisodeOutcome,
    Reflection,
    ReflectionType,
    Skill,
)
from ..schemas import learning as schemas
from ..schemas.common import Limit, Offset
from ..store.database import rows
from ..store.records import agent_entries
from ..store.records.agent_entries import OwnEntry
from .operation import Operation, Scope
from .views import View, one_line, secret_warning, view_of

T = TypeVar("T")
_USER_CHARS: Final = 200
OneLine = Annotated[str, Meta(max_length=4_000, description="one line, not blank")]


@Operation("GET", "/api/reflections")
async def reflections(
    scope: Scope, type: ReflectionType | None = None, limit: Limit = 50, offset: Offset = 0
) -> schemas.ReflectionPage:
    """List what the agent has learned, newest first."""
    entries, total, why = await _page(scope, "reflections", limit, offset, type)
    return schemas.ReflectionPage(
        [entry.item for entry in entries if isinstance(entry.item, Reflection)], total, why or UNSET
    )


@Operation("POST", "/api/reflections", role="write")
async def reflect(
    scope: Scope,
    type: ReflectionType,
    context: OneLine,
    lesson: OneLine,
    action: OneLine | None = None,
) -> schemas.ReflectionStored:
    """Add a reflection to `memory/reflections.jsonl`: what was learned, and the action to take."""
    reflection = Reflection(
        ts=agent_files.stamp(scope.now),
        type=type,
        context=one_line(context, "context"),
        lesson=one_line(lesson, "lesson"),
        action=None if action is None else one_line(action, "action"),
    )
    return await _added(scope, REFLECTIONS, reflection, schemas.ReflectionStored)


@Operation("GET", "/api/episodes")
async def episodes(
    scope: Scope, outcome: EpisodeOutcome | None = None, limit: Limit = 50, offset: Offset = 0
) -> schemas.EpisodePage:
    """List what conversations came to, newest first."""
    entries, total, why = await _page(scope, "episodes", limit, offset, outcome)
    return schemas.EpisodePage(
        [entry.item for entry in entries if isinstance(entry.item, EpisodeLine)],
        total,
        why or UNSET,
    )


@Operation("POST", "/api/episodes", role="write")
async def add_episode(
    scope: Scope,
    summary: OneLine,
    tags: tuple[str, ...] = (),
    outcome: EpisodeOutcome = "informational",
    user: schemas.User = "user",
) -> schemas.EpisodeStored:
    """Add an episode to `memory/episodes.jsonl`: what a conversation came to, and its user."""
    episode = EpisodeLine(
        ts=agent_files.stamp(scope.now),
        user=checks.check_short(user, "user", _USER_CHARS) or "user",
        agent=scope.agent,
        summary=one_line(summary, "summary"),
        tags=checks.check_tags(tags),
        outcome=outcome,
    )
    return await _added(scope, EPISODES, episode, schemas.EpisodeStored)


@Operation("GET", "/api/skills")
async def skills(scope: Scope, limit: Limit = 100, offset: Offset = 0) -> schemas.SkillPage:
    """List the skills."""
    entries, total, _ = await _page(scope, "skills", limit, offset, None)
    return schemas.SkillPage([_view(entry) for entry in entries], total)


@Operation("GET", "/api/skills/{id}")
async def skill(scope: Scope, id: schemas.SkillId) -> schemas.SkillView:
    """Read a skill with its text."""
    entry = await _read(scope, lambda db: agent_entries.skill(db, id))
    if entry is None or not isinstance(entry.item, Skill):
        raise NotFound(f"no skill is called {checks.shown(id)}", field="id")
    view = _view(entry)
    view.text = entry.item.text
    return view


@Operation("POST", "/api/skills", role="write")
async def add_skill(
    scope: Scope, id: schemas.SkillId, description: OneLine, text: str = "", force: bool = False
) -> schemas.SkillStored:
    """Write a skill into `memory/skills/`, and into its index.

    A skill: when to use it, and its text in Markdown. `force` replaces one of the same id. Without
    a text a new skill gets an empty file, and the file of a known one stays.
    """
    if not agent_files.SKILL_NAME.fullmatch(id):
        raise InvalidInput(
            f"cannot name a skill {checks.shown(id)}",
            field="id",
            hint=f"use {agent_files.SKILL_NAMES}",
        )
    if text:
        checks.check_text(f"-{text}", scope.settings.limits.max_text_bytes + 1)
    new = Skill(id, one_line(description, "description"), text)
    async with scope.store(create=True) as store:
        added = await scope.daemon.agent_files.add_skill(store, new, replace=force)
        if added:
            await store.write(lambda tx: rows.note_mark(tx, "skill", new.id, rows.CREATED))
    return schemas.SkillStored(new.id, new.path, added)


@Operation("GET", "/api/knowledge")
async def knowledge(scope: Scope) -> schemas.KnowledgeView:
    """Read the knowledge, with a warning if it is too long for every turn."""
    part = await _read(scope, lambda db: agent_entries.part(db, agent_entries.KNOWLEDGE))
    return schemas.KnowledgeView(
        text=part.text,
        path=KNOWLEDGE,
        lines=part.lines,
        max_lines=agent_files.KNOWLEDGE_LINES,
        updated_at=part.changed_at,
        warning=long_warning(part.lines) if part.lines > agent_files.KNOWLEDGE_LINES else UNSET,
    )


async def _page(
    scope: Scope, name: str, limit: int, offset: int, kind: str | None
) -> tuple[list[OwnEntry], int, str]:
    limit = scope.page_limit(limit)
    return await _read(
        scope,
        lambda db: (
            agent_entries.newest(db, name, limit, offset, kind),
            agent_entries.count(db, name, kind),
            agent_entries.part(db, name).text,
        ),
    )


async def _read(scope: Scope, read: Callable[[sqlite3.Connection], T]) -> T:
    async with scope.store() as store:
        await scope.make_own_files(store)
        return await scope.daemon.agent_files.read(store, read)


async def _added(scope: Scope, log: str, entry: Reflection | EpisodeLine, kind: type[View]) -> View:
    async with scope.store(create=True) as store:
        line = await scope.daemon.agent_files.add_line(store, log, entry)
        name = "reflection" if log == REFLECTIONS else "episode"
        await store.write(
            lambda tx: rows.note_mark(tx, name, agent_files.digest(line), rows.CREATED)
        )
    return view_of(kind, entry, warning=secret_warning(secrets_in(asdict(entry))))


def _view(entry: OwnEntry) -> schemas.SkillView:
    assert isinstance(entry.item, Skill)
    return schemas.SkillView(entry.id, entry.item.description, entry.item.path, entry.created_at)
