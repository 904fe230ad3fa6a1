"""One agent's replicator, running, and what may be said about it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

import msgspec

from thermocline.sync import Device, Local, Remote, Replica, Replicator, State, Timing, Waiting

from ..errors import NotFound, ThermoclineError, Unavailable
from ..problems import Problems, unforeseen
from ..store.outgoing import CRITICAL
from .account import Account

_log = logging.getLogger(__name__)
_REPLICA_TROUBLE: Final = "replica_trouble"
_RETRY_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 2.0
# It passes by itself, but perhaps not before a month is over: somebody should know.
_QUOTA: Final = "quota"
_UNEXPECTED: Final = "that should not happen: the log says where; it is tried again"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How the replication of an agent stands. Times are seconds since the epoch.

    Attributes:
        replica: `turso`, `file`, `none`, or `unknown` where what the configuration names cannot
            be used, or was not looked for yet.
        url: where it is.
        configured_by: the setting or file that names it.
        phase: `idle`, `working`, `waiting` for the next try, `stopped` until somebody mends it.
        error, message, hint: of the failure that stands.
        queued: rows that the replica has still to hear of; None while the memory is closed.
        sent, received, refused: rows since the daemon started; refused ones made no sense.
    """

    replica: str
    url: str = ""
    configured_by: str = ""
    phase: str = "idle"
    error: str = ""
    message: str = ""
    hint: str = ""
    since: float | None = None
    next_try: float | None = None
    last_success: float | None = None
    queued: int | None = None
    sent: int = 0
    received: int = 0
    refused: int = 0

    def after(self, before: Standing) -> Standing:
        """This, with the counts of when the agent was followed before, and the last success.

        A success with another replica says nothing of this one.
        """
        last = before.last_success if before.url == self.url else None
        return msgspec.structs.replace(
            self,
            last_success=self.last_success or last,
            sent=self.sent + before.sent,
            received=self.received + before.received,
            refused=self.refused + before.refused,
        )


class Following:
    """Replicates one agent's memory with one account until it is ended.

    Args:
        agent: its id.
        account, remote: the replica; ending this does not close the remote.
        local: the agent's rows.
        device: this device.
        timing, waiting: when to act.
        problems: where what a person has to mend is told.
    """

    def __init__(
        self,
        agent: str,
        account: Account,
        remote: Remote,
        local: Local,
        device: Device,
        *,
        timing: Timing,
        waiting: Waiting,
        problems: Problems,
    ) -> None:
        self.agent = agent
        self.account = account
        self.remote = remote
        self.replica = Replica(remote, agent)
        self.timing = timing
        self._problems = problems
        self._retry_seconds = 0.0 if waiting.instant else _RETRY_SECONDS
        self._away = False
        # What keeps it from going on, where that is not the replica: a code, a message, a hint.
        self._trouble: tuple[str, str, str] | None = None
        self._succeeded: float | None = None
        self.replicator = Replicator(
            local,
            self.replica,
            device,
            urgent=CRITICAL,
            timing=timing,
            waiting=waiting,
            now=time.time,
            told=self._tell,
        )
        self._task = asyncio.get_running_loop().create_task(
            self._run(), name=f"replication of {agent}"
        )

    @property
    def owing(self) -> bool:
        """Whether there may be something that the replica has not heard of."""
        return self.replicator.pending or self.replicator.state.phase != "idle"

    @property
    def ended(self) -> bool:
        """Whether it has given up, since the agent is no more."""
        return self._task.done()

    def changed(self, kinds: frozenset[str]) -> None:
        """Rows of these kinds are to be sent."""
        if kinds & CRITICAL:
            self.replicator.changed(urgent=True)
        if kinds - CRITICAL:
            self.replicator.changed(urgent=False)

    def standing(self) -> Standing:
        """How it stands."""
        state = self.replicator.state
        code, message, hint = state.error or self._trouble or ("", "", "")
        return Standing(
            replica=self.account.kind,
            url=self.account.url,
            configured_by=self.account.source,
            phase=state.phase,
            error=code,
            message=message,
            hint=self.account.way_out(code) or hint,
            since=state.since or None,
            next_try=state.next_try,
            last_success=state.last_success,
            sent=state.sent,
            received=state.received,
            refused=state.refused,
        )

    async def end(self) -> None:
        """Stop; what is not sent stays marked."""
        while not self._task.done():
            self._task.cancel()
            # One that fails just as it is cancelled goes on, and has to be told again.
            await asyncio.wait([self._task], timeout=_AGAIN_SECONDS)
        self._problems.clear(_REPLICA_TROUBLE, self.agent)

    async def _run(self) -> None:
        while True:
            try:
                await self.replicator.run()
            except NotFound:
                # The agent was forgotten.
                return
            except Unavailable:
                # The disk is full, or the memory is just being closed: it is tried again.
                pass
            except ThermoclineError as error:
                self._fail(error.code, error.message, error.hint or "")
            except Exception as error:  # noqa: BLE001 - nobody else would hear of it
                kind, where = unforeseen(error)
                _log.error("replicating '%s' failed with %s:\n%s", self.agent, kind, where)
                self._fail("internal", f"a round failed with {kind}", _UNEXPECTED)
            await asyncio.sleep(self._retry_seconds)
            # What was due when it failed is due again.
            self.replicator.mended()

    def _fail(self, code: str, message: str, hint: str) -> None:
        self._trouble = (code, message, hint)
        said = f"cannot replicate '{self.agent}': {message}"
        self._problems.report(_REPLICA_TROUBLE, self.agent, said, hint)

    def _tell(self, state: State) -> None:
        if state.phase == "idle" and state.last_success != self._succeeded:
            self._succeeded = state.last_success
            self._trouble = None
            self._problems.clear(_REPLICA_TROUBLE, self.agent)
            if self._away:
                _log.info("the replica of '%s' answers again", self.agent)
            self._away = False
        elif state.phase == "stopped" and state.error is not None:
            self._report("has stopped", state.error)
        elif state.phase == "waiting" and state.error is not None:
            code, message, _ = state.error
            if code == _QUOTA:
                self._report("waits", state.error)
            elif not self._away:
                _log.info("the replica of '%s' is away: %s", self.agent, message)
            self._away = True

    def _report(self, what: str, error: tuple[str, str, str]) -> None:
        code, message, hint = error
        self._problems.report(
            _REPLICA_TROUBLE,
            self.agent,
            f"replication of '{self.agent}' {what}: {message}",
            self.account.way_out(code) or hint,
        )
