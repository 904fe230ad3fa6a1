"""Calls to the daemon over one kept connection, and the rules for repeating a call."""

from __future__ import annotations

import json
import os
import threading

from ..runtime.places import default_socket
from .errors import AnswerLost, AnswerUnreadable, ApiError, DaemonUnreachable, refusal
from .wire import BadAnswer, Broken, Connection, Response, events_of, quoted, request_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Final, Self, TypeAlias, TypeVar

    Json: TypeAlias = Any
    Query: TypeAlias = Mapping[str, Any]
    T = TypeVar("T")

# msgspec crashes the process if two threads decode a struct for the first time at once.
_learning: Final = threading.Lock()
_learned: Final[set[type]] = set()
# The daemon sends a sign of life every 15 seconds; three missing ones mean it hangs.
_SILENCE_SECONDS: Final = 45.0
# Before the first piece of a backup the daemon copies and checks its whole database.
_PREPARING_SECONDS: Final = 600.0
# The error code of a daemon that is shutting down.
_LEAVING: Final = b'"shutting_down"'


def place(collection: str, name: str) -> str:
    """The path of one element of a collection, with its name percent-encoded."""
    if not name:
        raise ApiError("invalid", f"{collection} needs an id or a key: got an empty text")
    return f"{collection}/{quoted(name)}"


class Caller:
    """A connection to the daemon, kept alive between calls and reopened when necessary.

    A call is repeated only when that is safe: when the daemon had not received all of it, or when
    it only reads. Use one client per thread and per process. Calls raise `ApiError` and
    `DaemonUnreachable`.

    Args:
        socket_path: the daemon's socket; default: `default_socket`.
        agent: whose memory; default: the daemon's `default`.
        timeout: seconds to wait for the daemon at a time.

    Attributes:
        answered: the JSON of the last answer, as it came; it may have fields that this release
            does not know.
    """

    def __init__(
        self,
        socket_path: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self.socket_path = os.fspath(socket_path or default_socket(os.environ))
        self.answered = b""
        self._agent = agent
        self._timeout = timeout
        self._connection: Connection | None = None
        self._streaming: Connection | None = None

    @property
    def timeout(self) -> float:
        """Seconds to wait for the daemon at a time; a change closes the connection."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        if seconds != self._timeout:
            self.close()
            self._timeout = seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def hang_up(self) -> None:
        """End a stream that another thread reads: it raises `AnswerLost` there."""
        if self._streaming is not None:
            self._streaming.shut_down()

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
        answer = self._call(method, path, query, body)
        found = self._parsed(answer)
        if answer.status >= 400:
            raise refusal(answer.status, found)
        return found

    def ask(
        self, kind: type[T], method: str, path: str, query: Query | None = None, body: Json = None
    ) -> T:
        """The same for an answer of a known struct, one of those in `shapes`."""
        answer = self._call(method, path, query, body)
        if answer.status >= 400:
            raise refusal(answer.status, self._parsed(answer))
        return self._decoded(answer.body, kind)

    def stream(
        self, path: str, query: Query, last_id: str | None
    ) -> Iterator[tuple[str, str, Json]]:
        """The server-sent events of `path` as (id, type, data), until the daemon ends them.

        Raises:
            AnswerLost: the stream broke off or fell silent.
        """
        headers = {"Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        request = request_of("GET", path, self._query(query), headers)
        yield from events_of(self._pieces(request, max(self._timeout, _SILENCE_SECONDS)))

    def download(self, path: str) -> Iterator[bytes]:
        """The bytes of an answer of any length, in pieces, over a separate connection.

        Raises:
            AnswerLost: it broke off or fell silent.
        """
        request = request_of("GET", path, self._query(None), {})
        return self._pieces(request, max(self._timeout, _PREPARING_SECONDS))

    def _call(
        self, method: str, path: str, query: Query | None = None, body: Json = None
    ) -> Response:
        request = request_of(method, path, self._query(query), {}, body)
        answer = self._sent(method, request)
        if answer.status != 503 or _LEAVING not in answer.body:
            return answer
        # Nothing was changed. If systemd holds the socket, the next daemon takes the call.
        self.close()
        try:
            return self._sent(method, request)
        except AnswerLost:
            raise
        except DaemonUnreachable:
            return answer

    def _sent(self, method: str, request: bytes) -> Response:
        try:
            return self._once(request)
        except Broken as broken:
            if not (broken.unsent or (method == "GET" and not broken.begun)):
                raise AnswerLost(self.socket_path, str(broken)) from broken
        try:
            return self._once(request)
        except Broken as broken:
            raise AnswerLost(self.socket_path, str(broken)) from broken

    def _query(self, query: Query | None) -> Query:
        return {**(query or {}), "agent": self._agent}

    def _parsed(self, answer: Response) -> Json:
        if answer.media_type != "application/json":
            return answer.body.decode("utf-8", "replace")
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise DaemonUnreachable(self.socket_path, "its answer is not JSON") from error

    def _decoded(self, body: bytes, kind: type[T]) -> T:
        import msgspec  # noqa: PLC0415 - the bridge of a client goes without

        self.answered = body
        if kind not in _learned:
            with _learning:
                msgspec.json.Decoder(kind)
                _learned.add(kind)
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            raise AnswerUnreadable(self.socket_path, str(error)) from error

    def _pieces(self, request: bytes, timeout: float) -> Iterator[bytes]:
        connection = self._streaming = self._open(timeout)
        try:
            status, answered = connection.open_stream(request)
            if status >= 400:
                whole = Response(status, answered, connection.body(status, answered))
                raise refusal(status, self._parsed(whole))
            yield from connection.chunks(answered)
        except BadAnswer as error:
            raise DaemonUnreachable(self.socket_path, str(error)) from error
        except Broken as error:
            raise AnswerLost(self.socket_path, str(error)) from error
        except TimeoutError as error:
            raise AnswerLost(self.socket_path, "the stream fell silent") from error
        finally:
            self._streaming = None
            connection.close()

    def _once(self, request: bytes) -> Response:
        if self._connection is not None and self._connection.stale():
            self.close()
        connection = self._connection = self._connection or self._open(self._timeout)
        answered = False
        try:
            answer = connection.converse(request)
            answered = answer.headers.get("connection", "").lower() != "close"
        except BadAnswer as error:
            raise DaemonUnreachable(self.socket_path, str(error)) from error
        except TimeoutError as error:
            reason = f"nothing came for {self._timeout:g} seconds"
            raise AnswerLost(self.socket_path, reason) from error
        finally:
            # The rest of an incomplete answer must not be read as the next one.
            if not answered:
                self.close()
        return answer

    def _open(self, timeout: float) -> Connection:
        try:
            return Connection(self.socket_path, timeout)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DaemonUnreachable(self.socket_path, reason[:1].lower() + reason[1:]) from error
