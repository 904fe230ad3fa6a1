"""What an agent's memory notes of its upkeep: what was done when, and what was broken off."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import msgspec

from ..store import noted
from ..store.transaction import Transaction
from .steps import Step

_KEY: Final = "upkeep"


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a job went last; `at` is when it began, `error` why it did not get to its end."""

    at: float
    seconds: float = 0.0
    error: str = ""


class Progress(msgspec.Struct, frozen=True):
    """A run that is under way, or was broken off.

    Attributes:
        mode: its name.
        jobs: what is done once it is through.
        steps, done: what it consists of, and what of it is done.
        facts: what the steps that are done found and did.
    """

    mode: str
    started: float
    jobs: tuple[str, ...]
    steps: tuple[Step, ...]
    done: tuple[Step, ...] = ()
    facts: dict[str, Any] = {}

    @property
    def left(self) -> tuple[Step, ...]:
        """The steps that are still to be done."""
        return tuple(step for step in self.steps if step not in self.done)


class Ledger(msgspec.Struct, frozen=True):
    """All of it.

    Attributes:
        done: by job, up to when nothing of it is due any more.
        runs: by job, how it went last.
        progress: of the run that is not through.
        ingested: when the notes were last read.
    """

    done: dict[str, float] = {}
    runs: dict[str, Run] = {}
    progress: Progress | None = None
    ingested: float | None = None


def load(db: sqlite3.Connection) -> Ledger:
    """What is noted; nothing, where that cannot be read: then all begins anew."""
    return noted.read(db, _KEY, Ledger) or Ledger()


def save(tx: Transaction, ledger: Ledger) -> None:
    """Note it."""
    noted.write(tx, _KEY, ledger)


def change(tx: Transaction, **fields: Any) -> None:
    """Note some of it anew."""
    save(tx, msgspec.structs.replace(load(tx.db), **fields))


def step_done(tx: Transaction, step: Step, facts: dict[str, Any]) -> None:
    """Note that a step of the run under way is done, and what came of it."""
    progress = load(tx.db).progress
    if progress is None or step in progress.done:
        return
    done, known = (*progress.done, step), progress.facts | facts
    change(tx, progress=msgspec.structs.replace(progress, done=done, facts=known))


def run_done(tx: Transaction, jobs: tuple[str, ...], run: Run) -> None:
    """Note that a run is through, or failed: one that failed is due as before."""
    ledger = load(tx.db)
    runs = ledger.runs | dict.fromkeys(jobs, run)
    if run.error:
        save(tx, msgspec.structs.replace(ledger, runs=runs))
        return
    done = ledger.done | dict.fromkeys(jobs, tx.now)
    save(tx, msgspec.structs.replace(ledger, done=done, runs=runs, progress=None))
