"""Every error of a remote, by what its caller can do about it.

    SyncError
    ├── TryLater          temporary: the same batch may work later
    │   └── QuotaSpent    until the quota is renewed or raised: after a long pause
    ├── Refused           permanent, until a person removes the cause
    ├── RowTooLarge       too much at once: ask for less, or send less
    ├── SchemaMissing     the tables are missing: create them, then continue
    └── KeyMissing        a row is sealed with a key that is not here: ask for the keys

`classify` and `from_answer` map the errors of clients, servers and files to this tree. They know
exceptions by name, so that no client has to be loaded to recognize its errors.

The waits between tries are at the end.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

_LONGEST_MESSAGE: Final = 300
# A server that asks for more than a day, by mistake or malice, would end the replication.
_LONGEST_PAUSE: Final = 86_400.0
_LONG_SECRET: Final = 8


class SyncError(Exception):
    """A remote could not carry out a request."""

    def __init__(self, code: str, message: str = "", *, hint: str = "") -> None:
        _, what, way_out = _CODES.get(code, (None, "cannot use the remote", ""))
        self.code = code  # a stable word for programs
        self.message = message or what  # what could not be done and why; contains no secret
        self.hint = hint or way_out  # how to fix it
        super().__init__(self.message)


class TryLater(SyncError):
    """A temporary failure. The batch may have been applied all the same."""

    def __init__(
        self, code: str, message: str = "", *, hint: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.retry_after = retry_after  # the pause in seconds that the remote asked for, if it did


class QuotaSpent(TryLater):
    """The plan's quota is used up: only a long pause or a person helps."""


class Refused(SyncError):
    """Permanent until a person removes the cause; nothing was changed."""


class RowTooLarge(SyncError):
    """The request or the answer exceeds what one batch may carry; nothing was changed."""


class SchemaMissing(SyncError):
    """A table or a column is missing; nothing was changed."""


class KeyMissing(SyncError):
    """The remote has rows of an epoch whose key is not here, or takes none of an older one."""


