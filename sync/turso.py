"""A remote at Turso, or at any server that speaks libSQL over HTTP.

Only this module uses the client library, which is slow to load; import it only to connect.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from types import SimpleNamespace
from typing import Any, Final, Generic, Literal, TypeVar

import aiohttp
import msgspec
from libsql_client.client import LibsqlError
from libsql_client.hrana.convert import _batch_to_proto, _error_from_proto, _stmt_to_proto
from libsql_client.http import HttpClient

from .failures import Refused, SyncError, classify, made, pause
from .ports import Result, SqlStatement, Usage, address, check, whole
from .row_format import Value

T = TypeVar("T")
# How long a connection is kept for the next call.
_IDLE_SECONDS: Final = 60.0


class Limits(msgspec.Struct, frozen=True):
    """How long a call may take, in seconds, and how long its answer may be."""

    total: float = 30.0  # of one call, from beginning to end
    connect: float = 5.0  # until there is a connection
    read: float = 20.0  # between two pieces of the answer
    answer_bytes: int = 64 << 20  # of one answer, unpacked


class TursoRemote:
    """A database over HTTP. It belongs to the event loop that it was made in; see `connect`.

    `host` names it in messages; the token never appears in any.
    """

    def __init__(self, client: _Client, host: str, token: str) -> None:
        self._client = client
        self._host = host
        self._token = token

    def __repr__(self) -> str:
        return f"TursoRemote({self._host!r})"

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        check(statements)
        if self._client.closed:
            raise Refused("bad_request", f"cannot use {self._host}: the connection was closed")
        if not statements:
            return []
        try:
            return await self._client.ask(statements)
        except Exception as error:  # noqa: BLE001 -- only errors of the tree leave a remote
            # The cause may quote the server, and so the token: it is dropped.
            raise _as_sync_error(error, self._token) from None

    async def close(self) -> None:
        await self._client.close()


async def connect(
    url: str,
    token: str | None = None,
    *,
    limits: Limits | None = None,
    count: Callable[[Usage], None] = lambda _: None,
) -> TursoRemote:
    """A remote at `url`; nothing is sent yet. `libsql://` and `https://` are the same.

    `count` is called with what each call used, as soon as it is answered. `Refused`: the URL or the
    token is not usable; neither is in the message.
    """
    place = address(url)
    token = (token or "").strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise Refused("unauthorized", "cannot use the token: it has invalid characters")
    # It reads the system's certificates, which takes a while.
    tls = await asyncio.to_thread(ssl.create_default_context) if place.scheme == "https" else True
    client = _Client(place.geturl(), token, limits or Limits(), count, tls)
    return TursoRemote(client, place.hostname or "", token)


class _Answer(LibsqlError):
    """An answer that is an error, with everything that `from_answer` needs."""

    def __init__(
        self, message: str, code: str, response: aiohttp.ClientResponse, status: int | None = None
    ) -> None:
        super().__init__(message, code)
        self.status = status or response.status
        headers = response.headers
        self.retry_after = pause(headers.get("Retry-After", ""), headers.get("Date", ""))


class _Cell(msgspec.Struct, gc=False):
    """A value in an answer; JSON has no infinite numbers, so one has no `value`."""

    type: Literal["text", "integer", "float", "null", "blob"]
    value: str | float | None = None
    base64: str = ""


class _Step(msgspec.Struct):
    """What one statement returned."""

    rows: list[list[_Cell]]
    affected_row_count: int
    rows_read: Any = 0
    rows_written: Any = 0


class _Batch(msgspec.Struct):
    """What the statements of a batch returned, and those around them that make it one."""

    step_results: list[_Step | None]
    step_errors: list[dict[str, Any] | None]


class _Response(msgspec.Struct, Generic[T]):
    result: T


class _Ran(msgspec.Struct, Generic[T]):
    type: Literal["ok"]
    response: _Response[T]


class _Reply(msgspec.Struct, Generic[T]):
    """An answer of `/v1/`, or one of `/v2/pipeline`: the second is to the end of the stream."""

    result: T | None = None
    results: tuple[_Ran[T], Any] | None = None


_DECODERS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "execute": msgspec.json.Decoder(_Reply[_Step]),
    "batch": msgspec.json.Decoder(_Reply[_Batch]),
}


class _Client(HttpClient):
    """The library's client, with time-outs, a bounded answer, and classified errors.

    It posts to `/v2/pipeline`, and to the paths of the library only on a server that does not know
    it. The URL keeps its path; without a token no header is sent.
    """

    def __init__(
        self,
        url: str,
        token: str,
        limits: Limits,
        count: Callable[[Usage], None],
        tls: ssl.SSLContext | bool = True,
    ) -> None:
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_reuseconn.append(_note_reuse)
        self._base = url.rstrip("/")
        self._limits = limits
        self._count = count
        # Whether the server answered to `/v1/`, and not to `/v2/pipeline`.
        self._is_old = False
        self._session = aiohttp.ClientSession(
            # Brotli, which aiohttp offers where it is installed, takes the server a second a page;
            # and aiohttp unpacks each of an answer's thousands of pieces by itself.
            headers={"Accept-Encoding": "deflate"}
            | ({"Authorization": f"Bearer {token}"} if token else {}),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(
                total=limits.total, connect=limits.connect, sock_read=limits.read
            ),
            connector=aiohttp.TCPConnector(ssl=tls, keepalive_timeout=_IDLE_SECONDS),
            # A captive portal in the remote's place must not set cookies.
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[tracing],
        )

    async def ask(self, statements: Sequence[SqlStatement]) -> list[Result]:
        """Run statements as one transaction, and read the answer, which may have many rows."""
        pairs = [(statement.sql, statement.args) for statement in statements]
        if len(pairs) == 1:
            # A transaction without more; and sqld says clearly if its answer is too long.
            step = await self._run("execute", {"stmt": _stmt_to_proto(*pairs[0])})
            return [_result(step)]
        batch = await self._run("batch", {"batch": _batch_to_proto(list(pairs))})
        for error in batch.step_errors:
            if error is not None:
                raise _error_from_proto(error)
        _, *steps, _, _ = batch.step_results
        if len(steps) != len(pairs):
            raise ValueError("results are missing")
        return [_result(step) for step in steps]

    async def _run(self, kind: str, request: Any) -> Any:
        # Closing the stream ends a transaction that a failure has left open.
        requests = [{"type": kind, **request}, {"type": "close"}]
        ways = [("v2/pipeline", {"requests": requests}), (f"v1/{kind}", request)]
        way, other = reversed(ways) if self._is_old else ways
        try:
            return await self._call(kind, *way)
        except _Answer as error:
            if error.status != 404:
                raise
        answer = await self._call(kind, *other)
        self._is_old = not self._is_old
        return answer

    async def _call(self, kind: str, path: str, request_body: Any) -> Any:
        body = msgspec.json.encode(request_body)
        while True:
            call = SimpleNamespace(reused=False)
            try:
                return await self._once(kind, path, body, call)
            except TimeoutError:
                raise
            except aiohttp.ClientConnectionError:
                # The server was restarted since the connection's last use: the connection is
                # dropped, and the next or a new one is used.
                if not call.reused:
                    raise

    async def _once(self, kind: str, path: str, body: bytes, call: SimpleNamespace) -> Any:
        async with self._session.request(
            "POST",
            f"{self._base}/{path}",
            # Sent in pieces: a long body would hold up the event loop.
            data=BytesIO(body),
            headers={"Content-Type": "application/json"},
            # A redirect would send the token elsewhere.
            allow_redirects=False,
            trace_request_ctx=call,
        ) as response:
            content, most = bytearray(), self._limits.answer_bytes
            async for part in response.content.iter_any():
                content += part
                if len(content) > most:
                    raise made("too_large", f"the answer is beyond {most} bytes")
            rows = (0, 0)
            try:
                unpacked = _unpacked(response, content, self._limits.answer_bytes)
                answer = _decoded(response, unpacked, _DECODERS[kind])
                rows = _rows(answer)
                return answer
            finally:
                self._count(Usage(*rows, bytes_sent=len(body), bytes_received=len(content)))


def _unpacked(response: aiohttp.ClientResponse, content: bytearray, most: int) -> bytes:
    if response.headers.get("Content-Encoding", "identity") == "identity":
        return bytes(content)
    # With a header of zlib or gzip, or without a header: servers differ in the meaning of deflate.
    bare = content[:1] != b"\x1f" and content[:1] != b"\x78"
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)
    try:
        unpacked = unpacking.decompress(content, most)
    except zlib.error:
        raise made("not_json", "the answer does not come from a database") from None
    if unpacking.unconsumed_tail:
        raise made("too_large", f"the answer is beyond {most} bytes")
    return unpacked


async def _note_reuse(_session: Any, context: SimpleNamespace, _parameters: Any) -> None:
    context.trace_request_ctx.reused = True


def _decoded(
    response: aiohttp.ClientResponse, content: bytes, decoder: msgspec.json.Decoder[Any]
) -> Any:
    """What the statements returned; `_Answer` for an error."""
    if response.status < 300:
        with suppress(msgspec.DecodeError, RecursionError):
            reply = decoder.decode(content)
            result = reply.results[0].response.result if reply.results else reply.result
            if result is not None:
                return result
    raise _error(response, content)


def _error(response: aiohttp.ClientResponse, content: bytes) -> _Answer:
    """The error in an answer that is not a result."""
    try:
        answer = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        answer = None
    if isinstance(answer, dict):
        status = None
        if response.status < 300 and "result" in answer:
            raise made("not_json", "the answer does not come from a database")
        if response.status < 300 and "results" in answer:
            answer = answer["results"][0]["error"]
            # Without a code it is a fault of the server, which `/v1/` would report with 500.
            status = None if answer.get("code") else 500
        message = str(answer.get("message") or answer.get("error") or "")
        return _Answer(message, str(answer.get("code") or ""), response, status)
    message = content[:2000].decode(errors="replace")
    if 300 <= response.status < 400:
        message = f"HTTP status {response.status}, a redirect"
    elif response.status < 400 or response.content_type != "text/plain":
        # The content may be a whole page.
        message = f"HTTP status {response.status} with {response.content_type}"
    return _Answer(message, "", response)


def _result(step: _Step) -> Result:
    rows = (
        tuple([cell.value if cell.type == "text" else _value(cell) for cell in row])
        for row in step.rows
    )
    return Result(tuple(rows), step.affected_row_count)


def _value(cell: _Cell) -> Value:
    """A value that is not a text; a blob is read as text."""
    if cell.type == "blob":
        return base64.b64decode(cell.base64 + "====").decode(errors="replace")
    if cell.type == "null" or cell.value is None:
        return None
    return int(cell.value) if cell.type == "integer" else float(cell.value)


def _rows(result: _Step | _Batch) -> tuple[int, int]:
    """The rows read and written by a statement or a batch, as the server's account counts them."""
    total_read = total_written = 0
    for step in [result] if isinstance(result, _Step) else result.step_results:
        if step is not None:
            read, written = whole(step.rows_read), whole(step.rows_written)
            # What touches no row is counted as one read, BEGIN and COMMIT too.
            total_read += read if read or written else 1
            total_written += written
    return total_read, total_written


def _as_sync_error(error: Exception, token: str) -> SyncError:
    stumbles = isinstance(error, LookupError | TypeError | AttributeError | ValueError)
    if stumbles and not isinstance(error, aiohttp.ClientError | OSError):
        # The library fails on JSON that is not from a database.
        return made("not_json", "the answer does not come from a database")
    return classify(error, token)
