"""The ports of a replicator: the rows on this device, and a remote database that runs SQL."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, Protocol
from urllib.parse import SplitResult, urlsplit

import msgspec

from .failures import Refused, RowTooLarge
from .row_format import Pending, Received, RowFormat, Unreadable, Value


class Cursor(msgspec.Struct, frozen=True):
    """A position in an agent's order on a remote: its end, or what this device has received."""

    # Of the order; empty if the agent has no rows there, or before the first contact.
    epoch: str = ""
    seq: int = 0  # of the last row


class Applied(msgspec.Struct, frozen=True):
    """What applying rows did."""

    changed: int = 0  # rows that were new or newer
    refused: int = 0  # rows that are unreadable here, and left out
    conflicts: int = 0  # rows in which another device had changed a field that was changed here too
    # Whether a row has a stamp of this device that this device never issued: its folder was copied,
    # and it must take another id.
    copied: bool = False
    ahead: tuple[str, ...] = ()  # devices whose clock is more than a day ahead of this one's

    def __add__(self, other: Applied) -> Applied:
        """The sum of both."""
        return Applied(
            self.changed + other.changed,
            self.refused + other.refused,
            self.conflicts + other.conflicts,
            self.copied or other.copied,
            tuple(sorted({*self.ahead, *other.ahead})),
        )


class Local(Protocol):
    """One agent's rows on this device. Each call is one durable transaction."""

    async def cursor(self) -> Cursor:
        """The position up to which the remote was received."""

    async def restored(self) -> Cursor:
        """The position at which this memory was restored from a remote, if it was."""

    async def pending(
        self,
        kinds: frozenset[str] | None,
        limit: int,
        max_bytes: int,
        after: tuple[str, str] | None = None,
    ) -> list[Pending]:
        """Rows that the remote lacks, always in the same order; at least one, if any.

        `max_bytes` are those of their JSON; a single row may be larger. With `after` only those
        behind the row with this kind and id.
        """

    async def taken(self, rows: Sequence[Pending], cursor: Cursor) -> None:
        """The remote has these versions now. A row that has changed since stays pending."""

    async def apply(self, rows: Sequence[Received], cursor: Cursor) -> Applied:
        """Merge rows of the remote, and store the new position.

        A row whose merged version differs from the remote's becomes pending over that version.
        """

    async def rebase(self, rows: Sequence[Pending]) -> None:
        """The remote has the version `seen` in the place of these rows, or nothing.

        That version is unreadable: the next push replaces it.
        """

    async def set_aside(self, row: Pending, reason: str) -> None:
        """The remote cannot take this version: it is reported, and pending again once changed."""

    async def fingerprint(self, form: RowFormat) -> tuple[int, bytes] | None:
        """The fingerprint of the living rows as the remote has them, and up to where.

        None while this device has changes that the remote lacks.
        """

    async def offer_again(
        self, form: RowFormat, damaged: Sequence[Unreadable]
    ) -> dict[tuple[str, str], tuple[tuple[str, str], bool]]:
        """Mark rows as pending that the remote has damaged, in the very version that is here.

        Returns, by kind and id on the remote, those that are here, and whether they are sent again.
        """

    async def offer_all(self, cursor: Cursor) -> None:
        """Another remote, or a restored older state: mark every row as pending, reset `cursor`."""


_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1


