"""The warm memories: their format in `warm-memory.json`, and which of them become cold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from .records import Memory
from .scoring import DAY, Scoring, score, score_of, tier_of

# The fields of a record beyond EvoClaw's, left out if they have the default of `Memory`.
_FURTHER: Final = (
    "type", "event", "subject", "outcome", "original_category", "tags", "source", "actor", "group",
    "position", "pinned", "standing", "data", "last_accessed_at", "expires_at", "merged_into",
    "superseded_by", "writer",
)  # fmt: skip
_DEFAULTS: Final = {field.name: field.default for field in msgspec.structs.fields(Memory)}
_SCORE_DECIMALS: Final = 6
_LONGEST_TIER: Final = "frozen"
_LONGEST_TIME: Final = 1_234_567_890.1234567
_MANY_USES: Final = 99_999
_HIGHEST_BOOST: Final = 10


class WarmLimits(msgspec.Struct, frozen=True):
    """The limits of the warm memories; section `warm`."""

    max_kb: Annotated[int, Meta(ge=1, le=102_400)] = 50
    retention_days: Annotated[float, Meta(ge=0, le=36_500)] = 30.0
    eviction_threshold: Annotated[float, Meta(ge=0, le=10)] = 0.3

    @property
    def max_bytes(self) -> int:
        """The size of the compact JSON list of all warm memories."""
        return self.max_kb * 1_024


class WarmEntry(msgspec.Struct, frozen=True, gc=False):
    """The fields of a memory that the warm cap depends on; `size` is its `record_size`."""

    id: str
    size: int
    importance: float
    created_at: float
    access_count: int
    pinned: bool = False


def record(memory: Memory, now: float, scoring: Scoring) -> dict[str, Any]:
    """One element of `warm-memory.json`, in EvoClaw's format.

    Our additional fields follow only if they differ from their default, so that a plain fact looks
    exactly as EvoClaw writes it. The score is that at `now`, rounded.
    """
    value = score_of(memory, now, scoring)
    return _record(memory, round(value, _SCORE_DECIMALS), tier_of(value))


def record_size(memory: Memory) -> int:
    """The maximum bytes of the record of `memory` as compact JSON, until it is edited.

    Independent of time and use: score, tier, access count (up to 99,999) and time of last access
    count with their maximum length, so that a stored size stays valid.
    """
    uses = max(memory.access_count, _MANY_USES)
    longest = msgspec.structs.replace(
        memory, access_count=uses, last_accessed_at=_LONGEST_TIME, archived_at=None
    )
    whole_digits = len(str(1 + _HIGHEST_BOOST * uses))
    score_width = whole_digits + 1 + _SCORE_DECIMALS
    return len(msgspec.json.encode(_record(longest, 0.0, _LONGEST_TIER))) - 3 + score_width


def overflow(
    entries: Sequence[WarmEntry], max_bytes: int, now: float, scoring: Scoring
) -> list[str]:
    """The ids to archive so that the list of the other memories fits in `max_bytes`.

    The size is that of the compact JSON list, with brackets and commas. The lowest score leaves
    first, pinned memories last; a memory larger than the whole cap always leaves.
    """
    leaving = [entry.id for entry in entries if entry.size + 2 > max_bytes]
    staying = [entry for entry in entries if entry.size + 2 <= max_bytes]
    # Every record has a comma except the last, and the brackets take two bytes.
    total = sum(entry.size + 1 for entry in staying) + 1
    if not staying or total <= max_bytes:
        return leaving
    for entry in sorted(staying, key=lambda entry: _worth(entry, now, scoring)):
        leaving.append(entry.id)
        total -= entry.size + 1
        if total <= max_bytes:
            break
    return leaving


def expired_from_warm(
    entries: Sequence[WarmEntry],
    now: float,
    scoring: Scoring,
    limits: WarmLimits = WarmLimits(),  # noqa: B008 - frozen
) -> list[str]:
    """The ids of memories older than `retention_days` and below `eviction_threshold`."""
    return [
        entry.id
        for entry in entries
        if now - entry.created_at > limits.retention_days * DAY
        and entry_score(entry, now, scoring) < limits.eviction_threshold
    ]


def entry_score(entry: WarmEntry, now: float, scoring: Scoring) -> float:
    """The score of a warm memory at `now`."""
    importance, created_at, uses = entry.importance, entry.created_at, entry.access_count
    return score(importance, created_at, uses, now, scoring, pinned=entry.pinned)


def _worth(entry: WarmEntry, now: float, scoring: Scoring) -> tuple[bool, float, float, str]:
    return entry.pinned, entry_score(entry, now, scoring), entry.created_at, entry.id


def _record(memory: Memory, value: float, tier: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": memory.id,
        "text": memory.text,
        "category": memory.category,
        "importance": memory.importance,
        "created_at": memory.created_at,
        "access_count": memory.access_count,
        "score": value,
        "metadata": {name: list(found) for name, found in asdict(memory.metadata).items()},
        "tier": tier,
    }
    if memory.updated_at != memory.created_at:
        fields["updated_at"] = memory.updated_at
    for name in _FURTHER:
        value_of = getattr(memory, name)
        if value_of != _DEFAULTS[name]:
            fields[name] = list(value_of) if name == "tags" else value_of
    return fields
