"""The context of a write operation: the database, the time, and a record of its effects."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

import msgspec

from thermocline.sync import HybridClock, Row, Stamp

from ...config.settings import Rules

# A state file that shows the memory.
StateFile: TypeAlias = Literal["hot", "warm", "tree", "metrics"]

# On whose behalf operations are submitted, as `uid:1000`; empty: the daemon's own.
acting: ContextVar[str] = ContextVar("acting", default="")


class IndexEntry(msgspec.Struct, frozen=True, gc=False):
    """A text to index."""

    row: int
    columns: tuple[str, ...]  # its parts in the order of the index's columns
    # The time that "tomorrow" in it is relative to; None: such words mean no date.
    told_at: float | None = None
    is_turn: bool = False  # whether it is a turn of a conversation


class Event(msgspec.Struct, frozen=True):
    """A change, published after its commit is on the disk."""

    type: str
    data: dict[str, Any]


class DeletedMemory(msgspec.Struct, frozen=True):
    """What is needed of a deleted memory to erase its traces."""

    text: str
    category: str


class ClockState(msgspec.Struct, frozen=True):
    """What nearly every commit changes, and so in one row of `meta`."""

    # The highest stamp issued or seen, and the highest issued by this device.
    clock: int = 0
    issued: int = 0
    # This device's counts since they were last moved into its row; see `metrics`.
    counted: dict[str, float] = {}
    changes: int = 0  # the number of commits that changed more than these


class WriterCache(msgspec.Struct):
    """What the writer has read of its database, which nobody else changes.

    It goes from transaction to transaction as long as each is committed; after any failure the next
    one begins with an empty cache, and reads again what it needs.
    """

    categories: set[str] | None = None  # those in the tree; None: not read yet
    clock_state: ClockState | None = None  # as in `meta`; None: not read yet
    # Whether a memory may have uses that are not in its row; None: not read yet.
    has_uses: bool | None = None
    next_expiry: float = 0.0  # no memory expires before this time, in seconds since the epoch


class Transaction(msgspec.Struct, eq=False):
    """One group of operations on its way to the disk."""

    db: sqlite3.Connection  # the writer's connection, inside a transaction
    now: float  # seconds since the epoch, the same for the whole group
    device: str  # this device's id
    rules: Rules  # the limits in force for this group
    clock: HybridClock  # of this memory; `ticked`: whether it must be saved
    # What earlier transactions have read of the database.
    cache: WriterCache = msgspec.field(default_factory=WriterCache)
    ticked: bool = False
    # On whose behalf the operation runs, as `uid:1000`; empty: the daemon's own.
    writer: str = ""
    # What to publish, and which state files to write, after the commit.
    events: list[Event] = []
    outgoing: set[str] = set()  # the kinds of changed rows that are replicated
    state_files: set[StateFile] = set()
    # What to add to the counters; the new moment of a `last_…` counter.
    counted: dict[str, float] = {}
    forgotten: list[DeletedMemory] = []  # memories that were deleted before their time
    erased: bool = False  # whether content was deleted, which must also leave the log
    # Whether many rows are added, to a database that is not complete before `Staging.seal`.
    is_bulk: bool = False
    # Which caps the group may have broken.
    enforce_warm: bool = False
    enforce_tree: bool = False
    enforce_hot: bool = False
    keep_category: str | None = None  # the category that the tree's caps must leave alone
    unindexed: list[IndexEntry] = []  # new memories that are not in the full text yet
    # Changes that are not of content: digests of state files, rows that the replica has taken.
    aside: int = 0
    # The changes of the connection before it; see `has_changed`.
    before: int = -1

    def __post_init__(self) -> None:
        self.before = self.db.total_changes

    @property
    def has_changed(self) -> bool:
        """Whether any content was written."""
        return self.db.total_changes != self.before + self.aside

    @contextmanager
    def undone_on_failure(self) -> Iterator[None]:
        """A block whose changes are undone if it raises."""
        snapshot = self.snapshot()
        self.db.execute("SAVEPOINT block")
        try:
            yield
        except BaseException:
            # A full disk has ended the whole transaction by itself.
            if self.db.in_transaction:
                self.db.execute("ROLLBACK TO block")
                self.db.execute("RELEASE block")
            self.restore_snapshot(snapshot)
            raise
        self.db.execute("RELEASE block")

    def snapshot(self) -> tuple[Any, ...]:
        """The state outside the database, for `restore_snapshot`."""
        return (
            len(self.events),
            set(self.outgoing),
            set(self.state_files),
            dict(self.counted),
            (self.enforce_warm, self.enforce_tree, self.enforce_hot, self.keep_category),
            self.unindexed,
            len(self.unindexed),
            len(self.forgotten),
        )

    def restore_snapshot(self, snapshot: tuple[Any, ...]) -> None:
        """Restore that state after an operation was undone."""
        events, self.outgoing, self.state_files, self.counted, due, unindexed, number, gone = (
            snapshot
        )
        del self.events[events:]
        del self.forgotten[gone:]
        # What was indexed since is no longer: undoing the operation has undone that too.
        self.unindexed = unindexed[:number]
        self.cache = WriterCache()
        self.enforce_warm, self.enforce_tree, self.enforce_hot, self.keep_category = due

    def stamp(self, over: Row | None = None) -> Stamp:
        """A fresh stamp, younger than every other of this memory.

        `over` is the version that is replaced. If it is from a device whose clock is years ahead,
        the stamp is younger than it too, and those that follow need not be.
        """
        self.ticked = True
        return self.clock.tick(over.clocks.latest[0] if over is not None else 0), self.device

    def observe(self, clock: int) -> bool:
        """Take note of another device's clock: stamps are younger from here on.

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
        self.state_files.add("metrics")

    def note_time(self, metric: str) -> None:
        """Note that what a counter of moments tells of happened now, on this device.

        Its name begins with `last_`: of several devices' moments the latest is shown.
        """
        self.counted[metric] = self.now
        self.state_files.add("metrics")

    def emit(self, kind: str, **data: Any) -> None:
        """Note an event for the listeners."""
        self.events.append(Event(kind, data))
