"""Times, their percentiles, and the rows of the table."""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from running import environment


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table.

    Attributes:
        p50, p99: what was measured, in `unit`; p99 only where there are many samples.
        beside: what was measured beside it in the same run, as (name, value).
        budget, budget_p99: the bounds; None where there is none.
        at_least: whether the bound is a lower one.
    """

    what: str
    unit: str
    p50: float
    p99: float | None = None
    beside: tuple[str, float] | None = None
    budget: float | None = None
    budget_p99: float | None = None
    at_least: bool = False

    def of(self, size: int) -> Row:
        """The same, of a memory of so many memories."""
        return replace(self, what=f"{size:,}: {self.what}")

    @property
    def ratio(self) -> float | None:
        """Measured to what was measured beside it."""
        return self.p50 / self.beside[1] if self.beside and self.beside[1] else None

    @property
    def verdict(self) -> str:
        """`ok`, `over`, or nothing where there is no budget."""
        bounds = [(self.p50, self.budget), (self.p99, self.budget_p99)]
        given = [(value, bound) for value, bound in bounds if None not in (value, bound)]
        if not given:
            return ""
        if self.at_least:
            return "ok" if all(value >= bound for value, bound in given) else "over"
        return "ok" if all(value <= bound for value, bound in given) else "over"


def milliseconds(calls: Iterable[Callable[[], object]]) -> list[float]:
    """How long each call takes, sorted."""
    times = []
    for call in calls:
        begun = time.perf_counter()
        call()
        times.append((time.perf_counter() - begun) * 1000)
    return sorted(times)


def percentile(ordered: list[float], share: float) -> float:
    """The value below which `share` of `ordered` lie."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def timed(what: str, times: list[float], **more: object) -> Row:
    """A row of the median and the 99th percentile of sorted milliseconds."""
    p99 = percentile(times, 0.99) if len(times) >= 100 else None
    return Row(what=what, unit="ms", p50=statistics.median(times), p99=p99, **more)  # type: ignore[arg-type]


def bare_commits(folder: Path, size: int, number: int) -> list[float]:
    """Milliseconds of SQLite alone: one row of `size` bytes in each durable commit."""
    path = folder / "bare.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
    text = "x" * size
    insert = "INSERT INTO rows (text) VALUES (?)"
    times = milliseconds(lambda: db.execute(insert, (text,)) for _ in range(number))
    db.close()
    path.unlink()
    return times


def bare_python(number: int) -> list[float]:
    """Milliseconds of an interpreter that does nothing."""
    return milliseconds(lambda: run([sys.executable, "-c", "pass"]) for _ in range(number))


def run(command: list[str], given: str = "") -> None:
    """Run to the end, without output; `given` is its input.

    Raises:
        CalledProcessError: it failed.
    """
    subprocess.run(
        command, check=True, env=environment(), input=given.encode(), stdout=subprocess.DEVNULL
    )