# Each code: its class, what it means, and a default hint.
_CODES: Final[dict[str, tuple[type[SyncError], str, str]]] = {
    "offline": (
        TryLater,
        "cannot reach the remote",
        "nothing is lost; it continues when the remote answers",
    ),
    "timeout": (
        TryLater,
        "cannot wait longer for the remote",
        "nothing is lost; it will be retried",
    ),
    "not_json": (
        TryLater,
        "cannot reach the remote: something else answers in its place",
        "if this network asks for a login, open any page in a browser",
    ),
    "busy": (TryLater, "cannot write while another device does", "it will be retried"),
    "throttled": (TryLater, "cannot send more requests now", "it continues after a pause"),
    "server": (TryLater, "cannot use the remote, which has a fault", "it will be retried"),
    "disk_full": (TryLater, "cannot write to a full disk", "make room; then it continues"),
    "read_only": (TryLater, "cannot write to the disk", "make it writable; then it continues"),
    "disk_error": (TryLater, "cannot rely on the disk", "check the disk; it will be retried"),
    "quota": (
        QuotaSpent,
        "cannot use the remote: its quota is spent",
        "raise the plan's limits, or wait until they are renewed",
    ),
    "unauthorized": (Refused, "cannot log in to the remote", "put a new token in its place"),
    "forbidden": (Refused, "cannot write to the remote", "use a token that allows writing"),
    "not_found": (Refused, "cannot find the database", "check the URL, or create the database"),
    "tls": (
        Refused,
        "cannot trust the connection to the remote",
        "check the URL, this device's clock, and whether the network asks for a login",
    ),
    "bad_request": (Refused, "cannot use the remote: it rejects the request", "check the URL"),
    "constraint": (Refused, "cannot store what contradicts the tables", "report this bug"),
    "sql": (Refused, "cannot run a statement", "report this bug"),
    "damaged": (Refused, "cannot read a damaged database", "restore it from a backup"),
    "too_large": (RowTooLarge, "cannot send or receive so much", "ask for less at a time"),
    "schema_missing": (SchemaMissing, "cannot find the tables", "the next attempt creates them"),
    "key_missing": (
        KeyMissing,
        "cannot read what other devices have sealed: this device does not have the key",
        "run `thermocline pair` on a device that has it, and `thermocline join` here",
    ),
    "retired": (
        Refused,
        "cannot replicate: this device was retired from the replica",
        "add it again with `thermocline devices --rejoin`; its memory is kept",
    ),
    "sealed": (
        Refused,
        "cannot replicate with sync.seal off",
        "run `thermocline pair` on a device that has the keys, and `thermocline join` here",
    ),
}
# By the words of an error with a code, or of a server's fault without one.
_BY_WORDS: Final = {
    "no such table": "schema_missing",
    "no such column": "schema_missing",
    "has no column named": "schema_missing",
    "too big": "too_large",
    # The only message of sqld about a batch whose answer exceeds its limit.
    "could not execute batch": "too_large",
    "invalid utf-8 sequence": "damaged",
    # What the triggers of a sealed replica say (`sync/sealing/keyring.py`).
    "replica is sealed": "sealed",
    "key of this epoch is no longer used": "key_missing",
}
# By the beginning of the code in an answer's body, or of the error of SQLite; the first that
# fits. It goes before the status, since a violated constraint may come with 500.
_BY_BODY_CODE: Final = {
    "quota": ("BLOCKED",),
    "busy": ("SQLITE_BUSY", "SQLITE_LOCKED", "TRANSACTION_", "STREAM_EXPIRED"),
    "disk_full": ("SQLITE_FULL",),
    # The second code means that the file was removed; the next batch opens the new one.
    "disk_error": ("SQLITE_IOERR", "SQLITE_READONLY_DBMOVED"),
    "server": ("SQLITE_NOMEM", "SQLITE_INTERRUPT"),
    "too_large": ("RESPONSE_TOO_LARGE", "SQLITE_TOOBIG"),
    "constraint": ("SQLITE_CONSTRAINT",),
    "forbidden": ("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH"),
    "not_found": ("SQLITE_CANTOPEN",),
    "damaged": ("SQLITE_CORRUPT", "SQLITE_NOTADB"),
    "sql": ("SQL", "ARGS_INVALID"),
    "unauthorized": ("AUTH_",),
    # The client's word for an inconsistent answer.
    "not_json": ("HRANA_PROTO_ERROR",),
}
# By status, or else by its hundreds. Other answers do not come from a database.
_BY_STATUS: Final = {
    401: "unauthorized", 403: "forbidden", 404: "not_found", 408: "timeout", 413: "too_large",
    425: "server", 429: "throttled", 501: "bad_request", 505: "bad_request", 511: "not_json",
    2: "not_json", 3: "not_json", 5: "server",
}  # fmt: skip
# By the class of an exception or of its ancestors; the first that fits.
_BY_EXCEPTION: Final = (
    # A connection that breaks during the TLS handshake is not a failure of trust.
    ("offline", {"SSLEOFError", "SSLZeroReturnError", "SSLSyscallError"}),
    ("tls", {"ClientSSLError", "ServerFingerprintMismatch", "SSLError"}),
    ("timeout", {"TimeoutError"}),
    ("offline", {"ClientConnectionError", "ClientPayloadError"}),
    # The other end does not speak HTTP or JSON.
    ("not_json", {"ClientResponseError", "JSONDecodeError", "DecodeError"}),
    ("bad_request", {"InvalidURL"}),
    ("offline", {"OSError"}),
)


def from_answer(
    status: int, body_code: str, message: str, retry_after: float | None = None
) -> SyncError:
    """The error that an answer means.

    `status` is that of HTTP, 200 without one; `body_code` the code in its body, or the name of
    SQLite's error. The message is cut short and freed of control characters.
    """
    code = _by_body(status, body_code, message.lower())
    code = code or _BY_STATUS.get(status) or _BY_STATUS.get(status // 100, "bad_request")
    if code == "unauthorized" and status == 403:
        code = "forbidden"
    return made(code, message or f"HTTP status {status}", retry_after)


def classify(error: BaseException, secret: str = "") -> SyncError:
    """The error that an exception of a client or of SQLite means; an error of the tree is returned.

    No message contains `secret`, which a server may have repeated.
    """
    if isinstance(error, SyncError):
        return error
    # aiohttp's words for any failed connection, whether or not it uses TLS.
    detail = str(getattr(error, "explanation", error)).replace(" ssl:default", "")
    if secret:
        # A short secret may also be part of a word: only a separate one is replaced.
        pattern = re.escape(secret)
        if len(secret) < _LONG_SECRET:
            pattern = rf"(?<!\w){pattern}(?!\w)"
        detail = re.sub(pattern, "[hidden]", detail)
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None)
    names = {cls.__name__ for item in (error, inner) for cls in type(item).__mro__}
    if "LibsqlError" in names:
        status, pause_seconds = getattr(error, "status", 200), getattr(error, "retry_after", None)
        return from_answer(status, getattr(error, "code", ""), detail, pause_seconds)
    if name := getattr(error, "sqlite_errorname", None):
        return from_answer(200, name, detail)
    code = next((code for code, classes in _BY_EXCEPTION if classes & names), None)
    return made(code, detail) if code else made("bad_request", f"{type(error).__name__}: {detail}")


