"""Calls of the blocking client on threads, so that no key press waits for the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from thermocline.daemon.client import ApiError, Client

T = TypeVar("T")
Undo: TypeAlias = Callable[[Client], object]

# How long the daemon may take for what is usually quick, and for what may take minutes.
USUAL_SECONDS: Final = 30.0
LONG_SECONDS: Final = 600.0
# What reads although it has a body, and is therefore sent with POST.
_READS: Final = frozenset(
    {"/api/recall", "/api/context", "/api/files/search", "/api/files/get", "/api/validate"}
)


class Done(NamedTuple):
    """A change that was made: what was done, in words, and what undoes it."""

    text: str
    undo: Undo | None = None


class ReadOnlyClient(Client):
    """A client that refuses every call that could change something, without sending it."""

    def _call(self, method: str, path: str, query: Any = None, body: Any = None) -> Any:
        if method != "GET" and path not in _READS and not _dry(query, body):
            raise ApiError("read_only", "nothing can be changed: the view is read-only")
        return super()._call(method, path, query, body)


def _dry(query: Any, body: Any) -> bool:
    return any(isinstance(one, dict) and one.get("dry_run") is True for one in (query, body))


class Calls:
    """Runs functions of a client, each on a thread that ends with the program.

    A client serves one call at a time, so there are as many as there were calls at once.

    Args:
        connect: makes a client.
    """

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._idle: list[Client] = []
        self._closed = False

    async def run(self, function: Callable[[Client], T], patience: float = USUAL_SECONDS) -> T:
        """What `function` returns or raises; if the caller is cancelled, it runs to its end.

        Args:
            function: is called with a client, on a thread.
            patience: seconds to wait for the daemon at a time.
        """
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
