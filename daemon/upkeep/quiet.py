"""Which agents can wait with the small runs, since nobody has used them after the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ..memory.scoring import DAY
from ..store.agents import Agents
from .schedules import Due, Job
from .steps import Step

# What they do to a memory that nobody uses shows after days, and at the latest when it is used.
_SMALL: Final[frozenset[Step]] = frozenset({"evict", "prune", "hot"})


class _Quiet(msgspec.Struct, frozen=True):
    uses: int
    until: float


class Quiet:
    """Spares closed agents the opening every few hours that the small runs would take.

    It is kept in mind alone: after a restart every agent has a run before it can wait again.

    Args:
        agents: the memories, and how often each was used.
    """

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._noted: dict[str, _Quiet] = {}

    def ran(
        self, agent: str, uses: int, did: Due, times: Mapping[Job, float | None], now: float
    ) -> None:
        """Note that a run is through.

        Args:
            agent: whose.
            uses: how often the agent had been used when it began.
            did: what it did. Only where nothing small was left out the agent can wait.
            times: when each job there is comes next; None: never.
            now: the time. An agent waits for a day at most.
        """
        if all(set(job.steps) <= set(did.steps) for job in times if _is_small(job)):
            others = [at for job, at in times.items() if at is not None and not _is_small(job)]
            self._noted[agent] = _Quiet(uses, min([*others, now + DAY]))

    def waits_until(self, agent: str) -> float | None:
        """Until when there is nothing to be done for an agent; None: it cannot wait.

        It cannot while it is open, for then it costs nothing to look.
        """
        noted = self._noted.get(agent)
        if noted is None or noted.uses != self._agents.uses(agent):
            return None
        return None if agent in self._agents.open_stores() else noted.until

    def forget(self) -> None:
        """Every agent has to be looked at: the plan or the clock is another."""
        self._noted.clear()


def _is_small(job: Job) -> bool:
    """Whether a job is one that a memory which nobody uses needs but once a day."""
    return set(job.steps) <= _SMALL