class SqlStatement(msgspec.Struct, frozen=True):
    """One SQL statement. `args` fill its `?` in order, or its `?1`, `?2` … by number."""

    sql: str
    args: tuple[Value, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """The result of one statement: its rows, and the number of rows that it changed.

    `affected` is 0 for an upsert whose condition did not hold.
    """

    rows: tuple[tuple[Value, ...], ...]
    affected: int


class Usage(msgspec.Struct, frozen=True):
    """What calls to a remote used: rows as the provider counts them, and the bytes of bodies."""

    rows_read: int = 0
    rows_written: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    def __add__(self, other: Usage) -> Usage:
        """The sum of both."""
        return Usage(
            self.rows_read + other.rows_read,
            self.rows_written + other.rows_written,
            self.bytes_sent + other.bytes_sent,
            self.bytes_received + other.bytes_received,
        )


class Remote(Protocol):
    """A remote database. Safe to use from several tasks of one event loop.

    Integers are exact to 64 bits, text is returned unchanged, NUL included. Values of the database
    that are not a `Value` are read alike everywhere: a blob as text, with U+FFFD for invalid UTF-8;
    an infinite number as None.
    """

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        """Run the statements in order, in one transaction: all of them or none.

        A batch that raised `TryLater`, or was cancelled, may have been applied, since only the
        answer may have been lost: repeating it must do no harm. It may be repeated automatically if
        the connection broke. None of the statements may begin or end a transaction. A batch that
        reads and then writes may conflict with another device (`TryLater`, "busy"): write first.

        Returns one result for each statement. It raises nothing but `SyncError`; unless that is
        `TryLater`, nothing was changed.
        """

    async def close(self) -> None:
        """Close the connection after the running batch. May be called twice."""


async def rows_of(remote: Remote, sql: str, *args: Value) -> tuple[tuple[Value, ...], ...]:
    """The rows of one statement; raises as `Remote.batch`."""
    [result] = await remote.batch([SqlStatement(sql, args)])
    return result.rows


async def pages(
    remote: Remote, sql: str, agent: str, *others: Value, limit: int, id_at: int = 0
) -> AsyncIterator[tuple[tuple[Value, ...], ...]]:
    """The rows of a query in the order of their ids, a page at a time.

    The query takes the agent as `?1`, the last id before the page as `?2`, the most rows of a page
    as `?3`, and then `others`; the id is its column `id_at`. A page that an answer cannot hold is
    halved; `RowTooLarge` if that is so of a single row.
    """
    after = ""
    while True:
        try:
            rows = await rows_of(remote, sql, agent, after, limit, *others)
        except RowTooLarge:
            if limit == 1:
                raise
            limit //= 2
            continue
        yield rows
        if len(rows) < limit:
            return
        after = str(rows[-1][id_at])


def check(statements: Sequence[SqlStatement]) -> None:
    """Refuse ("bad_request") values that SQLite cannot hold exactly, before anything is sent."""
    for number, statement in enumerate(statements):
        for argument in (statement.sql, *statement.args):
            if fault := _fault(argument):
                raise Refused("bad_request", f"cannot send statement {number}: it holds {fault}")


def plain(row: Iterable[object]) -> tuple[Value, ...]:
    """A row of SQLite as values: a blob is read as text, an infinite number as None."""
    return tuple(map(_plain, row))


def whole(value: Value) -> int:
    """A value as an integer; 0 if it is not a number of 64 bits."""
    if not isinstance(value, int | float) or not _LOWEST <= value <= _HIGHEST:
        return 0
    return int(value)


def _fault(argument: object) -> str:
    if isinstance(argument, str):
        try:
            argument.encode()
        except UnicodeEncodeError:
            return "a lone surrogate"
        return ""
    if isinstance(argument, int):
        return "" if _LOWEST <= argument <= _HIGHEST else "an integer beyond 64 bits"
    if isinstance(argument, float):
        return "" if math.isfinite(argument) else "a number that is not finite"
    return "" if argument is None else f"a value of type {type(argument).__name__}"


def _plain(value: object) -> Value:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    assert value is None or isinstance(value, str | int)
    return value


_SCHEMES = {"libsql": "https", "https": "https", "http": "http"}


def address(url: str) -> SplitResult:
    """The parsed URL of a remote: `libsql://` becomes `https://`, and a path is kept.

    `Refused`: it is not a URL of a remote ("bad_request"), or would send everything unencrypted
    ("tls"). The message contains no secret.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _unfit("it is not one") from None
    if parts.username is not None or parts.query or parts.fragment:
        raise _unfit("it has more than a host; put the token into its own file")
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None or not host:
        raise _unfit("it must begin with libsql:// or https:// and a host")
    if scheme == "http" and not _is_loopback(host):
        raise Refused(
            "tls",
            f"cannot use http:// for {host}: whoever listens could read everything",
            hint="write https:// or libsql:// instead of http://",
        )
    return parts._replace(scheme=scheme)


def _unfit(why: str) -> Refused:
    return Refused("bad_request", f"cannot use the remote's URL: {why}", hint="correct the URL")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
