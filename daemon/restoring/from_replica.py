"""Restoring agents' memories from a replica, on a machine that may have nothing yet.

Each memory is filled beside its place, page by page, so that any interruption is gone on from;
it is compared with the replica row by row, and only then moved in. Nothing is written to the
replica: a token that allows reading is enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from thermocline.sync import Extent, Remote, Source, SyncError, Waiting
from thermocline.sync.rows import STATEMENT
from thermocline.sync.source import Tables, agents, look

from ..errors import DiskFull, NotFound, ReadOnly, StoreDamaged, ThermoclineError
from ..memory.checks import is_agent
from ..replication.replicas import as_ours
from ..store.database import translate_os
from ..store.device import device_id
from ..store.snapshot import counts
from ..store.transaction import Rules
from .interrupted import take_up
from .moving import Arrival, Run
from .place import RestorePlace, give, locked
from .receiving import Receiver
from .staging import OnThread, Staging
from .verifying import Verdict, verify
from .watching import Patience, Watch

_SAMPLE: Final = 500
# About what one processor writes and compares.
_ROWS_A_SECOND: Final = 5000
# Errors of the replica that are about one agent's rows, and perhaps not about the others'.
_OF_ITS_ROWS: Final = ("damaged", "too_large")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be restored, and how.

    Attributes:
        url: where from, as the next run will name it as well.
        state_dir: where the daemon keeps its memories; made, if it is not there.
        agents: whose; none: of everybody that the replica holds anything of.
        replace: set aside what is there, instead of refusing.
        keep_going: restore what is whole, though rows are damaged on the replica.
        give_up_seconds: fail when the replica is away for so long; None: wait.
    """

    url: str
    state_dir: Path
    agents: tuple[str, ...] = ()
    replace: bool = False
    keep_going: bool = False
    give_up_seconds: float | None = None


