"""The steps of upkeep, and the modes, which are sets of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, get_args

Step: TypeAlias = Literal[
    "ingest", "evict", "prune", "merge", "rebuild", "clean", "tombstones", "hot", "report"
]
Mode: TypeAlias = Literal["quick", "daily", "monthly", "full"]

# In the order in which they are done: what is taken in goes through all the others, and the hot
# state is written last, when what it shows is settled.
STEPS: Final[tuple[Step, ...]] = get_args(Step)
MODES: Final[tuple[Mode, ...]] = get_args(Mode)

_QUICK: Final[tuple[Step, ...]] = ("evict", "hot")
_DAILY: Final[tuple[Step, ...]] = (*_QUICK, "ingest", "prune", "merge")
_MONTHLY: Final[tuple[Step, ...]] = (*_DAILY, "rebuild", "clean", "tombstones")
_OF_MODE: Final[dict[str, tuple[Step, ...]]] = {
    "quick": _QUICK,
    "daily": _DAILY,
    "monthly": _MONTHLY,
    "full": (*_MONTHLY, "report"),
}


def steps_of(mode: Mode) -> tuple[Step, ...]:
    """What a mode consists of, in order."""
    return in_order(_OF_MODE[mode])


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Each of `steps` once, in the order in which they are done."""
    wanted = set(steps)
    return tuple(step for step in STEPS if step in wanted)
