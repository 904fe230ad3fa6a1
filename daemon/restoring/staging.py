"""The database that a restore fills beside the place, and that a later run goes on with."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import msgspec

from thermocline.sync import HybridClock, Link, Poll, Row

from ..errors import Conflict, StoreDamaged
from ..store import atomic, critical, faces, incoming, link, outgoing, received
from ..store.database import FILE_NAME, connect_writer, migrate, quick_check, translate
from ..store.schema import MIGRATIONS
from ..store.transaction import Rules, Transaction

P = ParamSpec("P")
T = TypeVar("T")
_STATE: Final = "restoring"
_CACHE_KB: Final = 32_768
# A page of the log in SQLite's cache is written twice: fewer and longer log runs are quicker.
_LOG_PAGES: Final = 4000


class State(msgspec.Struct, frozen=True):
    """How far a restore has come. It is kept with the rows.

    Attributes:
        url: where the rows come from.
        epoch: of the replica; another one, or one begun anew, has another.
        begun: the replica's place in its order when this was begun.
        link: how far it was followed.
        foreign: the id of the last statement that another tool wrote.
        others: whether what other tools left in tables of their own was taken over.
        adopted: whether the critical state was that another tool wrote, and was taken over.
        seconds: how long earlier runs took.
    """

    url: str
    epoch: str
    begun: int
    link: Link = Link()
    foreign: str = ""
    others: bool = False
    adopted: bool = False
    seconds: float = 0.0


class Staging:
    """A database on its way. Every method blocks, and they are called one after the other.

    What a method has changed is in one commit. A kill loses nothing of it; a power cut may lose
    the last commits, whole, so that a later run asks for their rows again.

    Args:
        folder: where it is made; it may be there from an earlier run.
        device: this device's id.
        rules: the limits that what other tools wrote is brought within.
        now: seconds since the epoch.
    """

    def __init__(
        self, folder: Path, *, device: str, rules: Rules, now: Callable[[], float]
    ) -> None:
        self.folder = folder
        self.path = folder / FILE_NAME
        self._device = device
        self._rules = rules
        self._now = now
        self._opened: sqlite3.Connection | None = None
        self._clock = HybridClock(now)

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, once `resume` or `begin` has opened it."""
        assert self._opened is not None
        return self._opened

    def resume(self) -> State | None:
        """Open what an earlier run has left, and say how far it came.

        Returns:
            None: there is nothing to go on with, or it is damaged.

        Raises:
            ThermoclineError: the disk refuses.
        """
        self.close()
        if not self.path.exists():
            return None
        try:
            self._open()
            return self._state()
        except (StoreDamaged, Conflict):
            self.close()
            return None

    def begin(self, url: str, poll: Poll) -> State:
        """Begin anew, with nothing; what an earlier run has left goes.

        Raises:
            ThermoclineError: the disk refuses.
        """
        self.discard()
        self.folder.mkdir(mode=0o700, parents=True)
        self._open()
        state = State(url, poll.epoch, poll.seq, Link(epoch=poll.epoch))
        with _Commit(self.db, self.path):
            received.make(self.db)
            self._save(state)
        return state

    def take(self, rows: Sequence[Row], unread: Iterable[tuple[str, str]], state: State) -> None:
        """Take over a page of rows, and note how far that went.

        Args:
            rows: as they came.
            unread: kind and id of those that are not as they were sent.
            state: how far it went.
        """
        with _Commit(self.db, self.path):
            tx = self._transaction()
            rows = [row for row in rows if not self._adopted(row)]
            unknown: set[tuple[str, str]] = set()
            if rows and incoming.merge(tx, rows, state.link).refused:
                unknown = {(row.kind, row.id) for row in rows if not self._has(row)}
            received.take(self.db, [row for row in rows if (row.kind, row.id) not in unknown])
            received.refuse(self.db, unknown, "unknown")
            received.refuse(self.db, unread, "damaged")
            self._save(state, tx)

    def take_left(self, rows: Sequence[Row], state: State) -> None:
        """Take over what other tools left in tables of their own."""
        with _Commit(self.db, self.path):
            tx = self._transaction()
            if rows:
                incoming.merge(tx, rows, state.link)
            received.take_left(self.db, rows)
            self._save(state, tx)

    def adopt(self, data: str, state: State) -> None:
        """Take over a critical state that another tool wrote."""
        with _Commit(self.db, self.path):
            tx = self._transaction()
            if not critical.adopt(tx, data):
                received.refuse(self.db, [("critical_state", "")], "unknown")
            self._save(state, tx)

    def complete(self, state: State) -> None:
        """Everything has come, as far as the link says."""
        with _Commit(self.db, self.path):
            tx = self._transaction()
            incoming.merge(tx, (), state.link)
            # What is stored here from now on is later than all that came.
            tx.version()
            self._save(state, tx)

    def check(self) -> None:
        """Read every page of the file once.

        Raises:
            StoreDamaged: one is not as SQLite wrote it.
        """
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        quick_check(self.path)

    def count(self) -> int:
        """How many rows have come."""
        return received.count(self.db)

    def seal(self) -> int:
        """Leave a database like any other, on the disk; return its size in bytes.

        It may be called again after a kill.
        """
        if self._opened is None:
            self._open()
        with _Commit(self.db, self.path):
            received.drop(self.db)
            self.db.execute("DELETE FROM meta WHERE key = ?", (_STATE,))
        try:
            self.db.execute("PRAGMA synchronous = FULL")
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        self.close()
        atomic.sync_folder(self.folder)
        return self.path.stat().st_size

    def close(self) -> None:
        """Close the database; what came stays for a later run. May be called twice."""
        opened, self._opened = self._opened, None
        if opened is not None:
            with suppress(sqlite3.Error):
                opened.close()

    def discard(self) -> None:
        """Remove all of it."""
        self.close()
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def _open(self) -> None:
        db = connect_writer(self.path, _CACHE_KB)
        try:
            migrate(db, self.path, MIGRATIONS)
            # In this mode the log keeps commits whole and in their order; only the last ones
            # may be missing after a power cut, and then their rows are asked for again.
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = OFF").fetchone()
            db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}").fetchone()
            self._clock = HybridClock(self._now, faces.version(db))
        except sqlite3.Error as error:
            db.close()
            raise translate(error, self.path) from error
        except BaseException:
            db.close()
            raise
        self._opened = db

    def _state(self) -> State | None:
        try:
            if not received.exist(self.db):
                return None
            row = self.db.execute("SELECT value FROM meta WHERE key = ?", (_STATE,)).fetchone()
            return None if row is None else msgspec.json.decode(row[0], type=State)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        except msgspec.DecodeError:
            return None

    def _save(self, state: State, tx: Transaction | None = None) -> None:
        meta = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
        self.db.execute(meta, (_STATE, msgspec.json.encode(state).decode()))
        if tx is not None:
            link.save(tx, state.link)
        if tx is not None and tx.clock:
            self.db.execute(meta, ("clock", str(tx.clock)))

    def _transaction(self) -> Transaction:
        return Transaction(
            self.db,
            now=self._now(),
            device=self._device,
            rules=self._rules,
            tick=self._clock.tick,
            observe=self._clock.observe,
        )

    def _adopted(self, row: Row) -> bool:
        """Whether a row is of another tool, and known: what is here of it stays."""
        if row.data is not None or row.view is None:
            return False
        return received.find(self.db, row.kind, row.id) is not None

    def _has(self, row: Row) -> bool:
        """Whether a row was taken over; what was deleted needs no trace here."""
        if row.deleted or row.data is None:
            return True
        found = outgoing.row_of(self.db, row.kind, row.id)
        return found is not None and (found.clock, found.device) >= (row.clock, row.device)


class _Commit:
    """One transaction: committed at the end of the block, undone where it is left otherwise."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def __enter__(self) -> None:
        self._run("BEGIN IMMEDIATE")

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self._run("COMMIT")
            return
        if self._db.in_transaction:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise translate(error, self._path) from error

    def _run(self, sql: str) -> None:
        try:
            self._db.execute(sql)
        except sqlite3.Error as error:
            raise translate(error, self._path) from error


class OnThread:
    """Runs what blocks on one thread, in order, while the event loop goes on."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="restore")

    async def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it. One that was begun runs to its end, though its caller is cancelled."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """Wait for what runs, and end."""
        self._thread.shutdown()
