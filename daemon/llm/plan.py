"""How models are, for status and metrics."""

from __future__ import annotations

from typing import Literal

import msgspec

from .budget import DayLimits, Spent
from .supervisor import WorkerState
from .usage import PurposeUsage

State = Literal["off", "ready", "failing", "spent", "missing"]


class CacheState(msgspec.Struct, frozen=True):
    """How often a question had been answered before."""

    entries: int
    hits: int
    misses: int


class ModelStatus(msgspec.Struct, frozen=True):
    """Models at a glance.

    Attributes:
        state: `off` when none is configured, `spent` when the day's budget is, `missing` when
            litellm is not installed, `failing` when the latest call failed.
        models: those configured, by purpose.
        resting: those left alone for a while after they failed, and why.
        day: the one that `today` and `limits` are for.
        cleared: how many secrets of each kind were kept from models since the start.
    """

    state: State
    worker: WorkerState
    models: dict[str, tuple[str, ...]]
    resting: dict[str, str]
    day: str
    today: Spent
    limits: DayLimits
    cache: CacheState
    purposes: dict[str, PurposeUsage]
    cleared: dict[str, int]
