"""What is to happen by itself, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from .schedules import Job
from .steps import Step, steps_of

# The steps of EvoClaw's that may have a rhythm of their own, by the names it has for them.
APART: Final[Mapping[str, Step]] = {
    "warm_eviction": "evict",
    "tree_prune": "prune",
    "tree_rebuild": "rebuild",
}
RHYTHMS: Final[Mapping[str, str | None]] = {
    "hourly": "0 * * * *",
    "daily": "0 0 * * *",
    "weekly": "0 0 * * 1",
    "monthly": "0 0 1 * *",
    "never": None,
}


class Plan(msgspec.Struct, frozen=True):
    """What is to happen by itself.

    Attributes:
        jobs: the larger ones last.
        jitter_seconds: over how long the beginnings are spread.
        retention_years: how long the archive keeps what is frozen; 0: for ever.
        categories: words of headings in daily notes, and where they lead.
        note_days, max_note_bytes: which daily notes are read.
    """

    jobs: tuple[Job, ...]
    jitter_seconds: float
    retention_years: float
    categories: dict[str, str]
    note_days: int
    max_note_bytes: int


def jobs_of(
    crons: Mapping[str, str | None], rhythms: Mapping[str, str | None] | None = None
) -> tuple[Job, ...]:
    """The jobs by their expressions; one without an expression is none.

    Args:
        crons: those of quick, daily, monthly and merging.
        rhythms: by EvoClaw's name of a step a word of `RHYTHMS`, which takes the step out of the
            runs and gives it times of its own; None leaves it in them.
    """
    apart = {name: word for name, word in (rhythms or {}).items() if word is not None}
    taken_out = {APART[name] for name in apart}
    wanted: list[tuple[str, str | None, tuple[Step, ...]]] = [
        *((name, RHYTHMS[word], (APART[name],)) for name, word in apart.items()),
        ("merging", crons.get("merging"), ("merge",)),
        ("quick", crons.get("quick"), steps_of("quick")),
        ("daily", crons.get("daily"), steps_of("daily")),
        ("monthly", crons.get("monthly"), steps_of("monthly")),
    ]
    return tuple(
        Job(name, cron, steps if name in apart else _without(steps, taken_out))
        for name, cron, steps in wanted
        if cron is not None
    )


def _without(steps: tuple[Step, ...], taken_out: set[Step]) -> tuple[Step, ...]:
    return tuple(step for step in steps if step not in taken_out)
