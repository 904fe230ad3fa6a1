"""The daemon's state and events as they happen: two threads that post frozen snapshots.

One thread follows `/api/events`, the other asks `/api/status` when something happened, and every
few seconds. However much happens, at most four snapshots a second are posted. Both reconnect by
themselves, to whichever socket the daemon then has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from thermocline.daemon.client import Client, ClientError
from thermocline.daemon.shapes.status import Status

_UPDATE_SECONDS: Final = 0.25
_IDLE_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 1.0
# Of a status that takes long to compute, the daemon's share of the time stays below a fifth.
_REST_PER_WORK: Final = 4.0
_EVENTS_KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One event of the daemon.

    Attributes:
        type: such as `memory.stored`.
        agent: whose memory; "" for the daemon itself.
        time: seconds since the epoch.
        data: its other fields.
    """

    id: str
    type: str
    agent: str
    time: float
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The daemon at one moment.

    Attributes:
        connected: whether it answered just now.
        status: its answer, or while it is away the last one; None: it never answered.
        at: when `status` came, in seconds since the epoch.
        trouble: why it does not answer; "" while it does.
        since: when it began or ceased to answer.
        events: what happened since the snapshot before, oldest first.
        socket: where it was looked for.
    """

    connected: bool = False
    status: Status | None = None
    at: float = 0.0
    trouble: str = ""
    since: float = 0.0
    events: tuple[FeedEvent, ...] = ()
    socket: str = ""


class Feed:
    """Follows one daemon until it is stopped.

    Args:
        connect: makes a client, for every agent; called again after each failure.
        post: receives each snapshot, on a thread of the feed.
        now: seconds since the epoch.
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
            for target in (self._ask, self._follow)
        ]

    def start(self) -> None:
        """Begin."""
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

    def _ask(self) -> None:
        last = Snapshot(since=self._now())
        client: Client | None = None
        while not self._stopped.is_set():
            self._wake.clear()
            began = time.monotonic()
            client = client or self._connect()
            try:
                last = self._answered(last, client.status(), client.socket_path)
            except ClientError as error:
                last = self._failed(last, error, client.socket_path)
                client.close()
                client = None
            if self._stopped.is_set():
                break
            self._post(last)
            rest = max(_UPDATE_SECONDS, (time.monotonic() - began) * _REST_PER_WORK)
            self._stopped.wait(rest)
            self._wake.wait(max(0.0, (_IDLE_SECONDS if client else _RETRY_SECONDS) - rest))
        if client is not None:
            client.close()

    def _answered(self, last: Snapshot, status: Status, socket: str) -> Snapshot:
        now = self._now()
        self._answers.set()
        with self._lock:
            events, self._events = tuple(self._events), []
        since = last.since if last.connected else now
        return Snapshot(True, status, now, "", since, events, socket)

    def _failed(self, last: Snapshot, error: ClientError, socket: str) -> Snapshot:
        if not self._stopped.is_set():
            self._answers.clear()
        since = self._now() if last.connected else last.since
        return Snapshot(False, last.status, last.at, str(error), since, (), socket)

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
            del self._events[:-_EVENTS_KEPT]
        self._wake.set()
