"""What every part of the client calls the daemon with: one kept connection, and its way out."""

from __future__ import annotations

import os

from ..runtime.places import socket_places
from .channel import ApiError, Channel, quoted, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from ..answers import Json
    from .channel import Query


def default_socket(env: Mapping[str, str]) -> str:
    """The daemon's socket for a program with the environment `env`.

    `$THERMOCLINE_SOCKET` where it is set; else the first that exists of the places where a
    daemon offers it; where none does, the one that a daemon of this user would make.
    """
    if named := env.get("THERMOCLINE_SOCKET"):
        return named
    root = os.getuid() == 0
    places = socket_places(env, root=root)
    # A program that is a service itself has a run-time folder of its own; the daemon's is another.
    usual = socket_places({**env, "RUNTIME_DIRECTORY": ""}, root=root)[0]
    return next((path for path in places if os.path.exists(path)), usual)  # noqa: PTH110


def place(collection: str, name: str) -> str:
    """The path of one thing of a collection, whatever characters its name has."""
    if not name:
        raise ApiError("invalid", f"{collection} needs an id or a key: got an empty text")
    return f"{collection}/{quoted(name)}"


class Caller:
    """A connection to the daemon, kept alive between calls and made anew when it must be.

    A call is sent a second time only when that can do nothing twice: when the daemon had not
    received all of it, or when it only reads. One client serves one thread, and a forked
    process needs its own. Calls raise `ApiError` and `DaemonUnreachable`.

    Args:
        socket_path: the daemon's socket; `default_socket` finds it when left out.
        agent: whose memory; the daemon's `default` when left out.
        timeout: seconds to wait for the daemon at a time.
    """

    def __init__(
        self, socket_path: str | None = None, agent: str | None = None, timeout: float = 30.0
    ) -> None:
        self.socket_path = socket_path or default_socket(os.environ)
        self._channel = Channel(self.socket_path, agent, timeout)

    @property
    def timeout(self) -> float:
        """Seconds to wait for the daemon at a time; a change closes the connection."""
        return self._channel.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        if seconds != self._channel.timeout:
            self._channel.close()
            self._channel.timeout = seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._channel.close()

    def request(
        self, method: str, path: str, query: Query | None = None, body: Json = None
    ) -> Json:
        """Make any call of the API.

        Args:
            method: `GET`, `POST`, `PUT` or `DELETE`.
            path: such as `/api/memory`, percent-encoded.
            query: its parameters; None leaves one out, a sequence repeats it.
            body: the JSON to send; None sends none.

        Returns:
            The JSON of the answer, or its text where it is text.
        """
        status, parsed = self._channel.call(method, path, query, body)
        if status >= 400:
            raise refusal(status, parsed)
        return parsed

    def download(self, path: str, query: Query | None = None) -> Iterator[bytes]:
        """The bytes of an answer of any length, in pieces as they come.

        Takes a connection of its own, from the first piece to the last.

        Raises:
            AnswerLost: it broke off.
        """
        return self._channel.download(path, query or {})
