"""Every error of a remote, by what its caller can do about it.

    SyncError
    ├── TryLater          passes by itself: the same batch may work later
    │   └── QuotaSpent    passes when the quota is renewed or raised: after a long pause
    ├── Refused           stays until a person mends it
    ├── TooLarge          too much at once: ask for less, or send less
    └── SchemaMissing     the tables are not there yet: make them, then go on

`classify` and `from_answer` sort whatever a client, a server or a file says into this tree. They
know exceptions by name, so that no client has to be loaded to tell its errors apart.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

_LONGEST_MESSAGE: Final = 300
# A server that asks for more than a day, by mistake or malice, would end the replication.
_LONGEST_PAUSE: Final = 86_400.0

# What each code means, and the way out where no better one is known.
_EXPLAINED: Final = {
    "offline": ("cannot reach the remote", "nothing is lost; it goes on when the network is back"),
    "timeout": ("cannot wait longer for the remote", "nothing is lost; it is tried again"),
    "not_json": (
        "cannot reach the remote: something else answers in its place",
        "if this network asks for a login, open any page in a browser",
    ),
    "busy": ("cannot write while another device does", "it is tried again"),
    "throttled": ("cannot ask the remote so often", "it goes on after the pause that it asked for"),
    "server": ("cannot use the remote, which has a fault", "it is tried again"),
    "disk_full": ("cannot write to a full disk", "make room; it goes on by itself"),
    "read_only": ("cannot write to the disk", "make it writable; it goes on by itself"),
    "disk_error": ("cannot rely on the disk, which fails", "check the disk; it is tried again"),
    "quota": (
        "cannot use the remote: its quota is spent",
        "raise the plan's limits, or wait until they are renewed",
    ),
    "unauthorized": ("cannot log in to the remote", "make a new token and put it in its place"),
    "forbidden": ("cannot write to the remote", "use a token that allows writing"),
    "not_found": ("cannot find the database", "check the URL, or create the database"),
    "tls": (
        "cannot trust the connection to the remote",
        "check the URL, this device's clock, and whether the network asks for a login",
    ),
    "bad_request": ("cannot make the remote understand", "check the URL, or report it as a fault"),
    "constraint": ("cannot store what contradicts the tables", "report it as a fault"),
    "sql": ("cannot run a statement", "report it as a fault"),
    "damaged": ("cannot read a damaged database", "restore it from a backup"),
    "too_large": ("cannot move so much at once", "ask for less at a time"),
    "schema_missing": ("cannot find the tables", "they are made on the next try"),
}


class SyncError(Exception):
    """A remote could not do what it was asked.

    Attributes:
        code: a stable word for programs.
        message: what could not be done and why; holds no secret.
        hint: the way out.
    """

    def __init__(self, code: str, message: str = "", *, hint: str = "") -> None:
        what, way_out = _EXPLAINED.get(code, ("cannot use the remote", ""))
        self.code = code
        self.message = message or what
        self.hint = hint or way_out
        super().__init__(self.message)


class TryLater(SyncError):
    """It passes by itself. The batch may have been applied all the same.

    Attributes:
        retry_after: the pause in seconds that the remote asked for, if it did.
    """

    def __init__(
        self, code: str, message: str = "", *, hint: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.retry_after = retry_after


class QuotaSpent(TryLater):
    """The plan's quota is used up: only a long pause or a person helps."""


class Refused(SyncError):
    """It stays until a person mends it; nothing was changed."""


class TooLarge(SyncError):
    """The question or the answer is beyond what one batch may carry; nothing was changed."""


class SchemaMissing(SyncError):
    """A table or a column is not there; nothing was changed."""


class Rule(msgspec.Struct, frozen=True):
    """One line of the tables below: `kind` with `code` for what begins with and holds words."""

    begins: str
    kind: type[SyncError]
    code: str
    holds: str = ""


