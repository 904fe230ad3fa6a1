"""HTTP/1.1: received bytes as requests, and responses as bytes. Nothing here sends or receives.

httptools, the parser of Node, only parses: it has no limits. They are in `RequestReader`, which
bounds what a caller may send before anybody reads it: each line of a head and all of them, what
means nothing (blank lines, extensions of chunks), a body, and requests behind one another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

import httptools
import msgspec

from ..errors import InvalidInput, ThermoclineError, TooLarge, TooManyRequests

# The values of each header, by its name in lower case.
Headers: TypeAlias = dict[bytes, list[bytes]]
# The maximum size of a read from a socket: other callers wait while it is parsed.
READ_BYTES: Final = 8_192
_LINE_BYTES: Final = 8_190
_HEAD_BYTES: Final = 65_536
_HEAD_LINES: Final = 128
_UNREAD_BODY_BYTES: Final = 16_384
_WAITING_REQUESTS: Final = 16
_VERSIONS: Final = {"1.0", "1.1"}
_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus
}


class RequestTimeout(InvalidInput):
    """A request began and did not arrive in time."""

    code = "timeout"
    status = 408


class NotHttp(InvalidInput):
    """The received bytes are not a request."""

    def __init__(self) -> None:
        super().__init__("cannot read the request: it is not HTTP/1.1")


class HeadTooLarge(TooLarge):
    """A line of the head is too long, or there are too many."""

    status = 431

    def __init__(self) -> None:
        super().__init__(
            f"cannot read the request: a line of its head is longer than {_LINE_BYTES} bytes,"
            f" or there are more than {_HEAD_LINES} lines"
        )


class BadBody(InvalidInput):
    """The body is cut off, or not encoded as its head says."""

    def __init__(self) -> None:
        super().__init__("cannot read the body: it is not encoded as its headers say")


# Requests


class Body:
    """The body of a request, as it arrives.

    Attributes:
        complete: whether all of it has arrived.
    """

    __slots__ = ("_broken", "_unread", "_waiter", "complete")

    def __init__(self) -> None:
        self._broken = False
        self._unread = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self.complete = False

    @property
    def is_full(self) -> bool:
        """Whether no more should arrive until some of it is read."""
        return len(self._unread) > _UNREAD_BODY_BYTES

    async def read(self) -> bytes:
        """What arrived since, or the next to arrive; b"" at its end; else `BadBody`."""
        while not (self._unread or self.complete or self._broken):
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._broken:
            raise BadBody
        data = bytes(self._unread)
        self._unread.clear()
        return data

    def add(self, data: bytes) -> None:
        self._unread += data
        self._wake()

    def end(self, *, broken: bool = False) -> None:
        self.complete, self._broken = not broken, broken
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class HttpRequest:
    """One request: a head that has arrived, and a body that may still arrive.

    Attributes:
        path: percent-encoded, as it was sent.
        query: the values of each parameter.
        length: of the body in bytes, as announced; 0 if it is sent in chunks.
        has_body: whether the head announces one.
        persistent: whether the caller may send another request behind it.
    """

    __slots__ = (
        *("_headers", "body", "has_body", "is_http_1_0", "length"),
        *("method", "path", "persistent", "query"),
    )

    def __init__(self, version: str, method: str, target: bytes, headers: Headers) -> None:
        self._headers = headers
        self.is_http_1_0 = version == "1.0"
        self.method = method
        self.path, self.query = _path_and_query(target, method)
        self.body = Body()
        coding = self.header("transfer-encoding")
        if version not in _VERSIONS or coding.lower() not in {"", "chunked"}:
            raise NotHttp
        if self.header("content-encoding", "identity").lower() != "identity":
            raise BadBody
        self.length = int(self.header("content-length", "0"))
        self.has_body = bool(coding or self.length)
        self.persistent = not self.is_http_1_0

    def header(self, name: str, default: str = "") -> str:
        """The first value of a header, by its name in lower case."""
        return next(iter(self.headers(name)), default)

    def headers(self, name: str) -> list[str]:
        """All values of a header; bytes that are not UTF-8 are lone surrogates."""
        values = self._headers.get(name.encode(), ())
        return [value.strip(b" \t").decode(errors="surrogateescape") for value in values]


def _path_and_query(target: bytes, method: str) -> tuple[str, dict[str, list[str]]]:
    """The parts of a target: `/path?query`, `http://host/path`, or `*`."""
    text = target.decode(errors="surrogateescape").partition("#")[0]
    if text.startswith(("http://", "https://")):
        host, slash, rest = text.partition("://")[2].partition("/")
        if "[" in host or "]" in host:
            raise NotHttp
        text = slash + rest or "/"
    elif not text.startswith("/") and method not in {"OPTIONS", "CONNECT"}:
        raise NotHttp
    path, _, query = text.partition("?")
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True) if query else ():
        values.setdefault(name, []).append(value)
    return path, values


class RequestReader:
    """Parses one connection's bytes into its requests, within the limits.

    Attributes:
        waiting: requests that have arrived and are not answered yet; an error is the last.
        in_head: whether a head has begun and is not complete.
        closed: whether nothing more is parsed: after an error, or a last request.
    """

    __slots__ = (
        *("_arriving", "_error", "_head_bytes", "_head_lines", "_headers", "_parser", "_silent"),
        *("_target", "closed", "in_head", "waiting"),
    )

    def __init__(self) -> None:
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._arriving: HttpRequest | None = None
        self._error: ThermoclineError | None = None
        # Bytes since the parser reported something, and those of the head so far.
        self._silent = self._head_bytes = self._head_lines = 0
        self._target = b""
        self._headers: Headers = {}
        self.waiting: deque[HttpRequest | ThermoclineError] = deque()
        self.in_head = self.closed = False

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be received until something is answered or read."""
        unread = self._arriving is not None and self._arriving.body.is_full
        return not self.closed and (unread or len(self.waiting) > _WAITING_REQUESTS)

    def feed(self, data: bytes) -> None:
        """Parse what was received: requests go to `waiting`, and parts of a body to its request."""
        if self._parser is None or self.closed:
            return
        self._silent += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # There is no other protocol; what follows may be of one.
            self.closed = True
        except httptools.HttpParserError:
            self._fail(self._error or NotHttp())
        if self._silent > READ_BYTES:
            self._fail(HeadTooLarge())

    def eof(self) -> None:
        if self._arriving is not None:
            self._arriving.body.end(broken=True)

    def end(self) -> None:
        """The connection is lost; the request that is being answered goes on."""
        self.eof()
        self.closed = True
        self.waiting.clear()
        # They refer to this object, which would live until the collector finds them.
        self._parser = self._error = None

    def _fail(self, error: ThermoclineError) -> None:
        if self.closed:
            return
        self.closed = True
        if self._arriving is not None:
            self._arriving.body.end(broken=True)
        else:
            self.waiting.append(error)

    # What the parser calls. After an exception it is of no more use.

    def on_message_begin(self) -> None:
        self.in_head = True
        self._target, self._headers = b"", {}
        self._silent = self._head_bytes = self._head_lines = 0

    def on_url(self, part: bytes) -> None:
        self._target += part
        self._count(len(self._target), len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header has arrived whole, or a trailer."""
        self._head_lines += 1
        self._count(len(name) + len(value), len(name) + len(value))
        if self.in_head:
            self._headers.setdefault(name.lower(), []).append(value)

    def on_headers_complete(self) -> None:
        """A head has arrived: its request is answered while its body arrives."""
        self._silent, self.in_head, parser = 0, False, self._parser
        assert parser is not None
        version, method = parser.get_http_version(), parser.get_method().decode()
        try:
            request = HttpRequest(version, method, self._target, self._headers)
        except InvalidInput as error:
            self._error = error
            raise
        if not parser.should_keep_alive() or parser.should_upgrade():
            request.persistent = False
        self._arriving = request
        self.waiting.append(request)

    def on_body(self, data: bytes) -> None:
        self._silent = 0
        if self._arriving is not None:
            self._arriving.body.add(data)

    def on_message_complete(self) -> None:
        self._silent = 0
        if self._arriving is not None:
            self._arriving.body.end()
            self.closed = not self._arriving.persistent
            self._arriving = None

    def _count(self, line: int, more: int) -> None:
        self._silent = 0
        self._head_bytes += more
        if line > _LINE_BYTES or self._head_lines > _HEAD_LINES or self._head_bytes > _HEAD_BYTES:
            self._error = HeadTooLarge()
            raise self._error


# Responses


class HttpResponse:
    """An answer whose body is known; the connection sends it.

    Attributes:
        closes: whether the connection ends behind it.
    """

    def __init__(self, body: bytes, status: int, headers: Mapping[str, str]) -> None:
        self.body = body
        self.status = status
        self.headers = {**headers}
        self.closes = False

    def to_send(self, method: str = "GET") -> bytes:
        """What is sent once the handler has returned it: the whole, for HEAD without its body."""
        head = self.head(f"Content-Length: {len(self.body)}")
        return head if method == "HEAD" else head + self.body

    def head(self, framing: str = "") -> bytes:
        """The bytes before its body."""
        fields = [f"{name}: {value}" for name, value in self.headers.items()]
        close = ("Connection: close",) if self.closes else ()
        ends = (framing, "", "") if framing else ("", "")
        return "\r\n".join([_STATUS_LINES[self.status], *fields, *close, *ends]).encode()


def error_response(error: ThermoclineError) -> HttpResponse:
    """The answer `{"error": …}` that carries `error`, whatever its message quotes."""
    # Bytes of a head that are not UTF-8 are lone surrogates in Python.
    fields = {
        name: value.encode(errors="backslashreplace").decode()
        for name, value in error.as_dict().items()
    }
    body = msgspec.json.encode({"error": fields})
    response = HttpResponse(body, error.status, {"Content-Type": "application/json"})
    if isinstance(error, TooManyRequests):
        response.headers["Retry-After"] = str(error.seconds)
    return response
