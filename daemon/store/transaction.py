"""What an operation of the writer gets: the database, the time, and where to say what it did."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ..memory.hot import HotLimits
from ..memory.scoring import Scoring
from ..memory.tree import TreeLimits

Face: TypeAlias = Literal["hot", "warm", "tree", "metrics", "kv"]

# Rows of the archive that share one file. Small enough to rewrite often, and 400 files at 100,000.
SEGMENT_ROWS: Final = 256


class Rules(msgspec.Struct, frozen=True):
    """The limits that every commit leaves the memory within."""

    hot: HotLimits = HotLimits()
    tree: TreeLimits = TreeLimits()
    scoring: Scoring = Scoring()
    warm_max_bytes: int = 51_200
    warm_retention_days: float = 30.0
    warm_eviction_threshold: float = 0.3
    prune_idle_days: float = 60.0


class Event(msgspec.Struct, frozen=True):
    """Something that a commit changed, told to those who listen once it is on the disk."""

    type: str
    data: dict[str, Any]


class Transaction:
    """One group of operations on its way to the disk.

    Attributes:
        db: the writer's connection, inside a transaction.
        now: seconds since the epoch, the same for the whole group.
        device: this device's id.
        rules: the limits in force for this group.
        events, faces: what to tell, and which state files to write, after the commit.
        outgoing: the kinds of rows that have to reach the replica.
        elsewhere: whether the notes of what the replica alone holds have changed.
        settle_warm, settle_tree, settle_hot: which caps the group may have broken.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        *,
        now: float,
        device: str,
        rules: Rules,
        tick: Callable[[], int],
        observe: Callable[[int], None] | None = None,
    ) -> None:
        self.db = db
        self.now = now
        self.device = device
        self.rules = rules
        self._tick = tick
        self._observe = observe
        self.clock = 0
        self.events: list[Event] = []
        self.outgoing: set[str] = set()
        self.faces: set[Face] = set()
        self.elsewhere = False
        self.settle_warm = False
        self.settle_tree = False
        self.settle_hot = False
        self.keep_category: str | None = None

    @contextmanager
    def undone_on_failure(self) -> Iterator[None]:
        """A block that leaves nothing behind when an error ends it. Not to be nested."""
        told = len(self.events)
        self.db.execute("SAVEPOINT block")
        try:
            yield
        except BaseException:
            # A full disk has ended the whole transaction by itself.
            if self.db.in_transaction:
                self.db.execute("ROLLBACK TO block")
                self.db.execute("RELEASE block")
            del self.events[told:]
            raise
        self.db.execute("RELEASE block")

    def version(self) -> int:
        """A fresh version, above every other of this memory."""
        self.clock = self._tick()
        return self.clock

    def seen(self, clock: int) -> None:
        """Take note of another device's version: `version` is above it from here on."""
        if self._observe is not None:
            self._observe(clock)

    def changed(self, kind: str, key: str, clock: int, *, filed_only: bool = False) -> None:
        """Put a row into the outbox: it has to reach the replica.

        Args:
            kind: of the row.
            key: its id.
            clock: its version.
            filed_only: the daemon has filed it elsewhere by itself; nobody has changed it.
        """
        self.outgoing.add(kind)
        self.db.execute(
            "INSERT INTO outbox VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET clock = max(clock, excluded.clock),"
            " filed_only = min(filed_only, excluded.filed_only)",
            (kind, key, clock, filed_only),
        )

    def deleted(self, kind: str, key: str) -> None:
        """Leave a tombstone, so that no older copy of the row comes back."""
        clock = self.version()
        self.db.execute(
            "INSERT OR REPLACE INTO tombstones (kind, id, deleted_at, clock, device)"
            " VALUES (?, ?, ?, ?, ?)",
            (kind, key, self.now, clock, self.device),
        )
        self.changed(kind, key, clock)

    def alive(self, kind: str, key: str) -> None:
        """Take a tombstone away again: its row has been written anew."""
        self.db.execute("DELETE FROM tombstones WHERE kind = ? AND id = ?", (kind, key))

    def archived(self, row: int) -> None:
        """Mark the archive's file that shows `row` as out of date, at a version of this group.

        A file that is just being written shows an earlier one, so that the mark outlasts it.
        """
        if not self.clock:
            self.version()
        self.db.execute(
            "INSERT INTO stale_segments VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET clock = excluded.clock",
            (row // SEGMENT_ROWS, self.clock),
        )

    def count(self, metric: str, by: float = 1.0) -> None:
        """Add to one of the counters that `metrics.json` shows.

        A counter of a day is kept under its date, so that it begins anew at midnight; it is
        about this device alone. Of the others each device counts its own, as of uses.
        """
        clock = self.version()
        if metric.endswith("_today"):
            metric = f"{metric}@{time.strftime('%Y-%m-%d', time.localtime(self.now))}"
        self.db.execute(
            "INSERT INTO metrics VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " value = value + excluded.value, clock = excluded.clock",
            (metric, self.device, by, clock),
        )
        if "@" not in metric:
            self.changed("metric", f"{metric}/{self.device}", clock)
        self.faces.add("metrics")

    def note_time(self, metric: str) -> None:
        """Note that what a counter of moments tells of happened now, on this device.

        Its name begins with `last_`: of several devices' moments the latest is shown.
        """
        clock = self.version()
        self.db.execute(
            "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?)",
            (metric, self.device, self.now, clock),
        )
        self.changed("metric", f"{metric}/{self.device}", clock)
        self.faces.add("metrics")

    def tell(self, kind: str, **data: Any) -> None:
        """Note an event for the listeners."""
        self.events.append(Event(kind, data))
