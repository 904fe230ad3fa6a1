"""The outbox: rows that the replica does not have, and the position up to which it was received."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Final

from thermocline.sync import Cursor, Pending, Row, version_of
from thermocline.sync.row_format import RowFormat, Unreadable
from thermocline.sync.rows import digest

from .apply import every
from .database import meta
from .database import rows as stored
from .database.memory_database import first_value
from .database.transaction import Transaction
from .kinds import kind_of
from .records import memory_rows

_AT_ONCE: Final = 32


def cursor(db: sqlite3.Connection) -> Cursor:
    """The position up to which the replica was received; the beginning before the first contact."""
    return meta.read(db, meta.CURSOR, Cursor) or Cursor()


def follow(tx: Transaction, cursor: Cursor) -> None:
    """Record the position up to which the replica was received."""
    meta.write(tx, meta.CURSOR, cursor)


def restored(db: sqlite3.Connection) -> Cursor:
    """The position at which this memory was restored from a replica, if it was."""
    return meta.read(db, meta.RESTORED, Cursor) or Cursor()


def pending(
    db: sqlite3.Connection,
    kinds: frozenset[str] | None,
    limit: int,
    max_bytes: int,
    after: tuple[str, str] | None = None,
) -> list[Pending]:
    """Rows that the replica does not have; as for `Local`."""
    condition, names = "", sorted(kinds or ())
    if kinds is not None:
        condition = f"AND kind IN ({', '.join('?' * len(names))})"
    if after is not None:
        condition += " AND (kind, id) > (?, ?)"
    waiting = db.execute(
        f"SELECT kind, id, seen FROM outbox WHERE refused IS NULL {condition}"
        " ORDER BY kind, id LIMIT ?",
        (*names, *(after or ()), limit),
    ).fetchall()
    pendings: list[Pending] = []
    room, as_of = max_bytes, meta.clock_state(db).changes
    current = _current(db, ((name, key) for name, key, _ in waiting))
    for (_, _, seen), row in zip(waiting, current, strict=True):
        if row is None:
            continue
        data, clocks = row.encoded()
        room -= len(data or "") + len(clocks) + len(row.id)
        if room < 0 and pendings:
            break
        pendings.append(Pending(row, digest(data, clocks), seen, (data, clocks), as_of))
    return pendings


def _current(db: sqlite3.Connection, keys: Iterable[tuple[str, str]]) -> Iterator[Row | None]:
    """The rows of these kinds and ids, a few at a time: they may be large."""
    for name, some in groupby(keys, key=itemgetter(0)):
        kind = kind_of(name)
        while ids := [key for _, key in islice(some, _AT_ONCE)]:
            loaded = kind.table.load_all(db, name, ids)
            # An id may hold what JSON in SQL cannot, such as NUL.
            yield from (loaded.get(key) or kind.load(db, key) for key in ids)


def queued(db: sqlite3.Connection) -> dict[str, int]:
    """The number of pending rows by kind."""
    rows = db.execute(
        "SELECT kind, count(*) FROM outbox WHERE refused IS NULL GROUP BY kind ORDER BY kind"
    )
    return dict(rows.fetchall())


def refused(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Kind, id and reason of each row that the replica cannot take in this version."""
    return db.execute(
        "SELECT kind, id, refused FROM outbox WHERE refused IS NOT NULL LIMIT 100"
    ).fetchall()


def taken(tx: Transaction, rows: Sequence[Pending], cursor: Cursor | None) -> None:
    """The replica has these versions now. A row that has changed since stays pending.

    Without a cursor others of the same push follow: until then its rows would be received again.
    """
    # If nothing has changed since they were read, the rows need not be compared.
    as_of = -1 if tx.has_changed else meta.clock_state(tx.db).changes
    same = [row.row.key for row in rows if row.as_of == as_of]
    others = [row for row in rows if row.as_of != as_of]
    for row, current in zip(others, _current(tx.db, (row.row.key for row in others)), strict=True):
        if current == row.row:
            same.append(row.row.key)
            continue
        base = stored.version_number(tx, kind_of(row.row.kind), row.row)
        tx.db.execute(
            "UPDATE outbox SET seen = ?, base = ? WHERE kind = ? AND id = ?",
            (row.version, base, *row.row.key),
        )
    before = tx.db.total_changes
    tx.db.executemany("DELETE FROM outbox WHERE kind = ? AND id = ?", same)
    if cursor is not None:
        follow(tx, cursor)
    tx.aside += tx.db.total_changes - before


def rebase(tx: Transaction, rows: Sequence[Pending]) -> None:
    """The replica has the versions `seen` in their places; the next push is not based on those."""
    tx.db.executemany(
        "UPDATE outbox SET seen = ?, base = NULL WHERE kind = ? AND id = ?",
        [(row.seen, *row.row.key) for row in rows],
    )


def set_aside(tx: Transaction, row: Pending, reason: str) -> None:
    """Mark a version that the replica cannot take: it is not sent until the row changes."""
    tx.db.execute("UPDATE outbox SET refused = ? WHERE kind = ? AND id = ?", (reason, *row.row.key))


def offer_again(
    tx: Transaction, form: RowFormat, damaged: Sequence[Unreadable]
) -> dict[tuple[str, str], tuple[tuple[str, str], bool]]:
    """Mark rows as pending that the replica has damaged; as for `Local`."""
    versions = {(row.kind, row.id): row.version for row in damaged}
    held = {}
    for row in every(tx.db):
        name = form.key(*row.key)
        if name not in versions:
            continue
        version = version_of(row)
        is_same = form.version(versions[name]) == form.version(version)
        if is_same:
            tx.db.execute(
                "INSERT OR IGNORE INTO outbox VALUES (?, ?, ?, NULL, NULL)", (*row.key, version)
            )
        held[name] = row.key, is_same
    return held


def compare_again(tx: Transaction, names: Iterable[tuple[str, str]]) -> None:
    """Receive everything again, and offer these rows, which the replica lacks or has otherwise."""
    tx.db.executemany("INSERT OR IGNORE INTO outbox VALUES (?, ?, NULL, NULL, NULL)", names)
    follow(tx, Cursor(cursor(tx.db).epoch))


def offer_all(tx: Transaction, cursor: Cursor) -> None:
    """Start with another replica: mark every row as pending, without a known version there.

    Other devices know the memories that were not pending: their changes to them are no conflicts.
    Rows of other kinds may have been made there too, under the same names.
    """
    tx.db.execute("UPDATE outbox SET seen = NULL, refused = NULL")
    tx.db.execute(
        "INSERT OR IGNORE INTO outbox SELECT ?1, id, NULL, ?2, NULL FROM memories"
        " UNION ALL SELECT kind, id, NULL, NULL, NULL FROM rows",
        (memory_rows.KIND.name, stored.UNCHANGED),
    )
    follow(tx, cursor)


def unsent(folder: Path) -> int:
    """The number of pending rows of a closed memory; 0 if it cannot be read. Blocking."""
    return first_value(folder, "SELECT count(*) FROM outbox WHERE refused IS NULL", 0)
