"""Calls to the daemon over a kept connection, and the rules for repeating a call.

`BaseCaller` has all of it but the waiting, in which `AsyncCaller` differs.
"""

from __future__ import annotations

import json
import os
import threading
import time
from abc import ABC, abstractmethod

from ..runtime.places import default_socket
from .errors import AnswerLost, AnswerUnreadable, ApiError, DaemonUnreachable, refusal
from .wire import (
    BadAnswer,
    Broken,
    Connection,
    Events,
    Response,
    named,
    perform,
    perform_stream,
    quoted,
    request_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Final, Self, TypeAlias, TypeVar

    from .wire import Steps, StreamSteps

    Json: TypeAlias = Any
    Query: TypeAlias = Mapping[str, Any]
    # Method, path, query and body.
    Request: TypeAlias = tuple[str, str, Query | None, Json]
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


def url_path(template: str, fields: dict[str, Any]) -> str:
    """The path of `/api/kv/{key}` with the values of its names, which it takes out of `fields`."""
    collection, *named = template.split("/{")
    path = collection
    for part in named:
        name, _, rest = part.partition("}")
        if name not in fields:
            raise TypeError(f"{template} needs a value for '{name}'")
        value = str(fields.pop(name))
        if not value:
            raise ApiError("invalid", "give an id or a key: it is empty")
        path += f"/{quoted(value)}{rest}"
    return path


def request_fields(call: str, fields: dict[str, Any], whole: str = "") -> Request:
    """Method, path, query and body of a call such as `PUT /api/kv/{key}`.

    Fields that the path does not name are the query, of a POST or PUT the body, unless the field
    `whole` is that.
    """
    method, template = call.split()
    path = url_path(template, fields)
    if whole:
        body = fields.pop(whole)
        return method, path, fields, body
    if method in ("POST", "PUT"):
        return method, path, None, fields
    return method, path, fields, None


class BaseCaller(ABC):
    """The requests of a client, and what its answers mean; a class below it waits for them.

    A call is repeated only when that is safe: when the daemon had not received all of it, or when
    it only reads. Calls raise `ApiError` and `DaemonUnreachable`.

    Args:
        socket_path: the daemon's socket; default: `default_socket`.
        agent: whose memory; default: the daemon's `default`.
        timeout: seconds to wait for the answer to a call; of a stream, for each piece.
        program: the name by which `undo --by` finds what is written.
    """

    def __init__(
        self,
        socket_path: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        timeout: float = 30.0,
        program: str = "",
    ) -> None:
        self.socket_path = os.fspath(socket_path or default_socket(os.environ))
        self._agent = agent
        self._headers = {"X-Program": name} if (name := named(program)) else {}
        self._timeout = timeout
        self._idle: list[Connection] = []

    @property
    def timeout(self) -> float:
        """Seconds to wait for the answer to a call; a change closes the idle connections."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        if seconds != self._timeout:
            self.close_idle()
            self._timeout = seconds

    def request(
        self, method: str, path: str, query: Query | None = None, body: Json = None
    ) -> Json:
        """Make any call of the API; return the JSON of the answer, or its text where it is text.

        The path is percent-encoded. In the query None leaves a parameter out, a sequence repeats
        it.
        """
        return self.make(self.parsed, method, path, query, body)

    def call(self, call: str, **fields: Json) -> Json:
        """Make a call such as `PUT /api/kv/{key}`; return the JSON of its answer, or its text.

        Fields that the path does not name are the query, of a POST or PUT the body.
        """
        return self.request(*request_fields(call, fields))

    def make(
        self,
        read: Callable[[Response], Any],
        method: str,
        path: str,
        query: Query | None,
        body: Json,
    ) -> Any:
        """What `read` makes of the answer to a call."""

        def steps() -> Steps[Any]:
            return read((yield from self._answered(method, path, query, body)))

        return self._run(steps())

    @abstractmethod
    def _run(self, steps: Steps[Any]) -> Any:
        """The result of some steps, or a coroutine of it."""

    def parsed(self, answer: Response) -> Json:
        """The JSON of an answer, or its text where it is text; raises `ApiError` for a refusal."""
        value = self.content(answer)
        if answer.status >= 400:
            raise refusal(answer.status, value)
        return value

    def decoded(self, answer: Response, kind: type[T]) -> T:
        """An answer as a struct; raises as `parsed`."""
        import msgspec  # noqa: PLC0415 - the bridge of a client goes without

        if answer.status >= 400:
            raise refusal(answer.status, self.content(answer))
        if kind not in _learned:
            with _learning:
                msgspec.json.Decoder(kind)
                _learned.add(kind)
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.DecodeError as error:
            raise AnswerUnreadable(self.socket_path, str(error)) from error

    def content(self, answer: Response) -> Json:
        """The JSON or the text of an answer, even of a refusal."""
        if answer.media_type != "application/json":
            return answer.body.decode("utf-8", "replace")
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise DaemonUnreachable(self.socket_path, "its answer is not JSON") from error

    def _query(self, query: Query | None) -> Query:
        return {**(query or {}), "agent": self._agent}

    def _lost(self, error: Exception, request: bytes) -> DaemonUnreachable:
        """What an error between request and answer is to the caller."""
        if isinstance(error, BadAnswer):
            return DaemonUnreachable(self.socket_path, str(error))
        reason = str(error)
        if isinstance(error, TimeoutError):
            reason = f"no whole answer came within {self._timeout:g} seconds"
        lost = AnswerLost(self.socket_path, reason)
        if request.startswith(b"GET "):
            lost.hint = "try again"
        return lost

    def _answered(self, method: str, path: str, query: Query | None, body: Json) -> Steps[Response]:
        request = request_of(method, path, self._query(query), self._headers, body)
        # One deadline for all attempts, however slowly an answer drips.
        until = time.monotonic() + self._timeout
        answer = yield from self._sent(method, request, until)
        # A daemon that is shutting down changes nothing; where systemd holds the socket, the next
        # one takes the call.
        if answer.status != 503 or _LEAVING not in answer.body:
            return answer
        self.close_idle()
        try:
            return (yield from self._sent(method, request, until))
        except AnswerLost:
            raise
        except DaemonUnreachable:
            return answer

    def _sent(self, method: str, request: bytes, until: float) -> Steps[Response]:
        try:
            return (yield from self._once(request, until))
        except Broken as broken:
            if not (broken.unsent or (method == "GET" and not broken.begun)):
                raise self._lost(broken, request) from broken
        try:
            return (yield from self._once(request, until))
        except Broken as broken:
            raise self._lost(broken, request) from broken

    def _once(self, request: bytes, until: float) -> Steps[Response]:
        connection = yield from self._connected()
        reusable = False
        try:
            answer = yield from connection.converse(request, until)
            reusable = answer.reusable
        except (BadAnswer, TimeoutError) as error:
            raise self._lost(error, request) from error
        finally:
            # The rest of an incomplete answer must not be read as the next one.
            if reusable:
                self._idle.append(connection)
            else:
                connection.close()
        return answer

    def _connected(self) -> Steps[Connection]:
        while self._idle:
            connection = self._idle.pop()
            if not connection.stale():
                return connection
            connection.close()
        return (yield from self._open(self._timeout))

    def close_idle(self) -> None:
        """Close the connections that no call uses; the next call opens another."""
        while self._idle:
            self._idle.pop().close()

    def _stream_of(self, path: str, query: Query, last_id: str | None) -> StreamSteps:
        headers = {"Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        request = request_of("GET", path, self._query(query), headers)
        return self._pieces(request, max(self._timeout, _SILENCE_SECONDS))

    def _file_of(self, path: str, query: Query | None) -> StreamSteps:
        request = request_of("GET", path, self._query(query), {})
        return self._pieces(request, max(self._timeout, _PREPARING_SECONDS))

    def _pieces(self, request: bytes, patience: float) -> StreamSteps:
        connection = yield from self._open(patience)
        try:
            status, headers = yield from connection.open_stream(request)
            if status >= 400:
                body = yield from connection.body(status, headers)
                raise refusal(status, self.content(Response(status, headers, body)))
            yield from connection.chunks(headers)
        except TimeoutError as error:
            raise AnswerLost(self.socket_path, "the stream fell silent") from error
        except (BadAnswer, Broken) as error:
            raise self._lost(error, request) from error
        finally:
            connection.close()

    def _open(self, patience: float) -> Steps[Connection]:
        try:
            return (yield from Connection.open(self.socket_path, patience))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DaemonUnreachable(self.socket_path, reason[:1].lower() + reason[1:]) from error


class Caller(BaseCaller):
    """A connection to the daemon, kept alive between calls and reopened when necessary.

    Use one client per thread and per process. The arguments are those of `BaseCaller`.

    Attributes:
        answer: the JSON of the last `call`, with all its fields.
    """

    answer: Json = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self.close_idle()

    def call(self, call: str, **fields: Json) -> Json:
        """Make a call such as `PUT /api/kv/{key}`, and keep its `answer`."""
        self.answer = super().call(call, **fields)
        return self.answer

    def stream(
        self, path: str, query: Query, last_id: str | None
    ) -> Iterator[tuple[str, str, Json]]:
        """Events of `path` as (id, type, data), until they end or break off (`AnswerLost`)."""
        events = Events()
        for piece in perform_stream(self._stream_of(path, query, last_id)):
            yield from events.feed(piece)

    def download(self, path: str, query: Query | None = None) -> Iterator[bytes]:
        """An answer in pieces, over a separate connection; `AnswerLost` if it breaks off."""
        return perform_stream(self._file_of(path, query))

    def _run(self, steps: Steps[T]) -> T:
        return perform(steps)
