"""Experiences: what worked for an intent, and what users prefer. They fade unless used."""

from __future__ import annotations

import hashlib
from math import exp2, log2
from typing import Final, Literal, TypeAlias

import msgspec

from .indexing import index_text
from .records import Json
from .scoring import DAY

ExperienceType: TypeAlias = Literal[
    "tool_chain", "user_preference", "task_solution", "error_recovery"
]
# Days without a use after which a weight has halved, unless the settings say otherwise.
HALF_LIFE_DAYS: Final = 30.0
# Experiences of a lower weight are not found, and are pruned.
FADED: Final = 0.05
_LEAST_WEIGHT: Final = 1e-9
# The confidence in a preference that was stated once, and the fraction of the gap to 1 that each
# repetition closes.
_FIRST_CONFIDENCE: Final = 0.4
_GAP: Final = 0.2
_FIRST_WEIGHT: Final = 0.5
_WEIGHT_STEP: Final = 0.05


class Experience(msgspec.Struct, frozen=True, kw_only=True):
    """An intent and its result. Times are seconds since the epoch."""

    id: str
    type: ExperienceType
    intent: str
    solution: Json = None
    success_score: float = 1.0  # how well it worked, 0 to 1; for a preference the confidence
    tags: tuple[str, ...] = ()
    conversation: str = ""
    user: str = ""
    created_at: float
    last_used_at: float
    use_count: int = 1  # the number of uses or statements, including the first
    weight: float = 1.0  # its weight at the time of its last use, 0 to 1
    pruned_at: float | None = None  # the time since which it is no longer found

    def weight_at(self, now: float, half_life_days: float = HALF_LIFE_DAYS) -> float:
        """Its weight at a time; halves in every half-life without a use."""
        halvings = (now - self.last_used_at) / (half_life_days * DAY)
        return min(1.0, max(self.weight, _LEAST_WEIGHT) * exp2(-halvings))

    @property
    def summary(self) -> str:
        """Its intent and its solution, which may only repeat the intent."""
        solution = self.solution
        repeated = isinstance(solution, dict) and ":".join(map(str, solution.values()))
        if not solution or repeated == self.intent:
            return self.intent
        if not isinstance(solution, str):
            solution = msgspec.json.encode(solution).decode()
        return f"{self.intent} → {solution}"

    @property
    def whole_at(self) -> float:
        """The time at which its weight was or would have been 1, by the default half-life."""
        return self.last_used_at + seconds_from_whole(self.weight)


def seconds_from_whole(weight: float) -> float:
    """How long before its last use something of this weight would have had weight 1, negative."""
    return HALF_LIFE_DAYS * DAY * log2(max(weight, _LEAST_WEIGHT))


def confidence(repeats: int) -> float:
    """The confidence in a preference that was stated `repeats` times."""
    return 1 - (1 - _FIRST_CONFIDENCE) * pow(1 - _GAP, repeats - 1)


def preference_weight(repeats: int) -> float:
    """The weight of a preference that was stated `repeats` times."""
    return min(1.0, _FIRST_WEIGHT + _WEIGHT_STEP * (repeats - 1))


def identity(kind: ExperienceType, user: str, *parts: str) -> str:
    """The id of an experience: equal for the same words in any case and spacing."""
    words = "\0".join(
        " ".join(index_text(item).casefold().split()).rstrip(".!。") for item in parts
    )
    return hashlib.sha256(f"{kind}\0{user}\0{words}".encode()).hexdigest()[:16]


def overlap(wanted: frozenset[str], tags: tuple[str, ...]) -> float:
    """The share of the asked tags that an experience has."""
    return len(wanted & {tag.casefold() for tag in tags}) / len(wanted) if wanted else 0.0
