"""How much a memory is worth now, and the tier that follows from that.

The formula is EvoClaw's. Its setting is called a half life but is the time constant: after
`half_life_days` a memory keeps 1/e = 0.368 of its score, not one half.
"""

from __future__ import annotations

import math
from typing import Annotated, Final

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


def score_of(memory: Memory, now: float, scoring: Scoring) -> float:
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
