"""The list of all periodic jobs of the daemon.

Reactions to events, such as a change to replicate or a pause in a conversation, are not jobs: they
have their own loops.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

from ..config.settings import Settings
from ..memory.scoring import DAY
from ..shapes.upkeep import ConsolidationMode, Step
from ..store.agent_store import AgentStore
from .consolidation import covered_by, steps_of
from .cron import When
from .scheduler import Job
from .upkeep import Upkeep

RHYTHMS: Final[dict[str | None, When]] = {
    "hourly": "0 * * * *",
    "daily": "0 0 * * *",
    "weekly": "0 0 * * 1",
    "monthly": "0 0 1 * *",
    "never": None,
    # Part of the consolidation runs.
    None: None,
}
# EvoClaw's names of the steps that may have their own schedule.
APART: Final[dict[str, Step]] = {
    "warm_eviction": "evict",
    "tree_prune": "prune",
    "tree_rebuild": "rebuild",
}


def jobs_of(
    settings: Callable[[], Settings],
    upkeep: Upkeep,
    *,
    keep_files: Callable[[AgentStore], Awaitable[None]],
    verify: Callable[[AgentStore], Awaitable[None]],
    close_idle: Callable[[], Awaitable[None]],
    give_back: Callable[[], Awaitable[None]],
    sample: Callable[[], Awaitable[None]],
) -> Sequence[Job]:
    """All jobs.

    Args:
        settings: returns the current settings.
        upkeep: consolidates memories.
        keep_files: synchronises an agent's workspace and memory.
        verify: compares a restored copy with an agent's memory.
        close_idle: closes unused agents.
        give_back: returns unused heap to the system.
        sample: records the numbers of this minute for the live history.
    """

    def look() -> When:
        return settings().store.face_check_seconds

    def minute() -> When:
        return 60.0

    def days() -> When:
        now = settings()
        return (now.sync.verify_days * DAY or None) if now.replicates else None

    return (
        # Jobs of the daemon. Closing comes first, since jobs for open agents keep them open.
        Job(name="idle", when=look, run=close_idle, agents="none", problem="agent_trouble"),
        Job(name="heap", when=minute, run=give_back, agents="none"),
        Job(name="sample", when=minute, run=sample, agents="none"),
        *_runs(settings, upkeep),
        Job(name="verify", when=days, run=verify, problem="verify_failed", at_once=1),
        # Jobs for open agents.
        Job(name="look", when=look, run=AgentStore.look, agents="open", problem="agent_trouble"),
        Job(name="tend", when=minute, run=AgentStore.tend, agents="open", problem="agent_trouble"),
        Job(
            name="files",
            when=lambda: 30.0,
            run=keep_files,
            agents="open",
            problem="workspace_trouble",
            soon=True,
        ),
    )


def _runs(settings: Callable[[], Settings], upkeep: Upkeep) -> Iterator[Job]:
    def steps(mode: ConsolidationMode) -> tuple[Step, ...]:
        rhythms = settings().consolidation
        apart = {one for word, one in APART.items() if getattr(rhythms, word) is not None}
        return tuple(step for step in steps_of(mode) if step not in apart)

    def rhythm(name: str) -> When:
        return RHYTHMS[getattr(settings().consolidation, name)]

    def cron(name: str) -> When:
        return getattr(settings().upkeep, name, None)

    async def run(store: AgentStore, mode: ConsolidationMode) -> None:
        await upkeep.run(store, mode, steps(mode))

    for name, one in (*APART.items(), ("merging", "merge")):
        yield Job(
            name=name,
            when=partial(rhythm if name in APART else cron, name),
            run=partial(upkeep.run, mode=name, steps=(one,)),
            lane="upkeep",
        )
    # "full" runs only on request; it is listed so that an interrupted run is repeated.
    modes: tuple[ConsolidationMode, ...] = ("quick", "daily", "monthly", "full")
    for mode in modes:
        yield Job(
            name=mode,
            when=partial(cron, mode),
            run=partial(run, mode=mode),
            lane="upkeep",
            covers=covered_by(mode),
        )
