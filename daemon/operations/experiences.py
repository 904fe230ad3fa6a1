"""Experiences: what worked for an intent, and what somebody prefers."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Final

from msgspec import UNSET

from ..language.secrets import secrets_in
from ..memory import checks
from ..memory.experiences import FADED, Experience, confidence, overlap
from ..memory.scoring import DAY
from ..recall.recall import Hit, Request, recall
from ..recall.sources import EXPERIENCES
from ..shapes import experiences as shapes
from ..shapes.observe import ExperiencesObserved, Talk
from ..store import experiences
from ..thinking.experiences import observed
from .conversations import reported
from .operation import Operation
from .scope import Scope
from .views import either, name_of, one_line, secret_warning, view_of

_NAME_CHARS: Final = 200
_INTENT_CHARS: Final = 2_000
_VALUE_CHARS: Final = 1_000
# The factor by which more candidates are compared by tags than are returned.
_COMPARED: Final = 4
_MOST_COMPARED: Final = 100


@Operation("GET", "/api/experiences")
async def index(scope: Scope, query: shapes.ExperienceQuery) -> shapes.ExperiencePage:
    """List experiences, those of most weight first."""
    read = partial(
        experiences.page,
        now=scope.now,
        types=query.type,
        user=either(query.user, query.userId, "user", None),
        least=either(query.min_weight, query.minWeight, "min_weight", 0.0),
        limit=scope.page_limit(query.limit),
        offset=query.offset,
    )
    found, total = await scope.read(read)
    return shapes.ExperiencePage([experience_view(one, scope.now) for one in found], total)


@Operation("GET", "/api/experiences/{id}")
async def get(scope: Scope, id: str) -> shapes.ExperienceView:  # noqa: A002 - the part of the path
    """Read an experience, pruned or not."""
    return experience_view(await scope.read(lambda db: experiences.get(db, id)), scope.now)


@Operation("POST", "/api/experiences", role="write", statuses=(201,))
async def add(scope: Scope, body: shapes.ExperienceBody) -> shapes.ExperienceView:
    """Store an experience."""
    made = Experience(
        id=secrets.token_hex(8),
        type=body.type,
        intent=one_line(body.intent, "intent", _INTENT_CHARS),
        solution=checks.check_data(body.solution, field="solution"),
        success_score=either(body.success_score, body.successScore, "success_score", 1.0),
        tags=checks.check_tags(body.tags),
        conversation=name_of(body.conversation, body.conversationId, "conversation"),
        user=name_of(body.user, body.userId, "user"),
        created_at=scope.now,
        last_used_at=scope.now,
        weight=body.weight,
    )
    await scope.write(lambda tx: experiences.put(tx, made), create=True)
    view = experience_view(made, scope.now)
    view.warning = secret_warning(secrets_in({"intent": made.intent, "solution": made.solution}))
    return view


@Operation("GET", "/api/experiences/search")
async def search(scope: Scope, query: shapes.ExperienceSearch) -> shapes.SimilarExperiences:
    """Find experiences with a similar intent."""
    tuning = scope.settings.recall
    request = Request(
        text=query.q,
        sources=frozenset({EXPERIENCES.name}),
        limit=min(_MOST_COMPARED, query.limit * (_COMPARED if query.tags else 1)),
        # The tags decide among all that are similar.
        min_relevance=0.0 if query.tags else None,
        weights=tuning.weights,
        now=scope.now,
        local=scope.zone,
    )
    answer = await scope.read(lambda db: recall(db, request, tuning), timed=True)
    asked = frozenset(tag.casefold() for tag in checks.check_tags(query.tags))
    views = [found_view(hit, scope.now) for hit in answer.hits]
    for view in views:
        assert isinstance(view.relevance, float)
        share = overlap(asked, view.tags) if asked else 1.0
        view.similarity = round(view.relevance * (1 + share) / 2, 6)
    views.sort(key=lambda view: view.similarity or 0.0, reverse=True)
    return shapes.SimilarExperiences(query.q, views[: query.limit], answer.why or UNSET)


@Operation("POST", "/api/experiences/{id}/use", role="write")
async def use(scope: Scope, id: str) -> shapes.ExperienceView:  # noqa: A002 - the part of the path
    """Count a use of an experience: from now on it has its full weight again."""
    return experience_view(await scope.write(lambda tx: experiences.use(tx, id)), scope.now)


@Operation("DELETE", "/api/experiences/{id}", role="write")
async def remove(scope: Scope, id: str) -> shapes.ExperienceDeleted:  # noqa: A002 - the part of the path
    """Delete an experience for good."""
    await scope.write(lambda tx: experiences.delete(tx, id))
    return shapes.ExperienceDeleted(id)


@Operation("POST", "/api/experiences/prune", role="write")
async def prune(scope: Scope, body: shapes.PruneBody) -> shapes.Pruned:
    """Take what has faded out of recall; the history keeps it."""
    least = either(body.min_weight, body.minWeight, "min_weight", FADED)
    async with scope.store() as store:
        if body.dry_run:
            faded = await store.read(lambda db: experiences.fading(db, scope.now, least))
        else:
            faded = await store.write(lambda tx: experiences.prune(tx, least))
        left = await store.read(experiences.count)
    kept = left - len(faded) if body.dry_run else left
    return shapes.Pruned([experience_view(one, scope.now) for one in faded], kept, not body.dry_run)


@Operation("GET", "/api/experiences/stats")
async def stats(scope: Scope) -> shapes.ExperienceStats:
    """Count the experiences."""
    totals, faded = await scope.read(
        lambda db: (experiences.totals(db), experiences.fading(db, scope.now))
    )
    age = 0.0 if totals.created_at is None else max(0.0, scope.now - totals.created_at)
    return shapes.ExperienceStats(
        total=sum(totals.by_type.values()),
        by_type=totals.by_type,
        avg_age=round(age / DAY, 3),
        faded=len(faded),
    )


@Operation("POST", "/api/experiences/observe", role="write")
async def observe(scope: Scope, body: Talk) -> ExperiencesObserved:
    """Store the decisions, solutions, errors and preferences of a conversation as experiences."""
    told = reported(scope, body)
    user = checks.check_short(body.userId or "", "userId", _NAME_CHARS)
    found = await observed(
        told.said, told.conversation, user, scope.now, scope.daemon.thinking.model.rules
    )
    done = await scope.write(lambda tx: [experiences.tell(tx, one) for one in found], create=True)
    return ExperiencesObserved(
        conversation=told.conversation,
        stored=[experience_view(one, scope.now) for one, is_new in done if is_new],
        known=[experience_view(one, scope.now) for one, is_new in done if not is_new],
        skipped=told.skipped or UNSET,
    )


@Operation("GET", "/api/preferences")
async def preferences(scope: Scope, query: shapes.PreferenceQuery) -> shapes.PreferencePage:
    """List what users prefer."""
    limit = scope.page_limit(query.limit)
    user = either(query.user, query.userId, "user", None)
    found, total = await scope.read(
        lambda db: experiences.preferences(db, user, limit, query.offset)
    )
    return shapes.PreferencePage([_preference(one, scope.now) for one in found], total)


@Operation("POST", "/api/preferences", role="write")
async def prefer(scope: Scope, body: shapes.PreferenceBody) -> shapes.PreferenceView:
    """Store what a user prefers; told again, it is surer."""
    user = name_of(body.user, body.userId, "user")
    category = one_line(body.category, "category", _NAME_CHARS)
    value = one_line(body.value, "value", _VALUE_CHARS)
    made = await scope.write(lambda tx: experiences.prefer(tx, user, category, value), create=True)
    return _preference(made, scope.now)


def experience_view(one: Experience, now: float) -> shapes.ExperienceView:
    """An experience as answers show it."""
    return view_of(
        shapes.ExperienceView,
        one,
        success_score=round(one.success_score, 12),
        weight=round(one.weight_at(now), 12),
        initial_weight=one.weight,
    )


def found_view(hit: Hit, now: float) -> shapes.ExperienceView:
    """An experience that answers a question."""
    view = experience_view(hit.item, now)
    view.relevance = round(hit.relevance, 6)
    return view


def _preference(one: Experience, now: float) -> shapes.PreferenceView:
    return view_of(
        shapes.PreferenceView,
        one,
        category=one.solution["category"],
        value=one.solution["value"],
        confidence=round(confidence(one.use_count), 12),
        repeats=one.use_count,
        weight=round(one.weight_at(now), 12),
    )
