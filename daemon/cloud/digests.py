"""Compares a database with its replica: counts and digests by kind, then row by row.

Rows that this device has changed since it received them count in the version that the replica had
then, which the outbox knows. Rows that changed on the replica since are left out.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

from thermocline.sync import Received, Replica, Row, SqlStatement, version_of
from thermocline.sync.page_process import form_of
from thermocline.sync.row_format import RowFormat
from thermocline.sync.sealing import KIND
from thermocline.sync.sealing.proofs import fingerprint, joined

from ..store import apply, outbox
from ..store.database.connection import connect
from ..store.kinds import kind_of

T = TypeVar("T")
_NAMED: Final = 5
_LONGEST_NAME: Final = 80
_DIGITS: Final = 8
# The number that the first digits of a version stand for.
_NUMBER: Final = " + ".join(
    f"((instr('0123456789abcdef', substr(version, {place + 1}, 1)) - 1)"
    f" << {4 * (_DIGITS - 1 - place)})"
    for place in range(_DIGITS)
)
_DIGESTS: Final = (
    f"SELECT kind, count(*), sum({_NUMBER}) FROM rows WHERE agent_id = ? GROUP BY kind"  # noqa: S608
)


class ReadableMemory(Protocol):
    """A database: being restored, or in use."""

    async def read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read in one snapshot."""


class Digest(msgspec.Struct, frozen=True):
    """All rows of a kind together."""

    rows: int = 0  # their number, deleted ones included
    total: int = 0  # the sum of the first digits of their versions


class Held(msgspec.Struct, frozen=True):
    """What a database holds: the digest of each kind, and what `Differences` call `shown`."""

    digests: dict[str, Digest]
    shown: tuple[int, bytes]


class Differences(msgspec.Struct):
    """Rows by which a database and its replica differ, as `kind id`."""

    missing: list[str] = []  # rows that the replica does not have
    different: list[str] = []  # rows that the replica has in another version
    extra: list[str] = []  # rows that only the replica has
    rows: int = 0  # how many the replica has
    # Of a sealed replica: up to where it was received, and the fingerprint of what lives there.
    shown: tuple[int, bytes] = (0, b"")


async def of_replica(replica: Replica) -> dict[str, Digest]:
    """The digest of each kind on the replica."""
    [result] = await replica.remote.batch([SqlStatement(_DIGESTS, (replica.form.agent,))])
    return {str(kind): Digest(int(rows or 0), int(total or 0)) for kind, rows, total in result.rows}


async def compare(
    replica: Replica, memory: ReadableMemory, reading: Awaitable[Held | None] | None = None
) -> Differences:
    """Compare a database with its replica: all rows of a kind at once, then those that differ.

    Sealed rows are all of one kind there. `reading` is a task that reads what the database holds;
    without its result it is read here.
    """

    async def held_here() -> Held:
        if reading is not None and (known := await reading) is not None:
            return known
        return await memory.read(lambda db: _held(db, replica.form))

    there, held = await asyncio.gather(of_replica(replica), held_here())
    rows = sum(digest.rows for digest in there.values())
    differences = Differences(rows=rows, shown=held.shown)
    for kind in sorted(there.keys() | held.digests.keys()):
        theirs, ours = there.get(kind, Digest()), held.digests.get(kind, Digest())
        if (theirs.rows, theirs.total) != (ours.rows, ours.total):
            await _compare_kind(replica, memory, kind, differences)
    return differences


