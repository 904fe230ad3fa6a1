"""The loop that keeps one agent's rows and a remote equal, whatever the network does."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from .exchange import Exchange, RoundResult
from .failures import SyncError, TryLater, Waiting, retrying
from .ports import Local
from .replica import Device, Replica

Phase: TypeAlias = Literal["idle", "working", "waiting", "stopped"]
_STOPPED_SECONDS: Final = 3600.0
# Seconds between two records of this device's contact, while nothing happens.
_HEARTBEAT_SECONDS: Final = 3600.0
# The clock may have been wrong, and may be corrected soon.
_STOPPED_TLS_SECONDS: Final = 300.0
# The longest interval between two polls while nothing changes, in seconds, and as a multiple of
# the shortest.
_QUIET_SECONDS: Final = 900.0
_QUIET_TIMES: Final = 30
# The shortest time between two polls that questions without an answer cause.
_SOON_SECONDS: Final = 5.0
_NO_ERROR: Final = {"error": "", "message": "", "hint": "", "next_try": None}


class Timing(Protocol):
    """The intervals of a replicator, in seconds."""

    @property
    def critical_seconds(self) -> float:
        """From a change of an urgent kind until it is sent."""

    @property
    def change_seconds(self) -> float:
        """From any other change until it is sent."""

    @property
    def poll_seconds(self) -> float:
        """Between two polls for what other devices have sent, while anything changes."""


def poll_interval(poll_seconds: float, quiet_seconds: float) -> float:
    """The seconds until the next poll, after some time without any change.

    It doubles from `poll_seconds` to 30 times as much, but to no more than a quarter of an hour.
    """
    longest = max(poll_seconds, min(_QUIET_TIMES * poll_seconds, _QUIET_SECONDS))
    return min(max(poll_seconds, quiet_seconds), longest)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of rows, as in `RoundResult`."""

    sent: int = 0
    received: int = 0
    refused: int = 0
    conflicts: int = 0


class State(Counts, frozen=True, kw_only=True):
    """The state of replication. Times are seconds since the epoch; counts are since the start."""

    # `waiting`: for the next try, after a temporary failure; `stopped`: until a person removes the
    # cause, with a single try now and then.
    phase: Phase = "idle"
    # Of the failure, if any.
    error: str = ""
    message: str = ""
    hint: str = ""
    since: float | None = None
    next_try: float | None = None  # when, while waiting
    next_poll: float | None = None  # when it looks again for what other devices have sent
    held_until: float | None = None  # when the next round is allowed, while it is held back
    last_success: float | None = None
    # As in `RoundResult`.
    set_aside: int = 0
    notes: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    unsealed: bool = False


class Round(Counts, frozen=True, kw_only=True):
    """One round of replication, or several equal ones that did nothing or failed alike."""

    at: float  # when the last of them ended, in seconds since the epoch
    ms: float  # its duration
    times: int = 1  # their number
    # Why it failed; empty after success.
    error: str = ""
    message: str = ""

    def alike(self, other: Round) -> bool:
        """Whether both did nothing, or failed in the same way."""
        rows = self.sent + self.received + self.refused + self.conflicts
        return not rows and self == msgspec.structs.replace(
            other, at=self.at, ms=self.ms, times=self.times
        )


