"""The client's way to the daemon: calls, their errors, and when a call may be sent again."""

from __future__ import annotations

import json

from .wire import Answer, BadAnswer, Broken, Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Final, TypeAlias

    Scalar: TypeAlias = str | int | float | bool
    Query: TypeAlias = Mapping[str, Scalar | Sequence[Scalar] | None]

# The daemon sends a sign of life every 15 seconds; three missing ones mean it hangs.
_SILENCE_SECONDS: Final = 45.0
# Before the first piece of a backup the daemon copies and checks its whole database.
_PREPARING_SECONDS: Final = 600.0
_UNRESERVED: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)


class ClientError(Exception):
    """A call to the daemon did not succeed."""


class ApiError(ClientError):
    """The daemon refused the call, and changed nothing.

    Attributes:
        code: a stable word, such as `not_found`.
        message: one sentence for people.
        field: the field at fault, where there is one.
        hint: the way out, where the message alone does not show it.
        status: the HTTP status.
    """

    def __init__(
        self,
        code: str,
        message: str,
        field: str | None = None,
        hint: str | None = None,
        status: int = 400,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.hint = hint
        self.status = status

    def as_dict(self) -> dict[str, str]:
        """The inner object of the API's `{"error": …}`."""
        told = {name: getattr(self, name) for name in ("code", "message", "field", "hint")}
        return {name: value for name, value in told.items() if value is not None}


class DaemonUnreachable(ClientError):
    """No daemon answers at the socket; the call had no effect.

    Attributes:
        path: the socket's file.
        reason: what the operating system said.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"no daemon answers at {path}: {reason}")
        self.path = path
        self.reason = reason


class AnswerLost(DaemonUnreachable):
    """The daemon got the call, but its answer did not come: it was carried out or not."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.args = (f"the daemon at {path} did not answer: {reason}",)


class Channel:
    """Calls over one connection that is kept alive, and made anew when it must be.

    Args:
        path: the socket's file.
        agent: whose memory each call is about; None leaves it to the daemon.
        timeout: seconds that each single wait for the daemon may take; a change holds for
            connections that are opened later.
    """

    def __init__(self, path: str, agent: str | None, timeout: float) -> None:
        self._path = path
        self._agent = agent
        self.timeout = timeout
        self._connection: Connection | None = None

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def call(self, method: str, path: str, query: Query | None, body: Any) -> tuple[int, Any]:
        """Make one call; gives the status and the JSON, or the text, of its answer.

        Raises:
            DaemonUnreachable: nothing answers, or not as the daemon does.
            AnswerLost: the answer did not come or was cut off.
        """
        target = path + self._query_text(query or {})
        request = _request(method, target, {}, body)
        answer = self._exchange(request, reads_only=method == "GET")
        return answer.status, self._parsed(answer)

    def stream(
        self, path: str, query: Query, last_id: str | None
    ) -> Iterator[tuple[str, str, Any]]:
        """The server-sent events of `path` as (id, type, data), until the daemon ends them.

        Raises:
            ApiError, DaemonUnreachable: as a call does.
            AnswerLost: the stream broke off or fell silent.
        """
        headers = {"Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        request = _request("GET", path + self._query_text(query), headers, None)
        yield from _events(self._pieces(request, max(self.timeout, _SILENCE_SECONDS)))

    def download(self, path: str, query: Query) -> Iterator[bytes]:
        """The body of an answer of any length, in pieces, over a connection of its own.

        Raises:
            ApiError, DaemonUnreachable: as a call does.
            AnswerLost: it broke off or fell silent.
        """
        request = _request("GET", path + self._query_text(query), {}, None)
        return self._pieces(request, max(self.timeout, _PREPARING_SECONDS))

    def _pieces(self, request: bytes, timeout: float) -> Iterator[bytes]:
        connection = self._open(timeout)
        try:
            status, answered = connection.open_stream(request)
            if status >= 400:
                whole = Answer(status, answered, connection.body(status, answered))
                raise refusal(status, self._parsed(whole))
            yield from connection.chunks(answered)
        except BadAnswer as error:
            raise DaemonUnreachable(self._path, str(error)) from error
        except Broken as error:
            raise AnswerLost(self._path, str(error)) from error
        except TimeoutError as error:
            raise AnswerLost(self._path, "the stream fell silent") from error
        finally:
            connection.close()

    def _exchange(self, request: bytes, *, reads_only: bool) -> Answer:
        try:
            return self._once(request)
        except Broken as broken:
            if not (broken.unsent or (reads_only and not broken.begun)):
                raise AnswerLost(self._path, str(broken)) from broken
        try:
            return self._once(request)
        except Broken as broken:
            raise AnswerLost(self._path, str(broken)) from broken

    def _once(self, request: bytes) -> Answer:
        connection = self._ready()
        answered = False
        try:
            answer = connection.converse(request)
            answered = answer.headers.get("connection", "").lower() != "close"
        except BadAnswer as error:
            raise DaemonUnreachable(self._path, str(error)) from error
        except TimeoutError as error:
            reason = f"nothing came for {self.timeout:g} seconds"
            raise AnswerLost(self._path, reason) from error
        finally:
            # Whatever happened on the way, the rest of an answer must not meet the next call.
            if not answered:
                self.close()
        return answer

    def _ready(self) -> Connection:
        if self._connection is not None and self._connection.stale():
            self.close()
        if self._connection is None:
            self._connection = self._open(self.timeout)
        return self._connection

    def _open(self, timeout: float) -> Connection:
        try:
            return Connection(self._path, timeout)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DaemonUnreachable(self._path, reason[:1].lower() + reason[1:]) from error

    def _query_text(self, query: Query) -> str:
        pairs = [*_pairs(query)]
        if self._agent is not None:
            pairs.append(("agent", self._agent))
        text = "&".join(f"{quoted(name)}={quoted(value)}" for name, value in pairs)
        return f"?{text}" if text else ""

    def _parsed(self, answer: Answer) -> Any:
        if answer.media_type != "application/json":
            return answer.body.decode("utf-8", "replace")
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise DaemonUnreachable(self._path, "its answer is not JSON") from error


def quoted(text: str) -> str:
    """`text` percent-encoded for a place in a path or a query."""
    data = text.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in data)


def refusal(status: int, parsed: Any) -> ApiError:
    """The error that an answer with this status and body stands for."""
    error = parsed.get("error") if isinstance(parsed, dict) else None
    if not isinstance(error, dict):
        text = parsed.strip() if isinstance(parsed, str) else ""
        return ApiError(f"http_{status}", text or f"the daemon answered {status}", status=status)
    code, message = str(error.get("code", f"http_{status}")), str(error.get("message", ""))
    return ApiError(code, message, error.get("field"), error.get("hint"), status)


def _pairs(query: Query) -> Iterator[tuple[str, str]]:
    for name, value in query.items():
        if value is None:
            continue
        many = isinstance(value, (list, tuple, set, frozenset))
        for one in value if many else (value,):  # type: ignore[union-attr]
            yield name, str(one).lower() if isinstance(one, bool) else str(one)


def _request(method: str, target: str, headers: Mapping[str, str], body: Any) -> bytes:
    data = b"" if body is None else json.dumps(body, allow_nan=False).encode()
    lines = [f"{method} {target} HTTP/1.1", "Host: thermocline"]
    lines += [f"{name}: {_header_value(value)}" for name, value in headers.items()]
    if body is not None:
        lines.append("Content-Type: application/json")
    if method != "GET" or data:
        lines.append(f"Content-Length: {len(data)}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + data


def _header_value(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"a header cannot hold {value!r}")
    return value


def _events(chunks: Iterable[bytes]) -> Iterator[tuple[str, str, Any]]:
    """Parse server-sent events: fields by line, a blank line ends an event."""
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
    """The lines of a text that comes in pieces; a last one without its end is left out."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")
