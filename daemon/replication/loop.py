"""The running replication of one agent, and its status."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec

from thermocline.sync import Device, Local, Replica, Replicator, Round, State, Timing, Waiting

from ..errors import NotFound, ThermoclineError, Unavailable
from ..runtime.problems import Problems, unforeseen
from ..shapes.sync import ReplicationStatus
from ..store.kinds import URGENT
from .database import Database

_log = logging.getLogger(__name__)
_TROUBLE: Final = "replica_trouble"
_LEFT_OUT: Final = "replica_rows"
_AWAY: Final = "devices_away"
_RETRY_SECONDS: Final = 30.0
_END_SECONDS: Final = 2.0
# Temporary, but perhaps for a month, so it is reported.
_QUOTA: Final = "quota"
_UNEXPECTED: Final = "report this bug, with the log; it will be retried"


class Loop:
    """Replicates one agent's memory with one database, which it does not close, until ended.

    Failures that need an action are reported to `problems`.
    """

    def __init__(
        self,
        agent: str,
        database: Database,
        local: Local,
        device: Device,
        *,
        timing: Timing,
        waiting: Waiting,
        problems: Problems,
        done: Callable[[Round], None],
    ) -> None:
        self.agent = agent
        self.account = database.account
        self.timing = timing
        self.replica = Replica(database.remote, agent, database.polls)
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
            told=self._tell,
            done=done,
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

    @property
    def locked_out(self) -> bool:
        """Whether another token may work."""
        return self.replicator.state.error in ("unauthorized", "forbidden")

    def changed(self, kinds: frozenset[str]) -> None:
        """Schedule the sending of rows of these kinds."""
        if kinds & URGENT:
            self.replicator.changed(urgent=True)
        if kinds - URGENT:
            self.replicator.changed(urgent=False)

    def status(self) -> ReplicationStatus:
        """The state of replication."""
        state = msgspec.structs.asdict(self.replicator.state)
        if not state["error"] and (error := self._trouble) is not None:
            state |= {"error": error.code, "message": error.message, "hint": error.hint or ""}
        state["hint"] = self.account.way_out(state["error"]) or state["hint"]
        return ReplicationStatus(
            replica=self.account.kind,
            url=self.account.url,
            configured_by=self.account.source,
            **state,
        )

    async def end(self) -> None:
        """Stop; unsent rows stay in the outbox."""
        deadline = time.monotonic() + 2 * _END_SECONDS
        while not self._task.done() and time.monotonic() < deadline:
            self._task.cancel()
            # A failure during the cancellation hides it: cancel again.
            await asyncio.wait([self._task], timeout=_END_SECONDS / 2)
        for code in (_TROUBLE, _LEFT_OUT, _AWAY):
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
                kind, where = unforeseen(error)
                _log.error("replicating '%s' failed with %s:\n%s", self.agent, kind, where)
                self._fail(ThermoclineError(f"a round failed with {kind}", hint=_UNEXPECTED))
            await asyncio.sleep(self._retry_seconds)
            # What was due when it failed is still due.
            self.replicator.wake()

    def _fail(self, error: ThermoclineError) -> None:
        self._trouble = error
        self._report("fails", error.code, error.message, error.hint or "")

    def _tell(self, state: State) -> None:
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
        """Report notices that do not stop replication."""
        if state.notes:
            said = f"replicating '{self.agent}': {state.notes[-1]}"
            hint = "`thermocline sync` shows the last rows left out, with the reasons"
            self._problems.report(_LEFT_OUT, self.agent, said, hint, lasting=False)
        said = f"not seen for 90 days: {', '.join(state.away[:10])}" if state.away else ""
        hint = "retire a device that will not come back: `thermocline devices --retire`"
        self._problems.set(_AWAY, self.agent, said, hint, lasting=False)

    def _report(self, what: str, code: str, message: str, hint: str) -> None:
        said = f"replication of '{self.agent}' {what}: {message}"
        self._problems.report(_TROUBLE, self.agent, said, self.account.way_out(code) or hint)
