"""The daemon as the view sees it: frozen snapshots of its state and events, and calls.

Of the feed's two tasks one follows `/api/events`, the other asks `/api/status` when something
happened, and every few seconds. However much happens, at most four snapshots a second are posted.
Both reconnect by themselves, to whichever socket the daemon then has.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from thermocline.daemon.client import ApiError, AsyncClient, ClientError
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.schemas.status import Status

T = TypeVar("T")
Undo: TypeAlias = Callable[[AsyncClient], Awaitable[object]]

# How long the daemon may take for what is usually quick, and for what may take minutes.
USUAL_SECONDS: Final = 30.0
LONG_SECONDS: Final = 600.0
_UPDATE_SECONDS: Final = 0.25
_IDLE_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 1.0
# Of a status that takes long to compute, the daemon's share of the time stays below a fifth.
_REST_PER_WORK: Final = 4.0
_MAX_EVENTS: Final = 1000
# What reads although it has a body, and is therefore sent with POST.
_READS: Final = frozenset(
    {"/api/recall", "/api/context", "/api/files/search", "/api/files/get", "/api/validate"}
)


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One event of the daemon; its agent is "" for the daemon itself."""

    id: str
    type: str
    agent: str
    time: float
    data: Mapping[str, Any] = field(default_factory=dict)


class Verdict(NamedTuple):
    """The health of the daemon: a mark, a word that alone says it, and the theme's colour."""

    mark: str
    word: str
    color: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The daemon at one moment."""

    connected: bool = False  # whether it answered just now
    status: Status | None = None  # its answer, or while it is away the last one, if any
    at: float = 0.0  # when `status` came, in seconds since the epoch
    trouble: str = ""  # why it does not answer; "" while it does
    events: tuple[FeedEvent, ...] = ()  # since the snapshot before, oldest first

    @property
    def verdict(self) -> Verdict:
        if not self.connected:
            if not self.trouble:
                return Verdict("○", "connecting", "secondary")
            return Verdict("✗", "no daemon", "error")
        if self.status is None or not self.status.ready:
            return Verdict("○", "starting", "warning")
        problems = self.status.problems
        if lasting := sum(problem.lasting for problem in problems):
            return Verdict("✗", number_of(lasting, "problem", "problems"), "error")
        if problems:
            return Verdict("!", number_of(len(problems), "remark", "remarks"), "warning")
        return Verdict("✓", "healthy", "success")


class Feed:
    """Follows one daemon until it is stopped; connects again after each failure.

    `post` receives each snapshot.
    """

    def __init__(
        self,
        connect: Callable[[], AsyncClient],
        post: Callable[[Snapshot], object],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._connect = connect
        self._post = post
        self._now = now
        self._wake, self._answers = asyncio.Event(), asyncio.Event()
        self._events: list[FeedEvent] = []
        self._running: asyncio.Task[Any] | None = None

    async def run(self) -> None:
        """Follow it until `stop`."""
        self._running = asyncio.current_task()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._poll())
            group.create_task(self._follow())

    def refresh(self) -> None:
        """Ask again at once, for instance after a change that raises no event."""
        self._wake.set()

    def stop(self) -> None:
        """End; no snapshot is posted after this returns."""
        if self._running is not None:
            self._running.cancel()

    async def _poll(self) -> None:
        last = Snapshot()
        while True:
            self._wake.clear()
            began = time.monotonic()
            try:
                async with self._connect() as client:
                    status = await client.status()
            except ClientError as error:
                self._answers.clear()
                last = Snapshot(False, last.status, last.at, str(error))
            else:
                self._answers.set()
                events, self._events = tuple(self._events), []
                last = Snapshot(True, status, self._now(), "", events)
            self._post(last)
            rest = max(_UPDATE_SECONDS, (time.monotonic() - began) * _REST_PER_WORK)
            await asyncio.sleep(rest)
            idle = (_IDLE_SECONDS if last.connected else _RETRY_SECONDS) - rest
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, idle)):
                    await self._wake.wait()

    async def _follow(self) -> None:
        # The first time, what the daemon still knows of; later, what was missed in between.
        last_id = "0"
        while True:
            await self._answers.wait()
            # The other task finds out whether the daemon is away, and says so.
            with suppress(ClientError):
                async with aclosing(self._connect().events(last_id=last_id)) as events:
                    async for last_id, kind, data in events:
                        self._add(last_id, kind, data)
            self._wake.set()
            await asyncio.sleep(_UPDATE_SECONDS)

    def _add(self, event_id: str, kind: str, data: Any) -> None:
        fields = dict(data) if isinstance(data, dict) else {"data": data}
        agent, at = str(fields.pop("agent", "")), fields.pop("time", None)
        seconds = float(at) if isinstance(at, (int, float)) else self._now()
        self._events.append(FeedEvent(event_id, kind, agent, seconds, fields))
        del self._events[:-_MAX_EVENTS]
        self._wake.set()


class Done(NamedTuple):
    """A change that was made: what was done, in words, and what undoes it."""

    text: str
    undo: Undo | None = None


Change: TypeAlias = Callable[[AsyncClient], Awaitable[Done]]


def doing(words: str, run: Undo, undo: Undo | None = None) -> Change:
    """A change whose words are known before it is made."""

    async def change(client: AsyncClient) -> Done:
        await run(client)
        return Done(words, undo)

    return change


class ReadOnlyClient(AsyncClient):
    """A client that refuses every call that could change something, without sending it."""

    def _answered(self, method: str, path: str, query: Any, body: Any) -> Any:
        dry = any(isinstance(part, dict) and part.get("dry_run") is True for part in (query, body))
        if method != "GET" and path not in _READS and not dry:
            raise ApiError("read_only", "nothing can be changed: the view is read-only")
        return super()._answered(method, path, query, body)


class Calls:
    """Runs functions of a client, of which there is one for each patience."""

    def __init__(self, connect: Callable[[], AsyncClient]) -> None:
        self._connect = connect
        self._clients: dict[float, AsyncClient] = {}
        self._running: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def run(
        self, function: Callable[[AsyncClient], Awaitable[T]], patience: float = USUAL_SECONDS
    ) -> T:
        """What `function` returns or raises; if the caller is cancelled, it runs to its end."""
        client = self._clients.get(patience)
        if client is None:
            client = self._clients[patience] = self._connect()
            client.timeout = patience
        running = asyncio.ensure_future(function(client))
        self._running.add(running)
        running.add_done_callback(self._over)
        return await asyncio.shield(running)

    def close(self) -> None:
        """Close the idle connections now, and the others when their calls are over."""
        self._closed = True
        for client in self._clients.values():
            client.close_idle()

    def _over(self, running: asyncio.Future[Any]) -> None:
        self._running.discard(running)
        if self._closed:
            self.close()
        if not running.cancelled():
            # Retrieved here, since the caller may be gone.
            running.exception()
