"""The last two hours of an agent, minute by minute."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from ..errors import ThermoclineError
from ..runtime.minutes import Minutes
from ..shapes.stats import LiveMetrics
from ..store import outbox
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from .operation import operation
from .scope import Scope
from .status import resident_bytes


async def show(scope: Scope) -> LiveMetrics:
    """Show an agent's last two hours by minute: stores, recalls and their times, replication."""
    minutes, agent = scope.daemon.minutes, scope.agent
    minutes.note_memory(resident_bytes())
    if (store := scope.daemon.agents.open_stores().get(agent)) is not None:
        await _note_outbox(minutes, agent, store)
    return LiveMetrics(
        since=minutes.first(),
        step_seconds=60.0,
        stores=[int(one or 0) for one in minutes.of(agent, "stores")],
        recalls=[int(one or 0) for one in minutes.of(agent, "recalls")],
        recall_p50_ms=[*minutes.of(agent, "p50_ms")],
        recall_p99_ms=[*minutes.of(agent, "p99_ms")],
        outbox=_whole(minutes.of(agent, "outbox")),
        sync_ms=[*minutes.of(agent, "sync_ms")],
        memory_bytes=_whole(minutes.memory()),
    )


async def sample(minutes: Minutes, agents: Agents) -> None:
    """Note what is measured rather than counted: outboxes of open agents, and memory."""
    minutes.note_memory(resident_bytes())
    for agent, store in list(agents.open_stores().items()):
        await _note_outbox(minutes, agent, store)
    minutes.forget_idle()


async def _note_outbox(minutes: Minutes, agent: str, store: AgentStore) -> None:
    # A store that is being closed tells nothing.
    with contextlib.suppress(ThermoclineError):
        queued = await store.read(outbox.queued)
        minutes.note(agent, "outbox", sum(queued.values()))


def _whole(values: Sequence[float | None]) -> list[int | None]:
    return [None if one is None else int(one) for one in values]


OPERATIONS: Final = (operation("GET", "/api/metrics/live", show),)