class Replicator:
    """Sends what changes here, and receives what changes elsewhere.

    A temporary failure is retried forever, with growing waits. A failure that a person must fix
    stops the loop for an hour, or for minutes if a clock may be wrong; `sync` and `wake` end that
    pause. Pending rows are stored with the rows, so that nothing is lost. `urgent` kinds are sent
    at once; `on_state` is called with each new state, `done` with each round. `hold_seconds` gives
    the time for which rounds are held back; `sync` is not.

    Polls are rarer while neither side changes; after an outage the first is at a random moment.
    """

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        local: Local,
        replica: Replica,
        device: Device,
        *,
        urgent: frozenset[str],
        timing: Timing,
        waiting: Waiting,
        now: Callable[[], float],
        on_state: Callable[[State], None],
        done: Callable[[Round], None] = lambda _: None,
        hold_seconds: Callable[[], float] = lambda: 0.0,
        unsealed: Replica | None = None,
    ) -> None:
        self._exchange = Exchange(local, replica, device, urgent, now, unsealed)
        self._replica = replica
        self._timing = timing
        self._waiting = waiting
        self._now = now
        self._on_state = on_state
        self._done = done
        self._hold_seconds = hold_seconds
        self._random = random.Random()  # noqa: S311 - spreads waits, hides nothing
        self._lock = asyncio.Lock()
        # The first ends a wait for something to do; the second also a wait for the next try.
        self._due_changed = asyncio.Event()
        self._woken = asyncio.Event()
        self._urgent_at: float | None = None
        self._change_at: float | None = None
        self._poll_at = 0.0
        # When it last polled, when anything last changed on either side, and when something was
        # missing here.
        self._polled_at = self._missed_at = float("-inf")
        self._active_at = asyncio.get_running_loop().time()
        self._signed_at = float("-inf")
        # The failure of the last round that waited in vain for an answer.
        self._timeout: TryLater | None = None
        self.state = State()
        # Whether another device uses this device's id.
        self.copied = False

    @property
    def pending(self) -> bool:
        """Whether this device has unsent changes."""
        return self._urgent_at is not None or self._change_at is not None

    @property
    def is_taking_over(self) -> bool:
        """Whether the remote may have rows from before it was sealed."""
        return self._exchange.unsealed is not None

    def changed(self, *, urgent: bool) -> None:
        clock = self._active_at = asyncio.get_running_loop().time()
        if urgent and self._urgent_at is None:
            self._urgent_at = clock + self._timing.critical_seconds
            self._due_changed.set()
        elif not urgent and self._change_at is None:
            self._change_at = clock + self._timing.change_seconds
            self._due_changed.set()

    def poll_soon(self) -> None:
        """Poll at once, or some seconds after the last poll: something is missing here."""
        self._active_at = self._missed_at = asyncio.get_running_loop().time()
        soonest = min(_SOON_SECONDS, self._timing.poll_seconds)
        self._poll_at = min(self._poll_at, self._polled_at + soonest)
        self._due_changed.set()

    def sign_soon(self) -> None:
        """Do now what is done once an hour or day: record the contact, seal rows with a new key."""
        self._signed_at = float("-inf")
        self.wake()

    def wake(self) -> None:
        """Try at once: the cause of the pause may be gone."""
        self._poll_at = 0.0
        self._due_changed.set()
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._until_due()
            try:
                clock = asyncio.get_running_loop().time()
                others = (self._change_at, self._poll_at)
                urgent_only = all(time is None or time > clock for time in others)
                async for attempt in retrying(
                    self._waiting, sleep=self._pause, before_wait=self._wait, random=self._random
                ):
                    with attempt:
                        await self._once(urgent_only=urgent_only, shared=not self.pending)
            except SyncError as error:
                self._stop(error)
                # The cause may disappear unnoticed: a clock, a plan, a login.
                is_tls = error.code == "tls"
                await self._pause(_STOPPED_TLS_SECONDS if is_tls else _STOPPED_SECONDS)

    async def sync(self, *, urgent_only: bool = False) -> RoundResult:
        """Receive and send everything, or the urgent kinds, now. The loop survives a failure."""
        stopped = self.state.phase == "stopped"
        try:
            result = await self._once(urgent_only=urgent_only, heartbeat=True)
        except TryLater as error:
            self._wait(error, self._until_next_try())
            if stopped:
                # The cause may be gone: from here on the loop tries again.
                self._woken.set()
            raise
        except SyncError as error:
            self._stop(error)
            raise
        self._woken.set()
        return result

    async def _until_due(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            times = (self._urgent_at, self._change_at, self._poll_at)
            seconds = min(time for time in times if time is not None) - clock()
            if seconds <= 0:
                if (seconds := self._hold_seconds()) <= 0:
                    return
                self._set_state(held_until=self._now() + seconds, next_poll=None)
            await _wait_for(self._due_changed, seconds)

    async def _once(
        self, *, urgent_only: bool, heartbeat: bool = False, shared: bool = False
    ) -> RoundResult:
        timeout = self._timeout
        async with self._lock:
            if self._timeout is not None and self._timeout is not timeout:
                # Whoever waited for that round would wait as long once more.
                raise self._timeout
            clock = asyncio.get_running_loop().time()
            interval = poll_interval(self._timing.poll_seconds, clock - self._active_at)
            self._urgent_at = None
            if not urgent_only:
                self._change_at = None
                self._polled_at, self._poll_at = clock, clock + interval
            before, is_outage = self.state.phase, bool(self.state.error)
            self._set_state(phase="working")
            started = time.perf_counter()
            heartbeat |= clock - self._signed_at > _HEARTBEAT_SECONDS
            try:
                # While the intervals double, this agent's own last poll is half of one old.
                recent = min(interval / 4, clock - self._missed_at)
                head, age = await self._replica.shared_head(recent) if shared else (None, 0.0)
                result = await self._exchange.run(
                    urgent_only=urgent_only, heartbeat=heartbeat, head=head
                )
            except BaseException as error:
                self._set_state(phase=before)
                if isinstance(error, TryLater) and error.code == "timeout":
                    self._timeout = error
                if isinstance(error, SyncError):
                    self._note(started, error=error.code, message=error.message)
                raise
            self._note(
                started, **{name: getattr(result, name) for name in Counts.__struct_fields__}
            )
            if result.signed:
                self._signed_at = clock
            if result.sent or result.received:
                self._active_at, interval = clock, self._timing.poll_seconds
            if not urgent_only:
                # Other devices were cut off too: their polls must not come all at once.
                share = self._random.uniform(0.5, 1.0) if is_outage else 1.0
                self._poll_at = min(self._poll_at, clock - age + share * interval)
            self._succeeded(result)
            return result

    def _note(self, started: float, **outcome: Any) -> None:
        ms = round((time.perf_counter() - started) * 1000, 3)
        self._done(Round(at=self._now(), ms=ms, **outcome))

    def _succeeded(self, result: RoundResult) -> None:
        self.copied, state = result.copied, self.state
        names = (*Counts.__struct_fields__, "set_aside")
        counts = {name: getattr(state, name) + getattr(result, name) for name in names}
        self._set_state(
            phase="idle",
            **_NO_ERROR,
            held_until=None,
            last_success=self._now(),
            next_poll=self._now() + max(0.0, self._poll_at - asyncio.get_running_loop().time()),
            notes=tuple(result.notes) or state.notes,
            away=state.away if result.away is None else result.away,
            unsealed=result.unsealed,
            **counts,
        )

    def _until_next_try(self) -> float:
        planned = (self.state.next_try or 0.0) - self._now()
        due = self._poll_at - asyncio.get_running_loop().time()
        return planned if planned > 0 else max(0.0, due)

    def _wait(self, error: TryLater, seconds: float) -> None:
        self._set_state(phase="waiting", **_shown(error), next_try=self._now() + seconds)

    def _stop(self, error: SyncError) -> None:
        self._set_state(phase="stopped", **_shown(error), next_try=None)

    async def _pause(self, seconds: float) -> None:
        await _wait_for(self._woken, seconds)

    def _set_state(self, **changes: object) -> None:
        state = msgspec.structs.replace(self.state, **changes)
        if (state.phase, state.error) != (self.state.phase, self.state.error):
            state = msgspec.structs.replace(state, since=self._now())
        self.state = state
        self._on_state(state)


async def _wait_for(event: asyncio.Event, seconds: float | None) -> None:
    event.clear()
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _shown(error: SyncError) -> dict[str, str]:
    return {"error": error.code, "message": error.message, "hint": error.hint}
