"""How far the replica was followed, and what it still has to hear: the link and the outbox."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from thermocline.sync import Link, Mark, Row

from . import noted, remote_rows, uses_rows
from .transaction import Transaction

_KEY: Final = "link"
_MEMORY: Final = "memory"
# Every row that travels, with its version. What several devices count apart travels by device.
_ALL: Final = """
    SELECT 'memory' AS kind, id, max(clock, filed_clock) AS clock FROM memories
    UNION ALL SELECT 'hot', section || '/' || key, clock FROM hot
    UNION ALL SELECT 'tree', path, clock FROM tree
    UNION ALL SELECT 'kv', key, clock FROM kv
    UNION ALL SELECT 'merge', id, clock FROM merges
    UNION ALL SELECT 'apart', id, clock FROM kept_apart
    UNION ALL SELECT 'use', id || '/' || device, clock FROM uses
    UNION ALL SELECT 'metric', name || '/' || device, clock FROM metrics
        WHERE instr(name, '@') = 0
    UNION ALL SELECT 'file', path, clock FROM files
    UNION ALL SELECT kind, id, clock FROM tombstones
"""


def load(db: sqlite3.Connection) -> Link:
    """How far the replica was followed; from the beginning, if never or if that is unreadable."""
    return noted.read(db, _KEY, Link) or Link()


def save(tx: Transaction, link: Link) -> None:
    """Note how far the replica was followed."""
    noted.write(tx, _KEY, link)


def relink(tx: Transaction, link: Link) -> None:
    """Begin with another replica: it has to hear of every row, and of every deletion."""
    tx.db.execute(
        f"INSERT INTO outbox SELECT kind, id, max(clock), 0 FROM ({_ALL}) WHERE true GROUP BY"
        " kind, id ON CONFLICT DO UPDATE SET clock = max(clock, excluded.clock), filed_only = 0"
    )
    tx.db.execute("UPDATE tombstones SET seq = NULL")
    remote_rows.doubt(tx)
    save(tx, link)


def marks(db: sqlite3.Connection, kinds: frozenset[str] | None, limit: int) -> list[Mark]:
    """What the replica still has to hear, the earliest change first."""
    condition = "" if kinds is None else f"WHERE kind IN ({', '.join('?' * len(kinds))})"
    rows = db.execute(
        f"SELECT kind, id, clock FROM outbox {condition} ORDER BY clock LIMIT ?",
        (*sorted(kinds or ()), limit),
    )
    return [Mark(*row) for row in rows]


def mark(db: sqlite3.Connection, kind: str, key: str) -> int | None:
    """The clock of what the replica has still to hear of a row; None: nothing."""
    row = db.execute("SELECT clock FROM outbox WHERE kind = ? AND id = ?", (kind, key)).fetchone()
    return None if row is None else int(row[0])


def queued(db: sqlite3.Connection) -> dict[str, int]:
    """How many rows of each kind the replica has still to hear of."""
    return dict(db.execute("SELECT kind, count(*) FROM outbox GROUP BY kind ORDER BY kind"))


def every(db: sqlite3.Connection, kinds: frozenset[str]) -> list[tuple[str, str]]:
    """Kind and id of each row of these kinds that there is, or was until it was deleted."""
    return db.execute(
        f"SELECT DISTINCT kind, id FROM ({_ALL}) WHERE kind IN ({', '.join('?' * len(kinds))})",
        sorted(kinds),
    ).fetchall()


def sent(tx: Transaction, marks: Sequence[Mark], seq: int, link: Link) -> None:
    """Take marks away that were not made again meanwhile."""
    tx.db.executemany(
        "DELETE FROM outbox WHERE kind = ? AND id = ? AND clock = ?",
        [(mark.kind, mark.id, mark.clock) for mark in marks],
    )
    tx.db.executemany(
        "UPDATE tombstones SET seq = ? WHERE kind = ? AND id = ? AND clock = ?",
        [(seq, mark.kind, mark.id, mark.clock) for mark in marks],
    )
    save(tx, link)


def heard(tx: Transaction, row: Row) -> None:
    """The replica has this version of a row, and needs not be told of it or an older one."""
    tx.db.execute(
        "DELETE FROM outbox WHERE kind = ? AND id = ? AND clock <= ?",
        (row.kind, row.id, max(row.clock, row.place_clock)),
    )


def forget_before(tx: Transaction, seq: int) -> None:
    """Drop the tombstones that every device has received.

    The device that has deleted a memory then takes away what all devices counted of it.
    """
    gone = tx.db.execute(
        "DELETE FROM tombstones WHERE seq <= ?"
        " AND (kind, id) NOT IN (SELECT kind, id FROM outbox) RETURNING kind, id, device",
        (seq,),
    ).fetchall()
    for kind, key, device in gone:
        if kind == _MEMORY and device == tx.device:
            uses_rows.forget(tx, key)


def sweep(db: sqlite3.Connection, keep: frozenset[tuple[str, str]]) -> list[tuple[str, str]]:
    """The rows, by kind and id, that neither the replica has nor it is still to hear of."""
    rows = db.execute(
        f"SELECT kind, id FROM ({_ALL} UNION ALL"
        " SELECT 'memory', id, 0 FROM remote_only WHERE present)"
        " EXCEPT SELECT kind, id FROM tombstones"
    )
    return [row for row in rows if row not in keep and not awaited(db, *row)]


def awaited(db: sqlite3.Connection, kind: str, key: str) -> bool:
    """Whether somebody has changed a row here, which the replica has not heard of.

    That the daemon by itself has filed it elsewhere does not count.
    """
    found = db.execute(
        "SELECT 1 FROM outbox WHERE kind = ? AND id = ? AND NOT filed_only", (kind, key)
    )
    return found.fetchone() is not None
