"""Both sides of a replication in memory, for tests of whoever uses it."""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import msgspec

from .clock import HybridClock
from .failures import classify
from .local import Applied, Link, Pending, Received
from .remote import Result, Statement, check, plain
from .rows import NO_SETS, Fields, Row, changed, deletion, merge, version_of

Key = tuple[str, str]


class MemoryRemote:
    """A remote in memory, on which batches take microseconds."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None)
        self.batches = 0

    async def batch(self, statements: Sequence[Statement]) -> list[Result]:
        """Run the statements in order, in one transaction; as for `Remote`."""
        check(statements)
        self.batches += 1
        try:
            self._db.execute("BEGIN")
            try:
                results = [self._execute(statement) for statement in statements]
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise classify(error) from None
        return results

    async def close(self) -> None:
        """Forget everything."""
        self._db.close()

    def saved(self) -> bytes:
        """Everything in it, for `set_back`."""
        return self._db.serialize()

    def set_back(self, saved: bytes | None = None) -> None:
        """Put back what it held once; None: nothing."""
        self._db.close()
        self._db = sqlite3.connect(":memory:", isolation_level=None)
        if saved is not None:
            self._db.deserialize(saved)

    def query(self, sql: str, *args: Any) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        return self._db.execute(sql, args).fetchall()

    def _execute(self, statement: Statement) -> Result:
        before = self._db.total_changes
        with closing(self._db.execute(statement.sql, statement.args)) as cursor:
            rows = tuple(plain(line) for line in cursor.fetchall())
        return Result(rows, self._db.total_changes - before)


class MemoryLocal:
    """One agent's rows on a device, in memory.

    Args:
        device: its id.
        clock: issues its stamps.
        sets: the fields whose lists join element by element.

    Attributes:
        rows: every row, deleted ones too.
        outbox: the keys of what the remote does not have, with the version that it had.
        aside: what it cannot take, with the reason.
    """

    def __init__(self, device: str, clock: HybridClock, sets: frozenset[str] = NO_SETS) -> None:
        self.device = device
        self.clock = clock
        self.rows: dict[Key, Row] = {}
        self.outbox: dict[Key, str | None] = {}
        self.aside: dict[Key, str] = {}
        self._sets = sets
        self._link = Link()

    def copied(self, device: str) -> MemoryLocal:
        """The same rows under another id, as after a restore from an old copy."""
        other = copy.copy(self)
        other.device = device
        other.rows, other.outbox = dict(self.rows), dict(self.outbox)
        other.clock = copy.copy(self.clock)
        return other

    def write(self, kind: str, key: str, data: Fields | None) -> None:
        """Replace what a row says; None deletes it."""
        name = (kind, key)
        row = self.rows.get(name)
        above = row.clocks.latest[0] if row else 0
        stamp = (self.clock.tick(above), self.device)
        self.outbox.setdefault(name, version_of(row))
        self.aside.pop(name, None)
        if data is None:
            self.rows[name] = deletion(name, stamp)
        else:
            self.rows[name] = changed(row, name, data, stamp, self._sets)

    def says(self, kind: str, key: str) -> Fields:
        """What a row says; empty: it is not there."""
        row = self.rows.get((kind, key))
        return row.data if row else {}

    async def link(self) -> Link:
        """As for `Local`."""
        return self._link

    async def pending(
        self, kinds: frozenset[str] | None, limit: int, max_bytes: int
    ) -> list[Pending]:
        """As for `Local`."""
        found: list[Pending] = []
        for name, seen in self.outbox.items():
            if (kinds is None or name[0] in kinds) and name not in self.aside:
                row = self.rows[name]
                max_bytes -= len(msgspec.json.encode(row))
                if len(found) == limit or (found and max_bytes < 0):
                    break
                found.append(Pending(row, version_of(row) or "", seen))
        return found

    async def taken(self, rows: Sequence[Pending], link: Link) -> None:
        """As for `Local`."""
        for one in rows:
            self._stands(one.row.key, one.version)
        self._link = link

    async def apply(self, rows: Sequence[Received], link: Link) -> Applied:
        """As for `Local`."""
        before = [self.rows.get(one.row.key) for one in rows]
        conflicts = 0
        for one in rows:
            name = one.row.key
            ours = self.rows.get(name)
            self.clock.observe(one.row.clocks.latest[0])
            self.rows[name] = one.row if ours is None else merge(ours, one.row, self._sets)
            conflicts += name in self.outbox and version_of(self.rows[name]) != one.version
            self._stands(name, one.version)
        self._link = link
        now = [self.rows[one.row.key] for one in rows]
        different = sum(a != b for a, b in zip(before, now, strict=True))
        return Applied(changed=different, conflicts=conflicts)

    async def gone(self, rows: Sequence[Pending]) -> None:
        """As for `Local`."""
        for one in rows:
            self.outbox[one.row.key] = None

    async def set_aside(self, row: Pending, reason: str) -> None:
        """As for `Local`."""
        if version_of(self.rows[row.row.key]) == row.version:
            self.aside[row.row.key] = reason

    async def offer_all(self, link: Link) -> None:
        """As for `Local`."""
        self.outbox = dict.fromkeys(self.rows)
        self._link = link

    def _stands(self, name: Key, version: str) -> None:
        """The remote has this version of a row."""
        if version_of(self.rows[name]) == version:
            self.outbox.pop(name, None)
            self.aside.pop(name, None)
        else:
            self.outbox[name] = version
