"""What a rehearsal of a restore is given and finds, and what a memory notes of the last one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from ..store import link, noted
from ..store.transaction import Transaction

_KEY: Final = "rehearsal"


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """A memory was restored into a temporary folder and compared with the one in use.

    What the replica has not heard of yet, and what has not come from there yet, counts for
    neither.

    Attributes:
        verified: nothing is missing, different or too much, and all came as it was sent.
        rows: those that are the same.
        missing: the replica has them not.
        different: the replica has them otherwise.
        extra: the replica has them, and this memory does not.
        seconds: how long it took.
        at: when it was over, in seconds since the epoch.
        faults: what is wrong, a line each.
    """

    verified: bool
    rows: int
    missing: int
    different: int
    extra: int
    seconds: float
    at: float
    faults: tuple[str, ...] = ()


class Job(msgspec.Struct, frozen=True):
    """What to rehearse: one agent, from its replica, into a folder, and what to compare it with."""

    agent: str
    url: str
    token: str | None
    folder: str
    live: str
    device: str


class Fault(msgspec.Struct, frozen=True):
    """Why there was no rehearsal, in the terms of the tree of errors."""

    code: str
    message: str
    hint: str | None
    passes: bool


class Result(msgspec.Struct, frozen=True):
    """What came of it: one of both."""

    rehearsal: Rehearsal | None = None
    fault: Fault | None = None


class Due(msgspec.Struct, frozen=True):
    """What decides when the next one is due."""

    last: Rehearsal | None
    followed: bool


def last_rehearsal(db: sqlite3.Connection) -> Rehearsal | None:
    """The last rehearsal of the memory; None: there was none, or what is noted is unreadable."""
    return noted.read(db, _KEY, Rehearsal)


def note(tx: Transaction, rehearsal: Rehearsal) -> None:
    """Note a rehearsal in the place of the one before."""
    noted.write(tx, _KEY, rehearsal)


def due_of(path: Path) -> Due | None:
    """What is noted in the database of a memory, open or not; None: it cannot be read. Blocking."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            return Due(last_rehearsal(db), bool(link.load(db).epoch))
    except sqlite3.Error:
        return None
