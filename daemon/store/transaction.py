"""What an operation of the writer gets: the database, the time, and where to say what it did."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
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
    ) -> None:
        self.db = db
        self.now = now
        self.device = device
        self.rules = rules
        self._tick = tick
        self.clock = 0
        self.events: list[Event] = []
        self.faces: set[Face] = set()
        self.settle_warm = False
        self.settle_tree = False
        self.keep_category: str | None = None

    def version(self) -> int:
        """A fresh version, above every other of this memory."""
        self.clock = self._tick()
        return self.clock

    def changed(self, kind: str, key: str, clock: int) -> None:
        """Put a row into the outbox: it has to reach the replica."""
        self.db.execute(
            "INSERT INTO outbox VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET clock = max(clock, excluded.clock)",
            (kind, key, clock),
        )

    def deleted(self, kind: str, key: str) -> None:
        """Leave a tombstone, so that no older copy of the row comes back."""
        clock = self.version()
        self.db.execute(
            "INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?, ?, ?)",
            (kind, key, self.now, clock, self.device),
        )
        self.changed(kind, key, clock)

    def alive(self, kind: str, key: str) -> None:
        """Take a tombstone away again: its row has been written anew."""
        self.db.execute("DELETE FROM tombstones WHERE kind = ? AND id = ?", (kind, key))

    def archived(self, row: int) -> None:
        """Mark the archive's file that shows `row` as out of date."""
        self.db.execute(
            "INSERT INTO stale_segments VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET clock = excluded.clock",
            (row // SEGMENT_ROWS, self.clock),
        )

    def count(self, metric: str, by: float = 1.0) -> None:
        """Add to one of the counters that `metrics.json` shows.

        A counter of a day is kept under its date, so that it begins anew at midnight.
        """
        if metric.endswith("_today"):
            metric = f"{metric}@{time.strftime('%Y-%m-%d', time.localtime(self.now))}"
        self.db.execute(
            "INSERT INTO metrics VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET value = value + excluded.value",
            (metric, by),
        )
        self.faces.add("metrics")

    def tell(self, kind: str, **data: Any) -> None:
        """Note an event for the listeners."""
        self.events.append(Event(kind, data))
