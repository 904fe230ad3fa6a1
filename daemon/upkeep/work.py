"""What a step of upkeep has to work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import tzinfo
from typing import Any, TypeAlias

import msgspec

from ..store.agent_store import AgentStore
from .advice import Advisor
from .ingesting import Ingestion

# What a step found and did, under the names of `Outcome`.
Facts: TypeAlias = dict[str, Any]


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One run for one agent.

    Attributes:
        store: the agent's memory, open as long as the run takes.
        mode: the run's name.
        dry_run: nothing may be changed.
        ingestion: where the daily notes are, and how they are read.
        days: of how many days, today's included; None: of those since they were read last.
        retention_years: how long the archive keeps what is frozen; 0: for ever.
        zone: the device's time zone.
        followed: whether a replica follows the agent, and looks after the tombstones.
        advisor, endpoint: the model, and which one the call wants.
    """

    store: AgentStore
    mode: str
    dry_run: bool
    ingestion: Ingestion
    retention_years: float
    zone: tzinfo
    followed: bool
    days: int | None = None
    advisor: Advisor | None = None
    endpoint: str | None = None


StepFunction: TypeAlias = Callable[[Work], Awaitable[Facts]]
