"""How memories look in answers."""

from __future__ import annotations

from typing import Any

import msgspec

from ..memory.records import Memory, Metadata, Tier, Type
from ..memory.scoring import Scoring, score_of, tier_of
from ..recall.recall import Hit


class MemoryView(msgspec.Struct, kw_only=True):
    """A memory as an answer shows it. Times are seconds since the epoch.

    `content` repeats `text` for callers who know it by that name. `score` and `tier` are those
    of this moment; `archived` tells whether it has left the warm memories.
    `superseded_by` names a newer memory that contradicts it.
    """

    id: str
    text: str
    content: str
    type: Type
    event: str
    subject: str
    outcome: str
    category: str
    original_category: str
    tags: tuple[str, ...]
    importance: float
    source: str
    actor: str
    group: str
    position: int | None
    metadata: Metadata
    data: Any
    created_at: float
    updated_at: float
    last_accessed_at: float | None
    access_count: int
    expires_at: float | None
    merged_into: str | None
    superseded_by: str | None
    archived: bool
    score: float
    tier: Tier
    writer: str


class Explanation(msgspec.Struct):
    """Why a memory stands where it does.

    Attributes:
        match, recency, importance: what the relevance is made of, each 0 to 1.
        signals: what each signal added to the match, before it was set against the best.
        words: those of the query that it has.
        lenders: the ids of the neighbours whose words count for it.
        path: the category of the tree that named it, or "".
        reason: what a model says of that category, or "".
    """

    match: float
    recency: float
    importance: float
    signals: dict[str, float]
    words: tuple[str, ...]
    lenders: tuple[str, ...]
    path: str
    reason: str


class HitView(MemoryView, kw_only=True):
    """A memory that answers a query; `relevance` is 0 to 1, but in mode `tree` EvoClaw's."""

    relevance: float
    search_method: str
    parts: Explanation | msgspec.UnsetType = msgspec.UNSET


_PLAIN = (
    "id", "text", "type", "event", "subject", "outcome", "category", "original_category", "tags",
    "importance", "source", "actor", "group", "position", "metadata", "data", "created_at",
    "updated_at", "last_accessed_at", "access_count", "expires_at", "merged_into",
    "superseded_by", "writer",
)  # fmt: skip


def memory_view(memory: Memory, now: float, scoring: Scoring) -> MemoryView:
    """`memory` with its score and tier at `now`."""
    return MemoryView(**memory_fields(memory, now, scoring))


def hit_view(hit: Hit, now: float, scoring: Scoring, *, explain: bool = False) -> HitView:
    """One hit of an answer; with `explain`, why it stands where it does."""
    ranked = hit.ranked
    view = HitView(
        **memory_fields(hit.memory, now, scoring),
        relevance=round(ranked.relevance, 6),
        search_method=hit.method,
    )
    if explain:
        view.parts = Explanation(
            match=round(ranked.match, 6),
            recency=round(ranked.recency, 6),
            importance=round(ranked.importance, 6),
            signals=hit.signals,
            words=hit.words,
            lenders=hit.lenders,
            path=hit.path,
            reason=hit.reason,
        )
    return view


def memory_fields(memory: Memory, now: float, scoring: Scoring) -> dict[str, Any]:
    """What makes a `MemoryView` of `memory` at `now`."""
    value = score_of(memory, now, scoring)
    fields = {name: getattr(memory, name) for name in _PLAIN}
    fields["content"] = memory.text
    fields["archived"] = memory.archived_at is not None
    fields["score"] = round(value, 6)
    fields["tier"] = tier_of(value)
    return fields
