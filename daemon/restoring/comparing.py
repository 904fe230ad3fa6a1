"""A memory in use against what its replica gives back of it."""

from __future__ import annotations

import sqlite3

from ..store import fingerprints, link, memory_rows, outgoing, received, uses_rows
from ..store.fingerprints import Standing
from ..store.received import Note
from .verifying import named


class Comparison:
    """Compares row by row. What is on its way between the two counts for neither.

    Args:
        live: the memory in use: a snapshot of one moment.
        notes: what came from the replica, at that moment or later.

    Attributes:
        rows: how many are the same.
        missing, different, extra: the names of those that the replica has not, has otherwise,
            and has alone.
    """

    def __init__(self, live: sqlite3.Connection, notes: sqlite3.Connection) -> None:
        self._live = live
        self._notes = notes
        self._seen = link.load(live).seen
        self._paired = 0
        self.rows = 0
        self.missing: list[str] = []
        self.different: list[str] = []
        self.extra: list[str] = []

    def run(self) -> None:
        """Compare everything. Blocking."""
        for row in fingerprints.everything(self._live):
            self._add(row)
        self._look_for_extra()

    def faults(self) -> list[str]:
        """What was found, a line each."""
        return [
            *named(self.missing, "not on the replica"),
            *named(self.different, "otherwise on the replica"),
            *named(self.extra, "on the replica alone"),
        ]

    def _add(self, row: Standing) -> None:
        note = received.find(self._notes, row.kind, row.id)
        here = f"{row.kind} {row.id}"
        if note is not None and note.came_as == "row":
            self._paired += 1
        if self._is_under_way(row, note):
            return
        if row.deleted:
            if note is not None and note.came_as == "row":
                self.extra.append(here)
        elif note is None or note.came_as == "gone":
            self.missing.append(here)
        elif self._is_same(row, note):
            self.rows += 1
        else:
            self.different.append(here)

    def _is_under_way(self, row: Standing, note: Note | None) -> bool:
        """Whether the replica has still to hear of the row, or this memory of what is there."""
        if link.mark(self._live, row.kind, row.id) is not None:
            return True
        return note is not None and (note.seq > self._seen or note.came_as in ("view", "left"))

    def _is_same(self, row: Standing, note: Note) -> bool:
        if row.fingerprint:
            return row.fingerprint == note.fingerprint
        # Only where it is filed is known here: the replica alone has the rest.
        return (row.said, row.put) == (note.said, note.put)

    def _look_for_extra(self) -> None:
        """Look for what is there alone; mostly the numbers show that there is nothing."""
        if self._paired == sum(1 for _ in received.all_of(self._notes, ("row",))):
            return
        for kind, key, note in received.all_of(self._notes, ("row",)):
            if note.seq <= self._seen and not self._is_known(kind, key):
                self.extra.append(f"{kind} {key}")

    def _is_known(self, kind: str, key: str) -> bool:
        if outgoing.row_of(self._live, kind, key) is not None:
            return True
        if kind != uses_rows.KIND:
            return False
        # What others have counted of a memory that is gone is dropped without a trace.
        memory, _ = uses_rows.parts_of(key)
        found = outgoing.row_of(self._live, memory_rows.KIND, memory)
        return found is None or found.deleted
