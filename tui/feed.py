"""The daemon as the view sees it: frozen snapshots of its state and events, and calls on threads.

Of the feed's two threads one follows `/api/events`, the other asks `/api/status` when something
happened, and every few seconds. However much happens, at most four snapshots a second are posted.
Both reconnect by themselves, to whichever socket the daemon then has.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from thermocline.daemon.client import ApiError, Client, ClientError
from thermocline.daemon.client.wording import number_of
from thermocline.daemon.schemas.status import Status

T = TypeVar("T")
Undo: TypeAlias = Callable[[Client], object]

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
    """The daemon at one moment.

    Attributes:
        connected: whether it answered just now.
        status: its answer, or while it is away the last one; None: it never answered.
        at: when `status` came, in seconds since the epoch.
        trouble: why it does not answer; "" while it does.
        events: what happened since the snapshot before, oldest first.
    """

    connected: bool = False
    status: Status | None = None
    at: float = 0.0
    trouble: str = ""
    events: tuple[FeedEvent, ...] = ()

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
    """Follows one daemon until it is stopped.

    It connects again after each failure. `post` receives each snapshot, on a thread of the feed.
    """

    def __init__(
        self,
        connect: Callable[[], Client],
        post: Callable[[Snapshot], object],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._connect = connect
        self._post = post
        self._now = now
        self._stopped = threading.Event()
        self._wake = threading.Event()
        self._answers = threading.Event()
        self._lock = threading.Lock()
        self._events: list[FeedEvent] = []
        self._listening: Client | None = None
        self._threads = [
            threading.Thread(target=target, name=f"feed-{target.__name__}", daemon=True)
            for target in (self._poll, self._follow)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def refresh(self) -> None:
        """Ask again at once, for instance after a change that raises no event."""
        self._wake.set()

    def stop(self) -> None:
        """End; no snapshot is posted after this returns, unless the daemon hangs."""
        self._stopped.set()
        self._wake.set()
        self._answers.set()
        with self._lock:
            if self._listening is not None:
                self._listening.hang_up()
        for thread in self._threads:
            thread.join(1.0)

    def _poll(self) -> None:
        last = Snapshot()
        client: Client | None = None
        while not self._stopped.is_set():
            self._wake.clear()
            began = time.monotonic()
            client = client or self._connect()
            try:
                status = client.status()
            except ClientError as error:
                if not self._stopped.is_set():
                    self._answers.clear()
                last = Snapshot(False, last.status, last.at, str(error))
                client.close()
                client = None
            else:
                self._answers.set()
                with self._lock:
                    events, self._events = tuple(self._events), []
                last = Snapshot(True, status, self._now(), "", events)
            if self._stopped.is_set():
                break
            self._post(last)
            rest = max(_UPDATE_SECONDS, (time.monotonic() - began) * _REST_PER_WORK)
            self._stopped.wait(rest)
            self._wake.wait(max(0.0, (_IDLE_SECONDS if client else _RETRY_SECONDS) - rest))
        if client is not None:
            client.close()

    def _follow(self) -> None:
        # The first time, what the daemon still knows of; later, what was missed in between.
        last_id = "0"
        while not self._stopped.is_set():
            self._answers.wait()
            client = self._connect()
            with self._lock:
                self._listening = client
            try:
                for event_id, kind, data in client.events(last_id=last_id):
                    last_id = event_id
                    self._add(last_id, kind, data)
                    if self._stopped.is_set():
                        break
            except ClientError:
                pass  # the other thread finds out whether the daemon is away, and says so
            with self._lock:
                self._listening = None
            client.close()
            self._wake.set()
            self._stopped.wait(_UPDATE_SECONDS)

    def _add(self, event_id: str, kind: str, data: Any) -> None:
        fields = dict(data) if isinstance(data, dict) else {"data": data}
        agent, at = str(fields.pop("agent", "")), fields.pop("time", None)
        seconds = float(at) if isinstance(at, (int, float)) else self._now()
        with self._lock:
            self._events.append(FeedEvent(event_id, kind, agent, seconds, fields))
            del self._events[:-_MAX_EVENTS]
        self._wake.set()


class Done(NamedTuple):
    """A change that was made: what was done, in words, and what undoes it."""

    text: str
    undo: Undo | None = None


def doing(words: str, run: Undo, undo: Undo | None = None) -> Callable[[Client], Done]:
    """A change whose words are known before it is made."""

    def change(client: Client) -> Done:
        run(client)
        return Done(words, undo)

    return change


class ReadOnlyClient(Client):
    """A client that refuses every call that could change something, without sending it."""

    def _answered(self, method: str, path: str, query: Any, body: Any) -> Any:
        dry = any(isinstance(part, dict) and part.get("dry_run") is True for part in (query, body))
        if method != "GET" and path not in _READS and not dry:
            raise ApiError("read_only", "nothing can be changed: the view is read-only")
        return super()._answered(method, path, query, body)


class Calls:
    """Runs functions of a client, each on a thread that ends with the program.

    A client serves one call at a time, so there are as many as there were calls at once.
    """

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._idle: list[Client] = []
        self._closed = False

    async def run(self, function: Callable[[Client], T], patience: float = USUAL_SECONDS) -> T:
        """What `function` returns or raises; if the caller is cancelled, it runs to its end."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        client = self._idle.pop() if self._idle else self._connect()
        client.timeout = patience

        def settle(result: T | None, error: BaseException | None) -> None:
            if self._closed:
                client.close()
            else:
                self._idle.append(client)
            if done.cancelled():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        def work() -> None:
            result: T | None = None
            failure: BaseException | None = None
            try:
                result = function(client)
            except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
                failure = error
            if self._closed:
                client.close()
            # The program may have ended meanwhile.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, failure)

        threading.Thread(target=work, name="call", daemon=True).start()
        return await done

    def close(self) -> None:
        """Close the idle connections now, and the others when their calls are over."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
