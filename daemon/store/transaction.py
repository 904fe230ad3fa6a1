"""The context of a write operation: the database, the time, and a record of its effects."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from thermocline.sync import HybridClock, Row, Stamp

from ..config.settings import Rules

if TYPE_CHECKING:
    from .full_text import IndexEntry

# A state file that shows the memory.
Face: TypeAlias = Literal["hot", "warm", "tree", "metrics"]

# On whose behalf operations are submitted, as `uid:1000`; empty: the daemon's own.
acting: ContextVar[str] = ContextVar("acting", default="")


class Event(msgspec.Struct, frozen=True):
    """A change, published after its commit is on the disk."""

    type: str
    data: dict[str, Any]


class Transaction:
    """One group of operations on its way to the disk.

    Attributes:
        db: the writer's connection, inside a transaction.
        now: seconds since the epoch, the same for the whole group.
        device: this device's id.
        rules: the limits in force for this group.
        events, faces: what to publish, and which state files to write, after the commit.
        outgoing: the kinds of changed rows that are replicated.
        uses: what `uses` has read of the counts of all devices; `are_uses` tells whether there
            are any.
        are_merged: whether any memory is merged into another; None: not known yet.
        filed: categories that are known to be in the tree.
        warm_floor: the score below which a new memory is archived at once; None: never.
        counted: what to add to the counters; the new moment of a `last_…` counter.
        clock: of this memory; `ticked`: whether it must be saved.
        writer: on whose behalf the operation runs, as `uid:1000`; empty: the daemon's own.
        settle_warm, settle_tree, settle_hot: which caps the group may have broken.
        keep_category: the category that the tree's caps must leave alone.
        new_by_term: the ids of new memories by the stems of their words.
        unindexed: new memories that are not in the full text yet.
        index_writes: number of changes of full-text indexes.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        *,
        now: float,
        device: str,
        rules: Rules,
        clock: HybridClock,
    ) -> None:
        self.db = db
        self.now = now
        self.device = device
        self.rules = rules
        self.clock = clock
        self.ticked = False
        self.writer = ""
        self.events: list[Event] = []
        self.outgoing: set[str] = set()
        self.faces: set[Face] = set()
        self.counted: dict[str, float] = {}
        self.uses: dict[str, dict[str, tuple[int, float | None]]] = {}
        self.are_uses: bool | None = None
        self.are_merged: bool | None = None
        self.filed: set[str] = set()
        self.warm_floor: float | None = None
        self.settle_warm = False
        self.settle_tree = False
        self.settle_hot = False
        self.keep_category: str | None = None
        self.new_by_term: dict[str, list[str]] = {}
        self.unindexed: list[IndexEntry] = []
        self.index_writes = 0

    @contextmanager
    def undone_on_failure(self) -> Iterator[None]:
        """A block whose changes are undone if it raises."""
        noted = self.noted()
        self.db.execute("SAVEPOINT block")
        try:
            yield
        except BaseException:
            # A full disk has ended the whole transaction by itself.
            if self.db.in_transaction:
                self.db.execute("ROLLBACK TO block")
                self.db.execute("RELEASE block")
            self.take_back(noted)
            raise
        self.db.execute("RELEASE block")

    def noted(self) -> tuple[Any, ...]:
        """The state outside the database, for `take_back`."""
        return (
            len(self.events),
            set(self.outgoing),
            set(self.faces),
            dict(self.counted),
            (self.settle_warm, self.settle_tree, self.settle_hot, self.keep_category),
            self.unindexed,
            len(self.unindexed),
        )

    def take_back(self, noted: tuple[Any, ...]) -> None:
        """Restore that state after an operation was undone."""
        told, self.outgoing, self.faces, self.counted, settle, unindexed, number = noted
        del self.events[told:]
        # What was indexed since is no longer: undoing the operation has undone that too.
        self.unindexed = unindexed[:number]
        self.uses.clear()
        self.are_uses = self.are_merged = None
        self.filed.clear()
        self.settle_warm, self.settle_tree, self.settle_hot, self.keep_category = settle

    def stamp(self, over: Row | None = None) -> Stamp:
        """A fresh stamp, younger than every other of this memory.

        Args:
            over: the version that is replaced, which may be from a device whose clock is years
                ahead: the stamp is younger than it too, and those that follow need not be.
        """
        self.ticked = True
        return self.clock.tick(over.clocks.latest[0] if over is not None else 0), self.device

    def observe(self, clock: int) -> bool:
        """Take note of another device's clock: stamps are younger from here on.

        Returns:
            False: it is more than a day ahead, and is not followed.
        """
        self.ticked = True
        return self.clock.observe(clock)

    def count(self, metric: str, by: float = 1.0) -> None:
        """Add to one of the counters that `metrics.json` shows.

        A counter of a day is kept under its date, so that it restarts at midnight; it is
        about this device alone. Of the others each device counts its own, as of uses.
        """
        if metric.endswith("_today"):
            metric = f"{metric}@{time.strftime('%Y-%m-%d', time.localtime(self.now))}"
        self.counted[metric] = self.counted.get(metric, 0.0) + by
        self.faces.add("metrics")

    def note_time(self, metric: str) -> None:
        """Note that what a counter of moments tells of happened now, on this device.

        Its name begins with `last_`: of several devices' moments the latest is shown.
        """
        self.counted[metric] = self.now
        self.faces.add("metrics")

    def tell(self, kind: str, **data: Any) -> None:
        """Note an event for the listeners."""
        self.events.append(Event(kind, data))