async def _compare_kind(
    replica: Replica, memory: ReadableMemory, kind: str, differences: Differences
) -> None:
    until, rows = await memory.read(
        lambda db: (
            outbox.cursor(db).seq,
            {
                replica.form.key(*row.key)[1]: (f"{row.kind} {row.id}", version)
                for row, version in _rows(db, replica.form, None if replica.form.epoch else [kind])
                if _kind_there(replica.form, row) == kind
            },
        )
    )
    # In the replica's fingerprint they stand in this version, or do not.
    others: list[tuple[str, str]] = []
    async for row in replica.listed(kind):
        name, known = rows.pop(row.id, (f"{kind} {row.id}", None))
        if row.seq > until or known == row.version:
            continue
        if known is None:
            differences.extra.append(name)
        elif not await _is_same(replica, kind, row.id, known):
            differences.different.append(name)
            continue
        if not row.deleted:
            others += [(row.id, version) for version in (known, row.version) if version]
    if replica.form.epoch:
        received, living = differences.shown
        differences.shown = received, joined(living, fingerprint(others))
    differences.missing += [name for name, _ in rows.values()]


async def _is_same(replica: Replica, kind: str, key: str, version: str) -> bool:
    """Whether a row on the replica is equal, but was encoded differently by another release."""
    sql = (
        "SELECT kind, id, version, data, clocks FROM rows"
        " WHERE agent_id = ? AND kind = ? AND id = ?"
    )
    [result] = await replica.remote.batch([SqlStatement(sql, (replica.form.agent, kind, key))])
    received = replica.form.received(result.rows[0]) if result.rows else None
    if not isinstance(received, Received):
        return False
    row = received.row
    return replica.form.version(version_of(kind_of(row.kind).table.normal(row))) == version


def read_apart(database: Path, agent: str, keyring: bytes) -> Held | None:
    """What a database holds, as another process has read it; None: it could not. Blocking.

    The keyring is that of a sealed replica, or empty.
    """
    done = subprocess.run(  # noqa: S603 - this very program
        [sys.executable, "-m", __name__],
        input=msgspec.json.encode((str(database), agent, keyring)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        # Ctrl-C in a terminal is for this one.
        start_new_session=True,
    )
    try:
        return msgspec.json.decode(done.stdout, type=Held)
    except msgspec.DecodeError:
        return None


def _held(db: sqlite3.Connection, form: RowFormat) -> Held:
    rows: Counter[str] = Counter()
    totals: Counter[str] = Counter()

    def living() -> Iterator[tuple[str, str]]:
        for row, version in _rows(db, form):
            kind = _kind_there(form, row)
            rows[kind] += 1
            totals[kind] += int(version[:_DIGITS], 16)
            if form.epoch and row.data:
                yield form.key(*row.key)[1], version

    shown = outbox.cursor(db).seq, fingerprint(living())
    return Held({kind: Digest(number, totals[kind]) for kind, number in rows.items()}, shown)


def _rows(
    db: sqlite3.Connection, form: RowFormat, kinds: Sequence[str] | None = None
) -> Iterator[tuple[Row, str]]:
    """Each row, and its version there as the replica had it last."""
    waiting = {
        (kind, key): seen for kind, key, seen in db.execute("SELECT kind, id, seen FROM outbox")
    }
    for row in apply.every(db, kinds):
        is_waiting = bool(waiting) and row.key in waiting
        version = form.version(waiting[row.key] if is_waiting else version_of(row))
        if version is not None:
            yield row, version


def _kind_there(form: RowFormat, row: Row) -> str:
    return KIND if form.epoch else row.kind


def named(names: Sequence[str], what: str) -> list[str]:
    """A line that counts rows and names the first of them; empty without rows.

    `names` are as on the replica; they may hold any character.
    """
    if not names:
        return []
    shown = ", ".join(name[:_LONGEST_NAME] for name in names[:_NAMED])
    more = ", …" if len(names) > _NAMED else ""
    return [f"{len(names):,} {'row is' if len(names) == 1 else 'rows are'} {what}: {shown}{more}"]


if __name__ == "__main__":
    file, name, ring = msgspec.json.decode(sys.stdin.buffer.read(), type=tuple[str, str, bytes])
    with closing(connect(Path(file), "mode=ro")) as opened:
        # What is written meanwhile does not count.
        opened.execute("BEGIN")
        sys.stdout.buffer.write(msgspec.json.encode(_held(opened, form_of(name, ring))))
