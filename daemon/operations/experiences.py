"""Experiences: what worked for an intent, and what somebody prefers."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta

from ..language.secrets import secrets_in
from ..memory import checks
from ..memory.experiences import FADED, Experience, ExperienceType, confidence, overlap
from ..memory.scoring import DAY
from ..recall.recall import Request, recall
from ..recall.sources import EXPERIENCES
from ..schemas import learning as schemas
from ..schemas.common import Limit, Offset, RecallLimit, Share, Words
from ..schemas.conversations import ExperiencesObserved, Talk
from ..store.records import experiences
from ..store.records.selecting import Filters
from ..tasks.extraction import observed
from .conversations import reported
from .operation import Operation, Scope
from .views import one_line, secret_warning, view_of

_NAME_CHARS: Final = 200
_INTENT_CHARS: Final = 2_000
_VALUE_CHARS: Final = 1_000
# The factor by which more candidates are compared by tags than are returned.
_COMPARED: Final = 4
_MOST_COMPARED: Final = 100


@Operation("GET", "/api/experiences")
async def index(
    scope: Scope,
    type: ExperienceType | None = None,
    user: schemas.User | None = None,
    min_weight: Share = 0.0,
    half_life_days: schemas.HalfLife | None = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> schemas.ExperiencePage:
    """List experiences, those of most weight first.

    With `half_life_days` weights are by that half-life instead of `experiences.half_life_days`.
    """
    limit = scope.page_limit(limit)
    page, total = await scope.read(
        lambda db: experiences.page(
            db,
            now=scope.now,
            types=type,
            user=user,
            least=min_weight,
            days=half_life_days,
            limit=limit,
            offset=offset,
        )
    )
    return schemas.ExperiencePage(
        [experience_view(experience, scope, half_life_days) for experience in page], total
    )


@Operation("GET", "/api/experiences/{id}")
async def get(scope: Scope, id: str) -> schemas.ExperienceView:
    """Read an experience, pruned or not."""
    return experience_view(await scope.read(lambda db: experiences.EXPERIENCES.get(db, id)), scope)


@Operation("POST", "/api/experiences", role="write", statuses=(201,))
async def add(scope: Scope, body: schemas.ExperienceBody) -> schemas.ExperienceView:
    """Store an experience."""
    experience = Experience(
        id=secrets.token_hex(8),
        type=body.type,
        intent=one_line(body.intent, "intent", _INTENT_CHARS),
        solution=checks.check_data(body.solution, field="solution"),
        success_score=body.success_score,
        tags=checks.check_tags(body.tags),
        conversation=checks.check_short(body.conversation, "conversation", _NAME_CHARS),
        user=checks.check_short(body.user, "user", _NAME_CHARS),
        created_at=scope.now,
        last_used_at=scope.now,
        weight=body.weight,
    )
    await scope.write(lambda tx: experiences.EXPERIENCES.put(tx, experience, new=True), create=True)
    warning = secret_warning(
        secrets_in({"intent": experience.intent, "solution": experience.solution})
    )
    return experience_view(experience, scope, warning=warning)


@Operation("GET", "/api/experiences/search")
async def search(
    scope: Scope,
    q: Words,
    tags: tuple[str, ...] = (),
    limit: RecallLimit = 5,
    half_life_days: schemas.HalfLife | None = None,
) -> schemas.SimilarExperiences:
    """Find experiences with a similar intent, those with more of the `tags` first.

    What has faded is left out, with `half_life_days` by that half-life.
    """
    tuning = scope.settings.recall
    async with scope.store() as store:
        near = await scope.daemon.vectors.near(store, q)
        request = Request(
            text=q,
            filters=Filters(half_life_days=half_life_days),
            sources=frozenset({EXPERIENCES.name}),
            limit=min(_MOST_COMPARED, limit * (_COMPARED if tags else 1)),
            # The tags decide among all that are similar.
            min_relevance=0.0 if tags else None,
            weights=tuning.weights,
            now=scope.now,
            local=scope.zone,
            nearness=near.nearness,
        )
        seconds = scope.settings.limits.query_seconds
        answer = await store.read(lambda db: recall(db, request, tuning), seconds=seconds)
    wanted = frozenset(tag.casefold() for tag in checks.check_tags(tags))
    # Missing tags reduce the relevance by up to half.
    shares = [overlap(wanted, hit.item.tags) if wanted else 1.0 for hit in answer.hits]
    similar = [
        (hit, hit.relevance * (1 + share) / 2)
        for hit, share in zip(answer.hits, shares, strict=True)
    ]
    similar.sort(key=lambda pair: -pair[1])
    views = [
        experience_view(
            hit.item,
            scope,
            half_life_days,
            relevance=round(hit.relevance, 6),
            similarity=round(similarity, 6),
        )
        for hit, similarity in similar[:limit]
    ]
    return schemas.SimilarExperiences(q, views, answer.why or UNSET, near.note or UNSET)


@Operation("POST", "/api/experiences/{id}/use", role="write")
async def use(scope: Scope, id: str) -> schemas.ExperienceView:
    """Count a use of an experience: from now on it has its full weight again."""
    return experience_view(await scope.write(lambda tx: experiences.use(tx, id)), scope)


@Operation("DELETE", "/api/experiences/{id}", role="write")
async def remove(scope: Scope, id: str) -> schemas.ExperienceDeleted:
    """Delete an experience for good."""
    return schemas.ExperienceDeleted(
        await scope.write(lambda tx: experiences.EXPERIENCES.delete(tx, id))
    )


@Operation("POST", "/api/experiences/prune", role="write")
async def prune(
    scope: Scope,
    min_weight: schemas.Weight = FADED,
    half_life_days: schemas.HalfLife | None = None,
    dry_run: bool = False,
) -> schemas.Pruned:
    """Take what has faded out of recall; the history keeps it. `dry_run` only lists it.

    With `half_life_days` what has faded by that half-life.
    """
    least, days = min_weight, half_life_days
    async with scope.store() as store:
        if dry_run:
            faded = await store.read(lambda db: experiences.fading(db, scope.now, least, days))
        else:
            faded = await store.write(lambda tx: experiences.prune(tx, least, days))
        left = await store.read(experiences.EXPERIENCES.count)
    remaining = left - len(faded) if dry_run else left
    views = [experience_view(experience, scope, days) for experience in faded]
    return schemas.Pruned(views, remaining, not dry_run)


@Operation("POST", "/api/experiences/decay", role="write")
async def decay(
    scope: Scope, half_life_days: schemas.HalfLife | None = None, dry_run: bool = False
) -> schemas.Pruned:
    """Do the same as `prune`, by profClaw's name: weights fade by themselves."""
    return await prune(scope, half_life_days=half_life_days, dry_run=dry_run)


