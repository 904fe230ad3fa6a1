"""What the configuration says about models, as it is needed here."""

from __future__ import annotations

from typing import Literal

import msgspec

from .budget import Limits, Spent
from .supervisor import WorkerState
from .usage import PurposeUsage


class Plan(msgspec.Struct, frozen=True):
    """Which models there are, where, and what they may take.

    Attributes:
        model: the one for every purpose that `models` does not name.
        models: for a purpose, those to ask, in order.
        base: the URL of the server for the provider of `main`.
        bases: likewise for other providers.
        key_file: the file of the keys; None for systemd's credential.
        endpoint_hosts: where a caller's own endpoint may be, besides on this device.
        limits: for a day.
        timeouts: seconds for each purpose.
        idle_seconds: without a request, after which the process ends.
        cache_entries: how many answers are kept.
    """

    model: str | None = None
    models: dict[str, tuple[str, ...]] = {}
    base: str | None = None
    bases: dict[str, str] = {}
    key_file: str | None = None
    endpoint_hosts: tuple[str, ...] = ()
    limits: Limits = Limits()
    timeouts: dict[str, float] = {}
    idle_seconds: float = 120.0
    cache_entries: int = 256

    @property
    def main(self) -> str | None:
        """The model whose provider a lone key and `base` are for."""
        return self.model or next((name for names in self.models.values() for name in names), None)

    def models_for(self, purpose: str) -> tuple[str, ...]:
        """The models to ask, in order; none: it goes by rules."""
        alone = (self.model,) if self.model is not None else ()
        return self.models.get(purpose, alone)

    def seconds_for(self, purpose: str) -> float:
        """How long a reply may take."""
        return self.timeouts.get(purpose, 30.0)


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
    limits: Limits
    cache: CacheState
    purposes: dict[str, PurposeUsage]
    cleared: dict[str, int]
