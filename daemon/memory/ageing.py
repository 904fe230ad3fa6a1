"""How importance and weight fade with time: laws of elapsed time, however often they are asked.

Tiny Claw looks every six hours and takes a twentieth off what was last used more than seven days
ago. Its rule therefore depends on how often it runs. Restated as a law: n runs multiply by 0.95ⁿ,
and t idle hours beyond the seven days hold t / 6 runs, so that importance is multiplied by
0.95^(t / 6) for every t. The law meets Tiny Claw's steps wherever its runs fall, lies between
them elsewhere, and composes: fading from t0 to t1 and then to t2 is fading from t0 to t2.

Nothing here needs to be written back. `aged_importance` is derived from what is stored, so
that two devices that both look cannot let the same hours pass twice.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from .records import Memory
from .scoring import DAY

HOUR: Final = 3_600.0


class Ageing(msgspec.Struct, frozen=True):
    """The constants of the law.

    Attributes:
        grace_days: how long an unused memory keeps its importance.
        step_hours, step_factor: beyond that, importance is multiplied by `step_factor` in
            every `step_hours`.
        floor: importance fades no lower; what was given less stays as it is.
        archive_below, archive_after_days: what has faded below the one, was never used, and is
            older than the other goes to the archive.
    """

    grace_days: float = 7.0
    step_hours: float = 6.0
    step_factor: float = 0.95
    floor: float = 0.05
    archive_below: float = 0.1
    archive_after_days: float = 30.0


TINY_CLAW: Final = Ageing()


def aged(
    importance: float, idle_since: float, start: float, end: float, ageing: Ageing = TINY_CLAW
) -> float:
    """What is left at `end` of the importance that a memory had at `start`.

    `idle_since` is its last use, or its creation. Hours before `start`, and those of the grace,
    do not count; an `end` before `start`, as after a clock was set back, changes nothing.
    """
    if importance <= ageing.floor:
        return importance
    counted_from = max(start, idle_since + ageing.grace_days * DAY)
    steps = max(0.0, end - counted_from) / (ageing.step_hours * HOUR)
    return max(ageing.floor, importance * math.pow(ageing.step_factor, steps))


def aged_importance(memory: Memory, now: float, ageing: Ageing = TINY_CLAW) -> float:
    """The importance of `memory` at `now`, faded since its last use; a use restores all of it."""
    idle_since = last_used(memory)
    return aged(memory.importance, idle_since, idle_since, now, ageing)


def fit_for_archive(memory: Memory, now: float, ageing: Ageing = TINY_CLAW) -> bool:
    """Whether `memory` has faded so far, unused, that only the archive should hold it.

    Tiny Claw deletes such a memory. Here it stays searchable, and a use brings it back.
    """
    if memory.archived_at is not None or memory.access_count > 0:
        return False
    old = now - memory.created_at > ageing.archive_after_days * DAY
    return old and aged_importance(memory, now, ageing) < ageing.archive_below


def last_used(memory: Memory) -> float:
    """When `memory` was last used; its creation, where it never was."""
    return max(memory.created_at, memory.last_accessed_at or memory.created_at)


def decayed_weight(weight: float, start: float, end: float, half_life_days: float = 30.0) -> float:
    """What is left at `end` of an experience's weight at `start`: half in every half life.

    profClaw's documented law, weight × 0.5^(days / half_life_days). It composes as `aged` does.
    """
    elapsed_days = max(0.0, end - start) / DAY
    return weight * math.pow(0.5, elapsed_days / half_life_days)
