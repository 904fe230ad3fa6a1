"""Sending a queue of changes to a server that is 50 ms away, and what replication costs there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import cloud
from measuring import Row

_ROUND_TRIP_MS = 50.0
_QUEUED = 10_000
_BUDGET_SECONDS = 2.0
_POLLS_AN_HOUR = 120


def replicate(folder: Path) -> Iterator[Row]:
    """Seconds until 10,000 queued changes are sent, and the rows that a server counts."""
    with cloud.server(folder / "server") as remote:
        with cloud.network(remote.port, _ROUND_TRIP_MS) as distant:
            far = _drained(folder / "far", distant)
        near = _drained(folder / "near", remote.url)
    yield Row(
        what=f"{_QUEUED} queued changes, {_ROUND_TRIP_MS:.0f} ms round trip",
        unit="s",
        p50=far,
        beside=("without the delay", near),
        budget=_BUDGET_SECONDS,
    )
    with cloud.server(folder / "counting") as remote:
        for what, (read, written) in _counted(folder / "counted", remote).items():
            yield Row(what=f"rows read on the server: {what}", unit="rows", p50=float(read))
            yield Row(what=f"rows written on the server: {what}", unit="rows", p50=float(written))


def _drained(folder: Path, url: str) -> float:
    with cloud.replicating(folder, url) as daemon:
        wire = daemon.connect()
        wire.post("/api/sync", {})
        cloud.store(daemon, _QUEUED)
        began = time.monotonic()
        sent = wire.post("/api/sync", {})["sent"]
        seconds = time.monotonic() - began
        wire.close()
    if sent < _QUEUED:
        raise SystemExit(f"sent {sent} rows of {_QUEUED}")
    return seconds


def _counted(folder: Path, remote: cloud.Sqld) -> dict[str, tuple[int, int]]:
    """Rows read and written, by what was done."""
    found: dict[str, tuple[int, int]] = {}
    with cloud.replicating(folder, remote.url) as daemon:
        wire = daemon.connect()
        wire.post("/api/sync", {})
        before = remote.cost()
        for _ in range(_POLLS_AN_HOUR):
            wire.post("/api/sync", {})
        found["120 rounds with nothing new, each signed"] = _difference(before, remote.cost())
        cloud.store(daemon, 1000)
        before = remote.cost()
        wire.post("/api/sync", {})
        found["1000 new memories"] = _difference(before, remote.cost())
        wire.close()
    return found


def _difference(before: tuple[int, int], after: tuple[int, int]) -> tuple[int, int]:
    return after[0] - before[0], after[1] - before[1]
