"""The last steps of a restore: from the folder beside the place into it, past any kill."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from ..errors import Conflict
from ..replication.account import CREDENTIALS_FILE, REPLICA_FILE
from ..store import atomic
from ..store.database import FILE_NAME
from ..store.opening import has_database
from ..store.sources import present, roots
from .place import RestorePlace

# What of an agent's folder is no memory, and not on the replica: it stays where it is found.
_KEPT: Final = (
    "memory",
    CREDENTIALS_FILE,
    *(f"{REPLICA_FILE}{suffix}" for suffix in ("", "-wal", "-shm")),
)
_LOGS: Final = (f"{FILE_NAME}-wal", f"{FILE_NAME}-shm")
_RUN_FILE: Final = ".restoring.json"


class Moved(msgspec.Struct, frozen=True):
    """What moving in has done with what was there before.

    Attributes:
        set_aside: where it is now; None where there was no memory.
        unsent: how many rows in it the replica had not heard of.
    """

    set_aside: Path | None
    unsent: int = 0


class Arrival:
    """Puts a sealed database into the place of its agent.

    Args:
        place: where.
        folder: holds the database and nothing else.
    """

    def __init__(self, place: RestorePlace, folder: Path) -> None:
        self._place = place
        self._folder = folder

    @property
    def folder(self) -> Path:
        """Where it is before it moves."""
        return self._folder

    def has_moved(self) -> bool:
        """Whether the database is beside its place no more."""
        return not (self._folder / FILE_NAME).exists()

    def holds_memory(self) -> bool:
        """Whether there is a database or a state file in the place."""
        there = self._place.folder
        if there.is_dir() and not there.is_symlink():
            return has_database(there) or present(roots(there, self._place.agent, None))
        return os.path.lexists(there)

    def refuse_taken(self, *, replace: bool) -> None:
        """Refuse a place that holds a memory, unless that may be set aside.

        Raises:
            Conflict: it does.
        """
        if not replace and self.holds_memory():
            raise Conflict(
                f"cannot restore '{self._place.agent}': {self._place.folder} holds a memory",
                hint="--replace keeps it beside the restored one; --to restores elsewhere",
            )

    def move_in(self, set_aside: Callable[[], None]) -> Moved:
        """Put the database into the place, in the end by one rename.

        A memory that is there is set aside first. Notes and credentials that stand beside it
        are no part of it, and are there afterwards as before.

        Args:
            set_aside: called when the place is empty and the new memory not in it yet.
        """
        self._own(self._folder)
        there = self._place.folder
        if self.holds_memory():
            unsent = _unsent(there / FILE_NAME)
            self._copy_kept(there)
            whole = self._place.mark_whole(self._folder)
            aside = self._place.set_aside()
            set_aside()
            self._place.put(whole)
            return Moved(aside, unsent)
        if there.is_dir():
            for name in _LOGS:
                # One that has outlived its database would be taken for the new one's.
                if (there / name).exists():
                    atomic.set_aside(there / name, "before-restore", _stamp())
            (self._folder / FILE_NAME).replace(there / FILE_NAME)
            atomic.sync_folder(there)
            shutil.rmtree(self._folder)
        else:
            self._place.put(self._folder)
        return Moved(None)

    def _copy_kept(self, there: Path) -> None:
        """Bring along what is no memory, durably; what an earlier try has copied goes first."""
        for name in _KEPT:
            source, copy = there / name, self._folder / name
            _remove(copy)
            if source.is_dir() and not source.is_symlink():
                shutil.copytree(source, copy, symlinks=True)
            elif source.is_file():
                shutil.copy2(source, copy, follow_symlinks=False)
        self._own(self._folder)
        for path in (self._folder, *self._folder.rglob("*")):
            if path.is_symlink():
                continue
            if path.is_dir():
                atomic.sync_folder(path)
            elif path.is_file():
                _sync(path)

    def _own(self, folder: Path) -> None:
        for path in (folder, *folder.rglob("*")):
            self._place.give(path)


class Run(msgspec.Struct):
    """Which agents a restore of several has verified, and what is to be said of each.

    It stands in a file of its own, so that a run after a kill neither restores them again nor
    takes them for what was there before.

    Attributes:
        url: the replica.
        reports: by the agents' ids.
        lived: whether a daemon has run since, so that the memories are what was restored no more.
    """

    url: str
    reports: dict[str, msgspec.Raw] = {}
    lived: bool = False

    @classmethod
    def of(cls, state_dir: Path, url: str, *, replace: bool) -> Run:
        """The run that was interrupted, if it is to be gone on with; else a new one.

        Args:
            state_dir: the folder of all agents.
            url: the replica.
            replace: set aside what is there: also what an earlier run has restored, once it
                has been used.
        """
        atomic.remove_unfinished(state_dir / "agents", _RUN_FILE)
        found = cls._found(state_dir)
        if found is None or found.url != url or (found.lived and replace):
            return cls(url)
        return found

    @classmethod
    def live(cls, state_dir: Path) -> None:
        """A daemon begins to run. Does nothing where no run was interrupted."""
        found = cls._found(state_dir)
        if found is not None and not found.lived:
            found.write(state_dir, lived=True)

    def note(self, state_dir: Path, agent: str, report: msgspec.Struct) -> None:
        """An agent's memory is whole and verified, and only has to be moved in."""
        self.reports[agent] = msgspec.Raw(msgspec.json.encode(report))
        self.write(state_dir, lived=self.lived)

    def end(self, state_dir: Path) -> None:
        """All is done."""
        atomic.remove(_run_file(state_dir))

    @classmethod
    def _found(cls, state_dir: Path) -> Run | None:
        try:
            return msgspec.json.decode(_run_file(state_dir).read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, state_dir: Path, *, lived: bool) -> None:
        """Note it, durably."""
        self.lived = lived
        atomic.write(_run_file(state_dir), msgspec.json.encode(self))


def _run_file(state_dir: Path) -> Path:
    return state_dir / "agents" / _RUN_FILE


def _unsent(path: Path) -> int:
    """How many rows of a database the replica has not heard of; 0 where that cannot be read."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM outbox").fetchone()[0])
    except sqlite3.Error:
        return 0


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _stamp() -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime())