# By the code in an answer's body, or of the error of SQLite; the first that fits. It goes before
# the status, since a violated constraint may come with 500.
BY_CODE: Final = (
    Rule("BLOCKED", QuotaSpent, "quota"),
    Rule("SQLITE_BUSY", TryLater, "busy"),
    Rule("SQLITE_LOCKED", TryLater, "busy"),
    Rule("TRANSACTION_TIMEOUT", TryLater, "busy"),
    Rule("TRANSACTION_BUSY", TryLater, "busy"),
    Rule("STREAM_EXPIRED", TryLater, "busy"),
    Rule("SQLITE_FULL", TryLater, "disk_full"),
    Rule("SQLITE_IOERR", TryLater, "disk_error"),
    Rule("SQLITE_NOMEM", TryLater, "server"),
    Rule("SQLITE_INTERRUPT", TryLater, "server"),
    Rule("RESPONSE_TOO_LARGE", TooLarge, "too_large"),
    Rule("SQLITE_TOOBIG", TooLarge, "too_large"),
    Rule("ARGS_INVALID", TooLarge, "too_large", holds="too big"),
    Rule("", SchemaMissing, "schema_missing", holds="no such table"),
    Rule("", SchemaMissing, "schema_missing", holds="no such column"),
    Rule("", SchemaMissing, "schema_missing", holds="has no column named"),
    Rule("SQLITE_CONSTRAINT", Refused, "constraint"),
    # The file was taken away from under the connection; the next batch opens what is there then.
    Rule("SQLITE_READONLY_DBMOVED", TryLater, "disk_error"),
    Rule("SQLITE_READONLY", Refused, "forbidden"),
    Rule("SQLITE_PERM", Refused, "forbidden"),
    Rule("SQLITE_AUTH", Refused, "forbidden"),
    Rule("SQLITE_CANTOPEN", Refused, "not_found"),
    Rule("SQLITE_CORRUPT", Refused, "damaged"),
    Rule("SQLITE_NOTADB", Refused, "damaged"),
    Rule("SQLITE_", Refused, "sql"),
    Rule("SQL_", Refused, "sql"),
    Rule("ARGS_INVALID", Refused, "sql"),
    Rule("AUTH_", Refused, "unauthorized"),
    # The client's own word for an answer that does not hold together.
    Rule("HRANA_PROTO_ERROR", TryLater, "not_json"),
)
# By the words of a server's fault that came without a code.
BY_WORDS: Final = (
    # This is all that sqld says of a batch whose answer is beyond its limit.
    Rule("", TooLarge, "too_large", holds="could not execute batch"),
    Rule("", Refused, "damaged", holds="invalid utf-8 sequence"),
)
BY_STATUS: Final[dict[int, tuple[type[SyncError], str]]] = {
    401: (Refused, "unauthorized"),
    403: (Refused, "forbidden"),
    404: (Refused, "not_found"),
    408: (TryLater, "timeout"),
    413: (TooLarge, "too_large"),
    425: (TryLater, "server"),
    429: (TryLater, "throttled"),
    501: (Refused, "bad_request"),
    505: (Refused, "bad_request"),
    511: (TryLater, "not_json"),
}
# What is left, by hundreds. An answer that says neither yes nor no is not the database's.
_BY_HUNDREDS: Final[dict[int, tuple[type[SyncError], str]]] = {
    2: (TryLater, "not_json"),
    3: (TryLater, "not_json"),
    4: (Refused, "bad_request"),
    5: (TryLater, "server"),
}
# By the class of an exception or of its ancestors; the first line that fits.
BY_EXCEPTION: Final[tuple[tuple[str, type[SyncError], str], ...]] = (
    # A connection that breaks while TLS is being agreed on is no question of trust.
    ("SSLEOFError", TryLater, "offline"),
    ("SSLZeroReturnError", TryLater, "offline"),
    ("SSLSyscallError", TryLater, "offline"),
    ("ClientSSLError", Refused, "tls"),
    ("ServerFingerprintMismatch", Refused, "tls"),
    ("SSLError", Refused, "tls"),
    ("TimeoutError", TryLater, "timeout"),
    ("ClientConnectionError", TryLater, "offline"),
    ("ClientPayloadError", TryLater, "offline"),
    # Whatever answered does not speak HTTP.
    ("ClientResponseError", TryLater, "not_json"),
    ("InvalidURL", Refused, "bad_request"),
    ("JSONDecodeError", TryLater, "not_json"),
    ("DecodeError", TryLater, "not_json"),
    ("OSError", TryLater, "offline"),
)


