"""HTTP/1.1 over one Unix socket: only the part needed for the daemon.

The standard library's client loads the mail parser and takes 20 ms to import, half of what a whole
command may take.
"""

from __future__ import annotations

import json
import select
import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping
    from typing import Any, Final, Self, TypeAlias, TypeVar

    T = TypeVar("T")
    # Yields what is to be waited for, and returns a result.
    Steps: TypeAlias = Generator["Wait", None, T]
    # The same between the pieces of a stream.
    StreamSteps: TypeAlias = Generator["Wait | bytes", None, None]

_HEAD_LIMIT: Final = 65_536
_READ_SIZE: Final = 65_536
# Between two tries to connect to a busy daemon.
_FULL_SECONDS: Final = 0.02
_UNRESERVED: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)


class Broken(Exception):
    """The connection ended before the answer was complete.

    Attributes:
        begun: whether any byte of the answer was received.
        unsent: whether the request was still incomplete, so that the daemon can't have acted.
    """

    def __init__(self, *, begun: bool) -> None:
        super().__init__("the connection was closed")
        self.begun, self.unsent = begun, False


class BadAnswer(Exception):
    """The answer is not HTTP as the daemon sends it."""


class Response:
    """One whole answer; header names are in lower case."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def media_type(self) -> str:
        """The type of the body without its parameters, such as `application/json`."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def reusable(self) -> bool:
        """Whether the connection can take another request."""
        return self.headers.get("connection", "").lower() != "close"


class Wait:
    """A moment to wait: until a socket can be read, or written; without a socket, for `seconds`.

    A socket that is not ready within `seconds` is a `TimeoutError` where this was yielded.
    """

    __slots__ = ("seconds", "socket", "writes")

    def __init__(
        self, seconds: float, waiting: socket.socket | None = None, *, writes: bool = False
    ) -> None:
        self.seconds = seconds
        self.socket = waiting
        self.writes = writes

    def block(self) -> bool:
        """Wait, and return whether the socket is ready."""
        if self.socket is None:
            time.sleep(self.seconds)
            return True
        poll = select.poll()
        poll.register(self.socket, select.POLLOUT if self.writes else select.POLLIN)
        return bool(poll.poll(self.seconds * 1000))


def perform(steps: Steps[T]) -> T:
    """The result of steps whose waits block."""
    try:
        wait = next(steps)
        while True:
            wait = next(steps) if wait.block() else steps.throw(TimeoutError())
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        steps.close()


def perform_stream(steps: StreamSteps) -> Iterator[bytes]:
    """The pieces among steps whose waits block."""
    is_late = False
    try:
        while True:
            piece = steps.throw(TimeoutError()) if is_late else next(steps)
            is_late = isinstance(piece, Wait) and not piece.block()
            if not isinstance(piece, Wait):
                yield piece
    except StopIteration:
        return
    finally:
        steps.close()