class AgentRestored(msgspec.Struct, frozen=True, kw_only=True):
    """One memory that was restored.

    Attributes:
        folder: where it is.
        set_aside: where what was there before is now; None where there was nothing.
        unsent: how many rows in that the replica had not heard of.
        rows: all that came, and are as they came.
        fingerprint: of all of them, whatever their order.
        lost: what could not be restored, a line each.
        bytes: of the database.
        seconds: of all runs together.
        resumed: how many of the rows an earlier run had brought.
        deletions: how many traces of deleted rows came as well.
        devices: how many devices the replica knows.
    """

    agent: str
    folder: str
    set_aside: str | None = None
    unsent: int = 0
    memories: int
    categories: int
    hot_entries: int
    key_values: int
    notes: int
    rows: int
    fingerprint: str
    lost: tuple[str, ...]
    bytes: int
    seconds: float
    resumed: int
    devices: int
    deletions: int = 0


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore would bring, and about how long it would take.

    Attributes:
        taken: whether a memory is in the place.
        counts: rows of each kind, those included that other tools keep in tables of their own.
        rows: all that would come, the traces of deletions included.
    """

    agent: str
    folder: str
    taken: bool
    counts: dict[str, int]
    rows: int
    bytes: int
    seconds: float
    devices: int


class Outcome(msgspec.Struct):
    """What came of all agents: restored, failed with what kept them, or with no fit name."""

    restored: list[AgentRestored] = []
    failed: dict[str, ThermoclineError] = {}
    passed_over: list[str] = []


class Restorer:
    """Restores from one replica.

    Args:
        remote: the replica.
        wish: what is wanted.
        rules: the limits that what other tools wrote is brought within.
        waiting: how to wait when it is away.
        watch: told how it goes.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        remote: Remote,
        wish: Wish,
        *,
        rules: Rules,
        waiting: Waiting,
        watch: Watch,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._remote = remote
        self._wish = wish
        self._rules = rules
        self._watch = watch
        self._now = now
        self._patience = Patience(waiting, watch, wish.give_up_seconds)

    async def measure(self) -> list[Measured]:
        """Count, and change nothing. A daemon may run meanwhile.

        Raises:
            NotFound: there is nothing to restore.
            ThermoclineError: the replica cannot be asked.
        """
        try:
            names, tables = await self._look()
            return [await self._measure(name, tables) for name in names if is_agent(name)]
        except SyncError as error:
            raise as_ours(error) from error

    async def restore(self) -> Outcome:
        """Restore. What keeps one agent from being restored does not keep the others.

        Raises:
            NotFound: there is nothing to restore.
            Conflict: a place is not empty; nothing was changed.
            AlreadyRunning: a daemon runs in the state folder.
            ThermoclineError: the replica cannot be asked, or the disk refuses.
        """
        state_dir = self._wish.state_dir
        try:
            with locked(state_dir, "a restore"):
                take_up(state_dir)
                return await self._restore_all()
        except SyncError as error:
            raise as_ours(error) from error
        except OSError as error:
            raise translate_os(error, state_dir) from error

    async def _look(self) -> tuple[list[str], Tables]:
        """The agents that are wanted, and the tables that there are."""
        tables = await self._patience(lambda: look(self._remote))
        there = await self._patience(lambda: agents(self._remote, tables))
        if not there:
            raise NotFound(
                "cannot restore: the replica holds no memory", hint="check the URL of the database"
            )
        for name in self._wish.agents:
            if name not in there:
                raise NotFound(
                    f"cannot restore '{name}': the replica holds nothing of it",
                    hint=f"it holds the memory of: {', '.join(map(repr, there[:20]))}",
                )
        return list(self._wish.agents) or there, tables

    async def _restore_all(self) -> Outcome:
        state_dir = self._wish.state_dir
        names, tables = await self._look()
        run = Run.of(state_dir, self._wish.url, replace=self._wish.replace)
        outcome = Outcome(passed_over=[name for name in names if not is_agent(name)])
        arrivals = {name: _arrival(state_dir, name) for name in names if is_agent(name)}
        for name, arrival in arrivals.items():
            if name not in run.reports or not arrival.has_moved():
                arrival.refuse_taken(replace=self._wish.replace)
        for name, arrival in arrivals.items():
            try:
                outcome.restored.append(await self._restore(name, arrival, tables, run))
            except (DiskFull, ReadOnly):
                raise
            except ThermoclineError as error:
                outcome.failed[name] = error
            except SyncError as error:
                if error.code not in _OF_ITS_ROWS:
                    raise
                outcome.failed[name] = as_ours(error)
        if not outcome.failed:
            run.end(state_dir)
        return outcome

    async def _restore(
        self, agent: str, arrival: Arrival, tables: Tables, run: Run
    ) -> AgentRestored:
        thread = OnThread()
        staging = Staging(arrival.folder, device=self._device(), rules=self._rules, now=self._now)
        try:
            if agent not in run.reports:
                report = await self._fill(agent, staging, thread, tables)
                run.note(self._wish.state_dir, agent, report)
                self._watch.stage("noted", agent)
            report = msgspec.json.decode(run.reports[agent], type=AgentRestored)
            # A kill may have come between the last rename and its report.
            if not arrival.has_moved():
                size = await thread(staging.seal)
                self._watch.stage("sealed", agent)
                moved = await thread(arrival.move_in, lambda: self._watch.stage("aside", agent))
                report = msgspec.structs.replace(
                    report,
                    bytes=size,
                    set_aside=None if moved.set_aside is None else str(moved.set_aside),
                    unsent=moved.unsent,
                )
            self._watch.stage("done", agent)
            return report
        finally:
            await thread(staging.close)
            thread.close()

    async def _fill(
        self, agent: str, staging: Staging, thread: OnThread, tables: Tables
    ) -> AgentRestored:
        """Have everything come, and compare it with what the replica has."""
        source = Source(self._remote, agent, tables)
        receiver = Receiver(source, self._wish.url, staging, thread, self._patience, self._watch)
        began = time.monotonic()
        try:
            extent = await receiver.run(agent)
            self._watch.stage("received", agent)
            verdict = await thread(verify, staging, extent.counts)
            self._refuse_faults(agent, verdict)
        except StoreDamaged:
            # The next run has nothing to go on with.
            await thread(staging.discard)
            raise
        self._refuse_losses(agent, verdict)
        self._watch.stage("checked", agent)
        devices = await self._patience(source.devices)
        held = await thread(lambda: counts(staging.db))
        return AgentRestored(
            agent=agent,
            folder=str(self._place(agent).folder),
            memories=held["memories"],
            categories=held["categories"],
            hot_entries=held["hot_entries"],
            key_values=held["key_values"],
            notes=held["notes"],
            rows=verdict.rows,
            fingerprint=verdict.fingerprint,
            lost=verdict.lost,
            bytes=0,
            seconds=round(receiver.earlier + time.monotonic() - began, 3),
            resumed=receiver.resumed,
            devices=len(devices),
            deletions=extent.rows - sum(extent.counts.values()),
        )

    def _refuse_faults(self, agent: str, verdict: Verdict) -> None:
        if verdict.faults:
            raise StoreDamaged(
                f"cannot restore '{agent}': what came is not what the replica holds: "
                + "; ".join(verdict.faults),
                hint="run it again, from the beginning; check the disk if it says the same",
            )

    def _refuse_losses(self, agent: str, verdict: Verdict) -> None:
        if verdict.lost and not self._wish.keep_going:
            raise StoreDamaged(
                f"cannot restore all of '{agent}': " + "; ".join(verdict.lost),
                hint="a device that still has them can mend the replica; --keep-going restores"
                " all the others, without fetching them anew",
            )

    async def _measure(self, agent: str, tables: Tables) -> Measured:
        source = Source(self._remote, agent, tables)
        extent = await self._patience(source.extent)
        size = await self._patience(source.size)
        devices = await self._patience(source.devices)
        left = 0 if extent.poll.epoch else await self._patience(lambda: _left_by_others(source))
        kinds = extent.counts
        if left:
            kinds = kinds | {STATEMENT: kinds.get(STATEMENT, 0) + left}
        return Measured(
            agent=agent,
            folder=str(self._place(agent).folder),
            taken=_arrival(self._wish.state_dir, agent).holds_memory(),
            counts=kinds,
            rows=extent.rows + left,
            bytes=size,
            seconds=await self._estimate(source, extent),
            devices=len(devices),
        )

    async def _estimate(self, source: Source, extent: Extent) -> float:
        """Seconds, by how long one page takes to come, and what the writing takes at least."""
        began = time.monotonic()
        page = await self._patience(lambda: source.statements((0, ""), _SAMPLE))
        taken = time.monotonic() - began
        fetching = extent.rows / max(1, len(page.rows)) * taken
        return round(max(fetching, extent.rows / _ROWS_A_SECOND), 1)

    def _device(self) -> str:
        state_dir = self._wish.state_dir
        device = device_id(state_dir)
        give(state_dir, state_dir / "device.json")
        return device

    def _place(self, agent: str) -> RestorePlace:
        return RestorePlace(self._wish.state_dir, agent)


async def _left_by_others(source: Source) -> int:
    return sum([len(rows) async for rows in source.left_by_others()])


def _arrival(state_dir: Path, agent: str) -> Arrival:
    return Arrival(RestorePlace(state_dir, agent), state_dir / "agents" / f".{agent}.restoring")