def made(code: str, detail: str, retry_after: float | None = None) -> SyncError:
    """The error of a code of the table; its message is the meaning and the detail."""
    kind, what, _ = _CODES[code]
    line = "".join(c if c.isprintable() else " " for c in detail[: 4 * _LONGEST_MESSAGE])
    line = " ".join(line.split())
    detail = line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]} …"
    message = f"{what}: {detail}" if detail else what
    if issubclass(kind, TryLater):
        return kind(code, message, retry_after=retry_after)
    return kind(code, message)


def pause(retry_after: str, date: str) -> float | None:
    """The seconds that a `Retry-After` asks for, at most a day; None: none.

    `retry_after` is in seconds, or a moment; `date` is the `Date` of the same answer, so that this
    device's clock does not matter.
    """
    if re.fullmatch(r"\d{1,9}", retry_after.strip(), re.ASCII):
        return min(float(retry_after), _LONGEST_PAUSE)
    try:
        seconds = (parsedate_to_datetime(retry_after) - parsedate_to_datetime(date)).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), _LONGEST_PAUSE)


def _by_body(status: int, code: str, words: str) -> str | None:
    if not code and status < 500:
        return None
    for held, error in _BY_WORDS.items():
        if held in words:
            return error
    for error, beginnings in _BY_BODY_CODE.items():
        if code.startswith(beginnings):
            return error
    return "sql" if status < 300 else None


if TYPE_CHECKING:
    import tenacity

# The longest wait is reached long before; further doubling would exceed the range of a float.
_MOST_DOUBLINGS = 32


class Waiting(msgspec.Struct, frozen=True):
    """The limits of the waits, in seconds."""

    first: float = 5.0  # the longest wait after the first failure; it doubles with each further one
    longest: float = 300.0  # where the doubling ends
    quota: float = 3600.0  # the shortest wait once the quota is spent
    instant: bool = False  # no wait at all, whatever the remote asks for: for tests

    def seconds(self, error: TryLater, failures: int, random: Random) -> float:
        """The wait after this number of failures in a row, beyond what the remote asked for.

        It is random, so that devices that failed together do not retry together, not even those
        that were asked for the same pause.
        """
        if self.instant:
            return 0.0
        limit = min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
        least = self.quota if isinstance(error, QuotaSpent) else 0.0
        return max(error.retry_after or 0.0, least) + random.uniform(0.0, limit)


def retrying(
    waiting: Waiting,
    *,
    sleep: Callable[[float], Awaitable[None]],
    before_wait: Callable[[TryLater, float], None],
    random: Random,
) -> tenacity.AsyncRetrying:
    """Runs a call until it succeeds. `TryLater` is retried forever; all else is raised.

    Use it as `await retrying(…)(call)`, or as `async for attempt in retrying(…): with attempt:`.
    The waits grow over the life of the returned object: make a new one after each success. `sleep`
    may return early, to try at once; `before_wait` is called with the failure and the seconds.
    """
    import tenacity  # noqa: PLC0415 - half a megabyte, for those alone who have a remote

    return tenacity.AsyncRetrying(
        sleep=sleep,
        wait=lambda state: waiting.seconds(_failure(state), state.attempt_number, random),
        before_sleep=lambda state: before_wait(_failure(state), state.upcoming_sleep),
        retry=tenacity.retry_if_exception_type(TryLater),
        stop=tenacity.stop_never,
        reraise=True,
    )


def _failure(state: tenacity.RetryCallState) -> TryLater:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, TryLater)
    return error