def from_answer(
    status: int, body_code: str, message: str, retry_after: float | None = None
) -> SyncError:
    """What an answer that is an error means.

    Args:
        status: of HTTP; 200 where there is none.
        body_code: the code in its body, or the name of SQLite's error; empty: it has none.
        message: what it says; cut short and freed of control characters.
        retry_after: the pause that it asks for, in seconds.
    """
    kind, code = _by_body(status, body_code, message) or _by_status(status)
    if code == "unauthorized" and status == 403:
        code = "forbidden"
    return made(kind, code, message or f"HTTP status {status}", retry_after)


def classify(error: BaseException, secret: str = "") -> SyncError:
    """What an exception of a client or of SQLite means; one of the tree is returned as it is.

    Args:
        error: the exception.
        secret: what a server may have repeated, and no message may hold.
    """
    if isinstance(error, SyncError):
        return error
    # What aiohttp says of TLS with every connection, also with those that use none.
    detail = str(getattr(error, "explanation", error)).replace(" ssl:default", "")
    if secret:
        detail = detail.replace(secret, "[hidden]")
    names = _names(error)
    if "LibsqlError" in names:
        status, pause_seconds = getattr(error, "status", 200), getattr(error, "retry_after", None)
        return from_answer(status, getattr(error, "code", ""), detail, pause_seconds)
    if code := getattr(error, "sqlite_errorname", None):
        return from_answer(200, code, detail)
    for name, kind, word in BY_EXCEPTION:
        if name in names:
            return made(kind, word, detail)
    return made(Refused, "bad_request", f"{type(error).__name__}: {detail}")


def made(
    kind: type[SyncError], code: str, detail: str, retry_after: float | None = None
) -> SyncError:
    """An error of the tree whose message is what `code` means, followed by the detail."""
    what, _ = _EXPLAINED.get(code, ("cannot use the remote", ""))
    detail = _tidied(detail)
    message = f"{what}: {detail}" if detail else what
    if issubclass(kind, TryLater):
        return kind(code, message, retry_after=retry_after)
    return kind(code, message)


def pause(retry_after: str, date: str) -> float | None:
    """The seconds that a `Retry-After` asks for, at most a day; None: it asks for nothing.

    Args:
        retry_after: seconds, or a moment.
        date: the `Date` of the same answer, so that this device's clock does not matter.
    """
    if re.fullmatch(r"\d{1,9}", retry_after.strip(), re.ASCII):
        return min(float(retry_after), _LONGEST_PAUSE)
    try:
        seconds = (parsedate_to_datetime(retry_after) - parsedate_to_datetime(date)).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), _LONGEST_PAUSE)


def _by_body(status: int, code: str, message: str) -> tuple[type[SyncError], str] | None:
    words = message.lower()
    rules = BY_CODE if code else BY_WORDS if status >= 500 else ()
    for rule in rules:
        if code.startswith(rule.begins) and rule.holds in words:
            return rule.kind, rule.code
    return (Refused, "sql") if code and status < 300 else None


def _by_status(status: int) -> tuple[type[SyncError], str]:
    found = BY_STATUS.get(status) or _BY_HUNDREDS.get(status // 100)
    return found or (Refused, "bad_request")


def _names(error: BaseException) -> set[str]:
    """The classes of an error; of one that only wraps the system's, of that one too."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None)
    return {cls.__name__ for one in (error, inner) for cls in type(one).__mro__}


def _tidied(text: str) -> str:
    """One short line that does nothing to a terminal."""
    line = "".join(c if c.isprintable() else " " for c in text[: 4 * _LONGEST_MESSAGE])
    line = " ".join(line.split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]} …"