@Operation("GET", "/api/experiences/stats")
async def stats(
    scope: Scope, half_life_days: schemas.HalfLife | None = None
) -> schemas.ExperienceStats:
    """Count the experiences, with `half_life_days` the faded ones by that half-life."""
    totals, faded = await scope.read(
        lambda db: (
            experiences.totals(db),
            experiences.fading(db, scope.now, days=half_life_days),
        )
    )
    age = 0.0 if totals.created_at is None else max(0.0, scope.now - totals.created_at)
    return schemas.ExperienceStats(
        total=sum(totals.by_type.values()),
        by_type=totals.by_type,
        avg_age=round(age / DAY, 3),
        faded=len(faded),
    )


@Operation("POST", "/api/experiences/observe", role="write")
async def observe(scope: Scope, body: Talk) -> ExperiencesObserved:
    """Store the decisions, solutions, errors and preferences of a conversation as experiences."""
    report = await reported(scope, body)
    user = checks.check_short(body.user, "user", _NAME_CHARS)
    learned = await observed(
        report.turns, report.conversation, user, scope.now, scope.daemon.thinking.model.rules
    )
    stored = await scope.write(
        lambda tx: [experiences.put_or_use(tx, experience) for experience in learned], create=True
    )
    return ExperiencesObserved(
        conversation=report.conversation,
        stored=[experience_view(experience, scope) for experience, is_new in stored if is_new],
        known=[experience_view(experience, scope) for experience, is_new in stored if not is_new],
        skipped=report.skipped or UNSET,
    )


@Operation("GET", "/api/preferences")
async def preferences(
    scope: Scope, user: schemas.User | None = None, limit: Limit = 50, offset: Offset = 0
) -> schemas.PreferencePage:
    """List what a user prefers, by default all users."""
    limit = scope.page_limit(limit)
    page, total = await scope.read(lambda db: experiences.preferences(db, user, limit, offset))
    return schemas.PreferencePage([_preference(experience, scope) for experience in page], total)


@Operation("POST", "/api/preferences", role="write")
async def prefer(
    scope: Scope,
    category: Annotated[str, Meta(min_length=1, max_length=_NAME_CHARS, description="not blank")],
    value: Annotated[str, Meta(min_length=1, max_length=_VALUE_CHARS, description="not blank")],
    user: schemas.User = "",
) -> schemas.PreferenceView:
    """Store what a user prefers, such as `vim` as the `editor`; told again, it is surer."""
    user = checks.check_short(user, "user", _NAME_CHARS)
    category = one_line(category, "category", _NAME_CHARS)
    value = one_line(value, "value", _VALUE_CHARS)
    preference = await scope.write(
        lambda tx: experiences.prefer(tx, user, category, value), create=True
    )
    return _preference(preference, scope)


def experience_view(
    experience: Experience, scope: Scope, half_life_days: float | None = None, **more: Any
) -> schemas.ExperienceView:
    """An experience as answers show it."""
    return view_of(
        schemas.ExperienceView,
        experience,
        success_score=round(experience.success_score, 12),
        weight=_weight(experience, scope, half_life_days),
        initial_weight=experience.weight,
        **more,
    )


def _weight(experience: Experience, scope: Scope, days: float | None = None) -> float:
    days = days or scope.settings.experiences.half_life_days
    return round(experience.weight_at(scope.now, days), 12)


def _preference(experience: Experience, scope: Scope) -> schemas.PreferenceView:
    return view_of(
        schemas.PreferenceView,
        experience,
        category=experience.solution["category"],
        value=experience.solution["value"],
        confidence=round(confidence(experience.use_count), 12),
        repeats=experience.use_count,
        weight=_weight(experience, scope),
    )
