"""Sending a queue of changes to a server that is 50 ms away, what replication costs there, and what
it costs more if the replica is sealed."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cloud
from measuring import Row
from running import Running

_ROUND_TRIP_MS = 50.0
_QUEUED = 10_000
_BUDGET_SECONDS = 1.0
_BUDGET_WRITTEN = 2500
_POLLS_AN_HOUR = 120
_PAIRS = 3
_NEW = "1000 new memories"


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
            limit = float(_BUDGET_WRITTEN) if what == _NEW else None
            yield Row(
                what=f"rows written on the server: {what}",
                unit="rows",
                p50=float(written),
                budget=limit,
            )
    yield from _sealed_beside_plain(folder / "pairs")


class Exchanged(NamedTuple):
    """One device sends 10,000 memories and another receives them, without a delay."""

    push_seconds: float
    push_bytes: float
    push_mb: float
    pull_seconds: float
    pull_bytes: float
    pull_mb: float
    stored_bytes: float


def _sealed_beside_plain(folder: Path) -> Iterator[Row]:
    """Medians of pairs, one after the other, so that both have the same machine."""
    pairs = [
        [_exchanged(folder / f"{number} {sealed}", sealed=sealed) for sealed in (False, True)]
        for number in range(_PAIRS)
    ]
    plain, sealed = (
        Exchanged(*map(statistics.median, zip(*runs, strict=True)))
        for runs in zip(*pairs, strict=True)
    )
    for name in Exchanged._fields:
        what, unit = name.rsplit("_", 1)
        ratio = {"seconds": 1.1, "bytes": 1.6}.get(unit)
        beside = getattr(plain, name)
        yield Row(
            what=f"{_QUEUED} memories sealed: {what}",
            unit={"seconds": "s", "mb": "MB"}.get(unit, unit),
            p50=getattr(sealed, name),
            beside=("plain", beside),
            budget=None if ratio is None else ratio * beside,
        )


def _exchanged(folder: Path, *, sealed: bool) -> Exchanged:
    with cloud.server(folder / "server") as remote:
        with cloud.replicating(folder / "sends", remote.url, sealed=sealed) as daemon:
            _synced(daemon)
            cloud.store(daemon, _QUEUED)
            push = _rounds(daemon, "sent")
        with cloud.replicating(folder / "receives", remote.url, sealed=sealed) as daemon:
            pull = _rounds(daemon, "received")
        sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        [[stored]] = remote.query(sql)
    return Exchanged(*push, *pull, stored)


def _rounds(daemon: Running, count: str) -> tuple[float, float, float]:
    """The seconds of all rounds that sent or received, all bytes, and the resident megabytes."""
    _synced(daemon)
    wire = daemon.connect()
    status = wire.get("/api/sync")
    wire.close()
    rounds = [each for each in status["rounds"] if each[count]]
    rows = sum(each[count] for each in rounds)
    if rows < _QUEUED:
        raise SystemExit(f"{count} {rows} rows of {_QUEUED}")
    used = status["usage"]["month"]
    seconds = sum(each["ms"] for each in rounds) / 1000
    return seconds, used["bytes_sent"] + used["bytes_received"], daemon.resident_mb()


def _synced(daemon: Running) -> None:
    wire = daemon.connect()
    wire.post("/api/sync", {})
    wire.close()


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
        found[_NEW] = _difference(before, remote.cost())
        wire.close()
    return found


def _difference(before: tuple[int, int], after: tuple[int, int]) -> tuple[int, int]:
    return after[0] - before[0], after[1] - before[1]
