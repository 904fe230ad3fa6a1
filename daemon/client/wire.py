"""HTTP/1.1 over one Unix socket: only the part needed for the daemon.

The standard library's client loads the mail parser and takes 20 ms to import, half of what a whole
command may take.
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Final

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

    def __init__(self, reason: str, *, begun: bool, unsent: bool = False) -> None:
        super().__init__(reason)
        self.begun = begun
        self.unsent = unsent


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


class Connection:
    """One open connection. Not for several threads, nor for a child after a fork.

    Args:
        path: the socket's file.
        timeout: the maximum of each single wait for the daemon, in seconds.

    Raises:
        OSError: nothing accepts connections there.
    """

    def __init__(self, path: str, timeout: float | None) -> None:
        self._buffer = bytearray()
        self._begun = False
        self._timeout = timeout
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._connect(path)
        except BaseException:
            self._socket.close()
            raise

    def _connect(self, path: str) -> None:
        """Connect; retry while more callers wait than the kernel's queue holds."""
        until = None if self._timeout is None else time.monotonic() + self._timeout
        while True:
            try:
                return self._socket.connect(path)
            except BlockingIOError:
                if until is not None and time.monotonic() > until:
                    raise
                time.sleep(_FULL_SECONDS)

    def close(self) -> None:
        """Close it; repeated calls are safe."""
        self._socket.close()

    def shut_down(self) -> None:
        """End it while another thread reads from it; that thread then closes it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def stale(self) -> bool:
        """Whether the daemon closed it, or sent unrequested data, while it was idle."""
        if self._buffer:
            return True
        try:
            self._socket.setblocking(False)
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            self._socket.settimeout(self._timeout)
            return False
        except OSError:
            return True
        return True

    def converse(self, request: bytes) -> Response:
        """Send one request and wait for its whole answer.

        Raises:
            Broken: the connection ended first.
            BadAnswer: the answer is not HTTP.
            TimeoutError: a wait took too long; the connection is of no further use.
        """
        self._begun = False
        failed = self._send(request)
        try:
            status, headers = self.head()
            return Response(status, headers, self.body(status, headers))
        except Broken as broken:
            # A refusal may come before the body was sent: only without one was the request lost.
            broken.unsent = failed is not None and not broken.begun
            raise

    def open_stream(self, request: bytes) -> tuple[int, dict[str, str]]:
        """Send a request whose answer has no known length; read it with `chunks`."""
        self._send(request)
        return self.head()

    def head(self) -> tuple[int, dict[str, str]]:
        """Read the status and the headers of the next answer that is not interim (1xx)."""
        while True:
            status = _status(self._line())
            headers = {}
            size = 0
            while line := self._line():
                size += len(line)
                if size > _HEAD_LIMIT:
                    raise BadAnswer("its headers have no end")
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            if status >= 200:
                return status, headers

    def chunks(self, headers: dict[str, str]) -> Iterator[bytes]:
        """The pieces of a body as they come, until the daemon ends it."""
        if headers.get("transfer-encoding", "").lower() != "chunked":
            yield from self._until_closed()
            return
        while size := _chunk_size(self._line()):
            yield self._exactly(size)
            if self._line():
                raise BadAnswer("a chunk is longer than it said")
        while self._line():
            pass

    def body(self, status: int, headers: dict[str, str]) -> bytes:
        """The whole body of an answer of known length."""
        if status in (204, 304):
            return b""
        length = headers.get("content-length")
        if length is None or "transfer-encoding" in headers:
            return b"".join(self.chunks(headers))
        if not length.isdecimal():
            raise BadAnswer(f"its length is {length!r}")
        return self._exactly(int(length))

    def _send(self, request: bytes) -> OSError | None:
        try:
            self._socket.sendall(request)
        except (BrokenPipeError, ConnectionResetError) as error:
            return error
        return None

    def _fill(self) -> bool:
        """Wait for more bytes; False at the end of the stream."""
        try:
            data = self._socket.recv(_READ_SIZE)
        except ConnectionResetError:
            return False
        self._begun = self._begun or bool(data)
        self._buffer += data
        return bool(data)

    def _need(self) -> None:
        if not self._fill():
            raise Broken("the connection was closed", begun=self._begun)

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _HEAD_LIMIT:
                raise BadAnswer("a line of it has no end")
            self._need()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line.removesuffix(b"\r")

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._need()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _until_closed(self) -> Iterator[bytes]:
        while self._buffer or self._fill():
            data = bytes(self._buffer)
            self._buffer.clear()
            yield data


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
    data = b"" if body is None else json.dumps(body, allow_nan=False).encode()
    lines = [f"{method} {path}{'?' if text else ''}{text} HTTP/1.1", "Host: thermocline"]
    lines += [f"{name}: {_header_value(value)}" for name, value in headers.items()]
    if body is not None:
        lines.append("Content-Type: application/json")
    if method != "GET" or data:
        lines.append(f"Content-Length: {len(data)}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + data


def _pairs(query: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in query.items():
        many = isinstance(value, (list, tuple, set, frozenset))
        for one in value if many else (value,):
            if one is not None:
                yield name, str(one).lower() if isinstance(one, bool) else str(one)


def _header_value(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"a header cannot hold {value!r}")
    return value


def events_of(chunks: Iterable[bytes]) -> Iterator[tuple[str, str, Any]]:
    """The (id, type, data) of server-sent events: fields by line, a blank line ends an event."""
    fields: dict[str, str] = {}
    for line in lines_of(chunks):
        name, _, value = line.partition(":")
        if name:
            value = value.removeprefix(" ")
            before = fields.get(name) if name == "data" else None
            fields[name] = value if before is None else f"{before}\n{value}"
        elif not line:
            if "data" in fields:
                data = json.loads(fields["data"])
                yield fields.get("id", ""), fields.get("event", "message"), data
            fields = {}


def lines_of(chunks: Iterable[bytes]) -> Iterator[str]:
    """The lines of a text that comes in pieces; an incomplete last one is left out."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")
