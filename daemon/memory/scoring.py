"""How much a memory is worth now, its tier, and which of the warm memories are archived.

The formula is EvoClaw's. Its setting is called a half life but is the time constant: after
`half_life_days` a memory keeps 1/e = 0.368 of its score, not one half.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from .records import Memory, Tier

DAY: Final = 86_400.0
YEAR: Final = 365.2425 * DAY
HOT: Final = 0.7
WARM: Final = 0.3
COLD: Final = 0.05

# The default importance of an event: Tiny Claw's values, the rest profClaw's.
IMPORTANCE_BY_EVENT: Final = {
    "correction": 0.9,
    "preference_learned": 0.8,
    "user_preference": 0.8,
    "error_recovery": 0.75,
    "task_solution": 0.7,
    "fact_stored": 0.6,
    "task_completed": 0.5,
    "delegation_result": 0.5,
    "tool_chain": 0.5,
}
DEFAULT_IMPORTANCE: Final = 0.5

GRACE_DAYS: Final = 7.0
# The minimum of a fading importance; lower given values stay unchanged.
AGED_FLOOR: Final = 0.05
_STEPS_PER_DAY: Final = 4.0
_STEP_FACTOR: Final = 0.95


class Scoring(msgspec.Struct, frozen=True):
    """The two constants of the formula; the configuration's section `scoring`."""

    half_life_days: Annotated[float, Meta(ge=0.001, le=36_500)] = 30.0
    reinforcement_boost: Annotated[float, Meta(ge=0, le=10)] = 0.1


def score(
    importance: float,
    created_at: float,
    access_count: int,
    now: float,
    scoring: Scoring,
    *,
    pinned: bool = False,
) -> float:
    """Importance × exp(−age_days / half_life_days) × (1 + boost × access_count).

    Not clamped: a frequently used memory can exceed 1. A memory from the future has age 0, so that
    a clock that was set back does not raise scores. A pinned memory stays hot.
    """
    age_days = max(0.0, now - created_at) / DAY
    fading = math.exp(-age_days / scoring.half_life_days)
    value = importance * fading * (1.0 + scoring.reinforcement_boost * access_count)
    return max(value, HOT) if pinned else value


def score_of(memory: Memory | WarmEntry, now: float, scoring: Scoring) -> float:
    """The score of `memory` at the time `now`."""
    importance, created_at, uses = memory.importance, memory.created_at, memory.access_count
    return score(importance, created_at, uses, now, scoring, pinned=memory.pinned)


def tier_of(value: float) -> Tier:
    """The tier of a score."""
    if value >= HOT:
        return "hot"
    if value >= WARM:
        return "warm"
    return "cold" if value >= COLD else "frozen"


def aged(importance: float, idle_days: float) -> float:
    """The importance after `idle_days` without use, by Tiny Claw's rule.

    Every six hours Tiny Claw reduces the importance of memories unused for more than seven days by
    5 %, so its result depends on how often it runs. Here it is a function of time: t idle hours
    beyond the seven days are t / 6 runs, each a factor of 0.95. Nothing is written back, so that
    two devices do not count the same hours twice.
    """
    if importance <= AGED_FLOOR:
        return importance
    steps = max(0.0, idle_days - GRACE_DAYS) * _STEPS_PER_DAY
    return max(AGED_FLOOR, importance * math.pow(_STEP_FACTOR, steps))


def default_importance(event: str) -> float:
    """The importance of a memory if the caller gave none."""
    return IMPORTANCE_BY_EVENT.get(event, DEFAULT_IMPORTANCE)


# The fields of a record beyond EvoClaw's, left out if they have the default of `Memory`.
_FURTHER: Final = (
    "type", "event", "subject", "outcome", "original_category", "tags", "source", "actor", "group",
    "position", "pinned", "standing", "data", "last_accessed_at", "expires_at", "merged_into",
    "superseded_by", "writer",
)  # fmt: skip
_DEFAULTS: Final = {field.name: field.default for field in msgspec.structs.fields(Memory)}
_FURTHER_DEFAULTS: Final = [_DEFAULTS[name] for name in _FURTHER]
_further: Final = attrgetter(*_FURTHER)
_json: Final = msgspec.json.Encoder()
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
    longest = _record(memory, 0.0, _LONGEST_TIER)
    longest |= {"access_count": uses, "last_accessed_at": _LONGEST_TIME}
    whole_digits = len(str(1 + _HIGHEST_BOOST * uses))
    score_width = whole_digits + 1 + _SCORE_DECIMALS
    return len(_json.encode(longest)) - 3 + score_width


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
    worth = sorted(staying, key=lambda e: (e.pinned, score_of(e, now, scoring), e.created_at, e.id))
    for entry in worth:
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
        and score_of(entry, now, scoring) < limits.eviction_threshold
    ]


def _record(memory: Memory, value: float, tier: str) -> dict[str, Any]:
    metadata = memory.metadata
    fields: dict[str, Any] = {
        "id": memory.id,
        "text": memory.text,
        "category": memory.category,
        "importance": memory.importance,
        "created_at": memory.created_at,
        "access_count": memory.access_count,
        "score": value,
        "metadata": {
            "urls": list(metadata.urls),
            "commands": list(metadata.commands),
            "paths": list(metadata.paths),
        },
        "tier": tier,
    }
    if memory.updated_at != memory.created_at:
        fields["updated_at"] = memory.updated_at
    further = zip(_FURTHER, _further(memory), _FURTHER_DEFAULTS, strict=True)
    fields |= {name: content for name, content, default in further if content != default}
    if memory.tags:
        fields["tags"] = list(memory.tags)
    return fields
