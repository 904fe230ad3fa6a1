"""The running replication of one agent, its status, and its memory as a replicator sees it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from thermocline.sync import (
    Applied,
    Cursor,
    Device,
    Local,
    Pending,
    Received,
    Replica,
    Replicator,
    Round,
    State,
    Timing,
    Waiting,
    version_of,
)
from thermocline.sync.row_format import RowFormat, Unreadable
from thermocline.sync.sealing.proofs import fingerprint

from ..errors import NotFound, ThermoclineError, Unavailable
from ..runtime.problems import Problems, fault_of
from ..schemas.sync import ReplicationStatus
from ..store import apply, outbox
from ..store.agents import Agents
from ..store.database.transaction import Transaction
from ..store.kinds import URGENT
from .databases import Database

T = TypeVar("T")


class AgentLocal:
    """The rows of one agent, opened for each call; implements `Local`.

    Every method raises `ThermoclineError` if the memory cannot be opened, read or written.
    """

    # Larger transactions would delay other writers by some hundredths of a second.
    rows_at_once = 256

    def __init__(self, agents: Agents, agent: str) -> None:
        self._agents = agents
        self._agent = agent

    async def cursor(self) -> Cursor:
        return await self.read(outbox.cursor)

    async def restored(self) -> Cursor:
        return await self.read(outbox.restored)

    async def pending(
        self,
        kinds: frozenset[str] | None,
        limit: int,
        max_bytes: int,
        after: tuple[str, str] | None = None,
    ) -> list[Pending]:
        return await self.read(lambda db: outbox.pending(db, kinds, limit, max_bytes, after))

    async def taken(self, rows: Sequence[Pending], cursor: Cursor) -> None:
        while len(rows) > self.rows_at_once:
            part, rows = rows[: self.rows_at_once], rows[self.rows_at_once :]
            await self.write(partial(outbox.taken, rows=part, cursor=None))
        await self.write(partial(outbox.taken, rows=rows, cursor=cursor))

    async def apply(self, rows: Sequence[Received], cursor: Cursor) -> Applied:
        # After an interruption all of them are merged again.
        total = Applied()
        while len(rows) > self.rows_at_once:
            part, rows = rows[: self.rows_at_once], rows[self.rows_at_once :]
            total += await self.write(partial(apply.apply, came=part))

        def last(tx: Transaction) -> Applied:
            applied = apply.apply(tx, rows)
            outbox.follow(tx, cursor)
            return applied

        return total + await self.write(last)

    async def rebase(self, rows: Sequence[Pending]) -> None:
        await self.write(partial(outbox.rebase, rows=rows))

    async def set_aside(self, row: Pending, reason: str) -> None:
        await self.write(partial(outbox.set_aside, row=row, reason=reason))

    async def fingerprint(self, form: RowFormat) -> tuple[int, bytes] | None:
        def read(db: sqlite3.Connection) -> tuple[int, bytes] | None:
            if db.execute("SELECT 1 FROM outbox LIMIT 1").fetchone():
                return None
            live = (row for row in apply.every(db) if row.data)
            names = ((form.key(*row.key)[1], form.version(version_of(row)) or "") for row in live)
            return outbox.cursor(db).seq, fingerprint(names)

        return await self.read(read)

    async def offer_again(
        self, form: RowFormat, damaged: Sequence[Unreadable]
    ) -> dict[tuple[str, str], tuple[tuple[str, str], bool]]:
        return await self.write(partial(outbox.offer_again, form=form, damaged=damaged))

    async def offer_all(self, cursor: Cursor) -> None:
        await self.write(partial(outbox.offer_all, cursor=cursor))

    async def read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            return await store.read(read)

    async def write(self, write: Callable[[Transaction], T]) -> T:
        async with self._agents.use(self._agent, create=False, quietly=True) as store:
            return await store.write(write)


_log = logging.getLogger(__name__)
_TROUBLE: Final = "replica_trouble"
_LEFT_OUT: Final = "replica_rows"
_AWAY: Final = "devices_away"
_SLOWED: Final = "replica_slowed"
_RETRY_SECONDS: Final = 30.0
_END_SECONDS: Final = 2.0
# Temporary, but perhaps for a month, so it is reported.
_QUOTA: Final = "quota"
_UNEXPECTED: Final = "report this bug, with the log; it will be retried"


class Loop:
    """Replicates one agent's memory with one database, which it does not close, until ended.

    `unsealed` as for `Exchange`.

    Failures that need an action are reported to `problems`.
    """

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        replica: Replica,
        unsealed: Replica | None,
        database: Database,
        local: Local,
        device: Device,
        *,
        timing: Timing,
        waiting: Waiting,
        problems: Problems,
        done: Callable[[Round], None],
        hold_seconds: Callable[[], float],
    ) -> None:
        self.agent = agent = replica.agent
        self.account = database.account
        self.timing = timing
        self.replica = replica
        self._heads = database.heads
        self._problems = problems
        self._retry_seconds = 0.0 if waiting.instant else _RETRY_SECONDS
        self._is_away = False
        # The error that stops it, if it is not of the replica.
        self._trouble: ThermoclineError | None = None
        self._succeeded: float | None = None
        self.replicator = Replicator(
            local,
            self.replica,
            device,
            urgent=URGENT,
            timing=timing,
            waiting=waiting,
            now=time.time,
            on_state=self._on_state,
            done=done,
            hold_seconds=hold_seconds,
            unsealed=unsealed,
        )
        self._task = asyncio.get_running_loop().create_task(
            self._run(), name=f"replication of {agent}"
        )

    @property
    def owing(self) -> bool:
        """Whether the replica may lack something."""
        state = self.replicator.state
        return self.replicator.pending or state.phase != "idle" or state.last_success is None

    @property
    def ended(self) -> bool:
        """Whether it has stopped because the agent no longer exists."""
        return self._task.done()

    def changed(self, kinds: frozenset[str]) -> None:
        if kinds & URGENT:
            self.replicator.changed(urgent=True)
        if kinds - URGENT:
            self.replicator.changed(urgent=False)

    def status(self) -> ReplicationStatus:
        state = msgspec.structs.asdict(self.replicator.state)
        if not state["error"] and (error := self._trouble) is not None:
            state |= {"error": error.code, "message": error.message, "hint": error.hint or ""}
        state["hint"] = self.account.way_out(state["error"]) or state["hint"]
        state["unsealed"] |= self.replicator.is_taking_over
        return ReplicationStatus(
            replica=self.account.kind,
            url=self.account.url,
            configured_by=self.account.source,
            seal_epoch=self.replica.form.epoch,
            **state,
        )

    async def end(self) -> None:
        """Stop; unsent rows stay in the outbox."""
        deadline = time.monotonic() + 2 * _END_SECONDS
        while not self._task.done() and time.monotonic() < deadline:
            self._task.cancel()
            # A failure during the cancellation hides it: cancel again.
            await asyncio.wait([self._task], timeout=_END_SECONDS / 2)
        self._heads.leave(self.replica.form.agent)
        for code in (_TROUBLE, _LEFT_OUT, _AWAY, _SLOWED):
            self._problems.clear(code, self.agent)

    async def _run(self) -> None:
        while True:
            try:
                await self.replicator.run()
            except NotFound:
                # The agent was forgotten.
                return
            except Unavailable as error:
                # The disk is full, or the memory is being closed: it will be retried.
                self._trouble = error
            except ThermoclineError as error:
                self._fail(error)
            except Exception as error:  # noqa: BLE001 - it is reported here
                kind, where = fault_of(error)
                _log.error("replicating '%s' failed with %s:\n%s", self.agent, kind, where)
                self._fail(ThermoclineError(f"a round failed with {kind}", hint=_UNEXPECTED))
            await asyncio.sleep(self._retry_seconds)
            # What was due when it failed is still due.
            self.replicator.wake()

    def _fail(self, error: ThermoclineError) -> None:
        self._trouble = error
        self._report("fails", error.code, error.message, error.hint or "")

    def _on_state(self, state: State) -> None:
        text = None
        if state.held_until is not None:
            text = f"most of the rows of sync.budget are used today: '{self.agent}' is sent later"
        hint = "raise sync.budget, or send at once with `thermocline sync --now`"
        self._problems.set(_SLOWED, self.agent, text, hint, lasting=False)
        if state.phase == "idle" and state.last_success != self._succeeded:
            self._succeeded = state.last_success
            self._trouble = None
            self._problems.clear(_TROUBLE, self.agent)
            self._note(state)
            if self._is_away:
                _log.info("the replica of '%s' answers again", self.agent)
            self._is_away = False
        elif state.phase == "stopped":
            self._report("has stopped", state.error, state.message, state.hint)
        elif state.phase == "waiting":
            if state.error == _QUOTA:
                self._report("waits", state.error, state.message, state.hint)
            elif not self._is_away:
                _log.info("the replica of '%s' cannot be reached: %s", self.agent, state.message)
            self._is_away = True

    def _note(self, state: State) -> None:
        if state.notes:
            text = f"replicating '{self.agent}': {state.notes[-1]}"
            hint = "`thermocline sync` shows the last rows left out, with the reasons"
            self._problems.report(_LEFT_OUT, self.agent, text, hint, lasting=False)
        text = f"not seen for 90 days: {', '.join(state.away[:10])}" if state.away else ""
        hint = "retire a device that will not come back: `thermocline devices --retire`"
        self._problems.set(_AWAY, self.agent, text, hint, lasting=False)

    def _report(self, what: str, code: str, message: str, hint: str) -> None:
        text = f"replication of '{self.agent}' {what}: {message}"
        self._problems.report(_TROUBLE, self.agent, text, self.account.way_out(code) or hint)