class Connection:
    """One open connection; its methods are steps, for `perform` or an event loop.

    Not for several threads, nor for a child after a fork. `patience` is the maximum of each single
    wait for the daemon, in seconds.
    """

    def __init__(self, connection: socket.socket, patience: float) -> None:
        self._socket = connection
        self._patience = patience
        # When the answer must be whole, by the monotonic clock; None: every wait has its own time.
        self._until: float | None = None
        self._buffer = bytearray()
        self._begun = False

    @classmethod
    def open(cls, path: str, patience: float) -> Steps[Self]:
        """Connect; retry while the kernel's queue is full; `OSError` if nobody listens."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        until = time.monotonic() + patience
        try:
            while True:
                try:
                    connection.connect(path)
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise
                    yield Wait(_FULL_SECONDS)
                else:
                    return cls(connection, patience)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close it; repeated calls are safe."""
        self._socket.close()

    def stale(self) -> bool:
        """Whether the daemon closed it, or sent unrequested data, while it was idle."""
        if self._buffer:
            return True
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def converse(self, request: bytes, until: float | None = None) -> Steps[Response]:
        """Send one request and wait for its whole answer.

        At the longest `until` a time of the monotonic clock, by default as long as for one wait.

        Raises:
            Broken: the connection ended first.
            BadAnswer: the answer is not HTTP.
            TimeoutError: it took too long; the connection is of no further use.
        """
        self._begun = False
        self._until = time.monotonic() + self._patience if until is None else until
        sent = yield from self._send(request)
        try:
            status, headers = yield from self._head()
            return Response(status, headers, (yield from self.body(status, headers)))
        except Broken as broken:
            # A refusal may come before the body was sent: only without one was the request lost.
            broken.unsent = not (sent or broken.begun)
            raise

    def open_stream(self, request: bytes) -> Steps[tuple[int, dict[str, str]]]:
        """Send a request whose answer has no known length; read it with `chunks`."""
        yield from self._send(request)
        return (yield from self._head())

    def chunks(self, headers: dict[str, str]) -> StreamSteps:
        """The pieces of a body as they come, until the daemon ends it."""
        if headers.get("transfer-encoding", "").lower() != "chunked":
            while self._buffer or (yield from self._fill()):
                yield self._taken(len(self._buffer))
            return
        while size := _chunk_size((yield from self._line())):
            yield (yield from self._exactly(size))
            if (yield from self._line()):
                raise BadAnswer("a chunk is longer than it said")
        while (yield from self._line()):
            pass

    def body(self, status: int, headers: dict[str, str]) -> Steps[bytes]:
        if status in (204, 304):
            return b""
        length = headers.get("content-length")
        if length is None or "transfer-encoding" in headers:
            whole = bytearray()
            for piece in self.chunks(headers):
                if isinstance(piece, Wait):
                    yield piece
                else:
                    whole += piece
            return bytes(whole)
        if not length.isdecimal():
            raise BadAnswer(f"its length is {length!r}")
        return (yield from self._exactly(int(length)))

    def _head(self) -> Steps[tuple[int, dict[str, str]]]:
        """The status and the headers of the next answer that is not interim (1xx)."""
        while True:
            status = _status((yield from self._line()))
            headers = {}
            size = 0
            while line := (yield from self._line()):
                size += len(line)
                if size > _HEAD_LIMIT:
                    raise BadAnswer("its headers have no end")
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            if status >= 200:
                return status, headers

    def _line(self) -> Steps[bytes]:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _HEAD_LIMIT:
                raise BadAnswer("a line of it has no end")
            yield from self._more()
        return self._taken(end + 1)[:-1].removesuffix(b"\r")

    def _exactly(self, size: int) -> Steps[bytes]:
        while len(self._buffer) < size:
            yield from self._more()
        return self._taken(size)

    def _taken(self, size: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _more(self) -> Steps[None]:
        if not (yield from self._fill()):
            raise Broken(begun=self._begun)

    def _send(self, request: bytes) -> Steps[bool]:
        rest = memoryview(request)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                yield self._wait(writes=True)
            except (BrokenPipeError, ConnectionResetError):
                return False
        return True

    def _fill(self) -> Steps[bool]:
        """Receive some bytes; False at the end."""
        while True:
            yield self._wait()
            try:
                data = self._socket.recv(_READ_SIZE)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                data = b""
            self._begun = self._begun or bool(data)
            self._buffer += data
            return bool(data)

    def _wait(self, *, writes: bool = False) -> Wait:
        seconds = self._patience
        if self._until is not None and (seconds := self._until - time.monotonic()) <= 0:
            raise TimeoutError
        return Wait(seconds, self._socket, writes=writes)


def _status(line: bytes) -> int:
    version, _, rest = line.partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/1.") or not (len(code) == 3 and code.isdigit()):
        raise BadAnswer("it does not speak HTTP")
    return int(code)


def _chunk_size(line: bytes) -> int:
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError:
        raise BadAnswer("the size of a chunk is not a number") from None


def quoted(text: str) -> str:
    """`text` percent-encoded for a path or a query."""
    data = text.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in data)


def request_of(
    method: str, path: str, query: Mapping[str, Any], headers: Mapping[str, str], body: Any = None
) -> bytes:
    """The bytes of a request; None is left out of the query, and a sequence repeated."""
    text = "&".join(f"{quoted(name)}={quoted(value)}" for name, value in _pairs(query))
    data = b"" if body is None else _json(body)
    lines = [f"{method} {path}{'?' if text else ''}{text} HTTP/1.1", "Host: thermocline"]
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"a header cannot hold {value!r}")
        lines.append(f"{name}: {value}")
    if body is not None:
        lines.append("Content-Type: application/json")
    if method != "GET" or data:
        lines.append(f"Content-Length: {len(data)}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + data


def _json(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # The daemon says where a text has a lone surrogate.
        return json.dumps(body, allow_nan=False).encode()


def _pairs(query: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in query.items():
        many = isinstance(value, (list, tuple, set, frozenset))
        for item in value if many else (value,):
            if item is not None:
                yield name, str(item).lower() if isinstance(item, bool) else str(item)


def named(program: str) -> str:
    """A program's name as a header can hold it."""
    return "".join(char for char in program if char.isascii() and char.isprintable())[:64].strip()


class Lines:
    """The lines of a text that comes in pieces; an incomplete last one is left out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[str]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]


class Events:
    """Server-sent events in a text that comes in pieces: a blank line ends an event."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._fields: dict[str, str] = {}

    def feed(self, piece: bytes) -> Iterator[tuple[str, str, Any]]:
        """The (id, type, data) of the events that this piece completes."""
        for line in self._lines.feed(piece):
            name, _, value = line.partition(":")
            if name:
                value = value.removeprefix(" ")
                before = self._fields.get(name) if name == "data" else None
                self._fields[name] = value if before is None else f"{before}\n{value}"
            elif not line:
                fields, self._fields = self._fields, {}
                if "data" in fields:
                    data = json.loads(fields["data"])
                    yield fields.get("id", ""), fields.get("event", "message"), data


def lines_of(pieces: Iterable[bytes]) -> Iterator[str]:
    """The lines of a text that comes in pieces, as of `Lines`."""
    lines = Lines()
    for piece in pieces:
        yield from lines.feed(piece)
