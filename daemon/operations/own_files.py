"""The agent's own files: knowledge, reflections, episodes, skills."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET
from msgspec.structs import asdict

from ..errors import InvalidInput, NotFound
from ..files.own_files import long_warning
from ..language.secrets import secrets_in
from ..memory import checks, own_files
from ..memory.own_files import EPISODES, KNOWLEDGE, REFLECTIONS, EpisodeLine, Reflection, Skill
from ..shapes import own_files as shapes
from ..store import own_entries
from ..store.own_entries import OwnEntry
from ..thinking import distillation
from ..thinking.distillation import Measure
from ..thinking.model_or_rules import AskOptions
from .operation import Operation
from .scope import Scope
from .views import View, one_line, secret_warning, view_of

_USER_CHARS: Final = 200
# Gentle: the agent has considered each line worth keeping.
_FOLDING: Final = Measure(aggression=0.4)


@Operation("GET", "/api/reflections")
async def reflections(scope: Scope, query: shapes.ReflectionQuery) -> shapes.ReflectionPage:
    """List what the agent has learned, newest first."""
    found, total = await _page(scope, "reflections", query.limit, query.offset, query.type)
    return shapes.ReflectionPage(
        [one.item for one in found if isinstance(one.item, Reflection)], total
    )


@Operation("POST", "/api/reflections", role="write")
async def reflect(scope: Scope, body: shapes.ReflectionBody) -> shapes.ReflectionStored:
    """Add a reflection to `memory/reflections.jsonl`."""
    made = Reflection(
        ts=own_files.stamp(scope.now),
        type=body.type,
        context=one_line(body.context, "context"),
        lesson=one_line(body.lesson, "lesson"),
        action=None if body.action is None else one_line(body.action, "action"),
    )
    return await _added(scope, REFLECTIONS, made, shapes.ReflectionStored)


@Operation("GET", "/api/episodes")
async def episodes(scope: Scope, query: shapes.EpisodeQuery) -> shapes.EpisodePage:
    """List what conversations came to, newest first."""
    found, total = await _page(scope, "episodes", query.limit, query.offset, query.outcome)
    return shapes.EpisodePage(
        [one.item for one in found if isinstance(one.item, EpisodeLine)], total
    )


@Operation("POST", "/api/episodes", role="write")
async def add_episode(scope: Scope, body: shapes.EpisodeBody) -> shapes.EpisodeStored:
    """Add an episode to `memory/episodes.jsonl`."""
    made = EpisodeLine(
        ts=own_files.stamp(scope.now),
        user=checks.check_short(body.user, "user", _USER_CHARS) or "user",
        agent=scope.agent,
        summary=one_line(body.summary, "summary"),
        tags=checks.check_tags(body.tags),
        outcome=body.outcome,
    )
    return await _added(scope, EPISODES, made, shapes.EpisodeStored)


@Operation("GET", "/api/skills")
async def skills(scope: Scope, query: shapes.SkillQuery) -> shapes.SkillPage:
    """List the skills."""
    found, total = await _page(scope, "skills", query.limit, query.offset, None)
    return shapes.SkillPage([_view(one) for one in found], total)


@Operation("GET", "/api/skills/{id}")
async def skill(scope: Scope, id: shapes.SkillId) -> shapes.SkillView:  # noqa: A002 - the part of the path
    """Read a skill with its text."""
    async with scope.store() as store:
        found = await scope.daemon.own_files.read(store, lambda db: own_entries.skill(db, id))
    if found is None or not isinstance(found.item, Skill):
        raise NotFound(f"no skill is called {checks.shown(id)}", field="id")
    view = _view(found)
    view.text = found.item.text
    return view


@Operation("POST", "/api/skills", role="write")
async def add_skill(scope: Scope, body: shapes.SkillBody) -> shapes.SkillStored:
    """Write a skill into `memory/skills/`, and into its index."""
    if not own_files.is_skill_id(body.id):
        raise InvalidInput(
            f"cannot name a skill {checks.shown(body.id)}",
            field="id",
            hint="use letters, digits and dashes",
        )
    text = body.text
    if text:
        checks.check_text(f"-{text}", scope.settings.limits.max_text_bytes + 1)
    made = Skill(body.id, one_line(body.description, "description"), text)
    async with scope.store(create=True) as store:
        added = await scope.daemon.own_files.add_skill(store, made)
    return shapes.SkillStored(made.id, made.path, added)


@Operation("GET", "/api/knowledge")
async def knowledge(scope: Scope, query: shapes.KnowledgeQuery) -> shapes.KnowledgeView:
    """Read the knowledge, and propose what to fold while it is too long."""
    async with scope.store() as store:
        found = await scope.daemon.own_files.read(
            store, lambda db: own_entries.part(db, own_entries.KNOWLEDGE)
        )
    view = shapes.KnowledgeView(
        text=found.text,
        path=KNOWLEDGE,
        lines=found.lines,
        max_lines=own_files.KNOWLEDGE_LINES,
        updated_at=found.changed_at,
        warning=long_warning(found.lines) if found.lines > own_files.KNOWLEDGE_LINES else UNSET,
    )
    if query.fold:
        view.folds = own_files.folds(found.text)
        if view.folds:
            said = "\n".join(fold.text for fold in view.folds)
            derived = await distillation.facts(
                said, _FOLDING, scope.daemon.thinking.model, AskOptions()
            )
            view.folded = [one.fact for one in derived.value] or UNSET
            view.mode = derived.way
    return view


async def _page(
    scope: Scope, name: str, limit: int, offset: int, kind: str | None
) -> tuple[list[OwnEntry], int]:
    limit = scope.page_limit(limit)
    async with scope.store() as store:
        return await scope.daemon.own_files.read(
            store,
            lambda db: (
                own_entries.newest(db, name, limit, offset, kind),
                own_entries.count(db, name, kind),
            ),
        )


async def _added(scope: Scope, log: str, made: Reflection | EpisodeLine, kind: type[View]) -> View:
    async with scope.store(create=True) as store:
        await scope.daemon.own_files.add_line(store, log, made)
    return view_of(kind, made, warning=secret_warning(secrets_in(asdict(made))))


def _view(entry: OwnEntry) -> shapes.SkillView:
    assert isinstance(entry.item, Skill)
    return shapes.SkillView(entry.id, entry.item.description, entry.item.path, entry.created_at)
