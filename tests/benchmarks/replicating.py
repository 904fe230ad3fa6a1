"""Sending a queue of changes to a server that is 50 ms away, and what replication costs there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cloud import Clock, Device, Sqld, network, server
from corpus import Corpus
from measuring import Row

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store import memories
from thermocline.daemon.store.transaction import Rules, Transaction
from thermocline.sync import turso

_ROUND_TRIP_MS = 50.0
_QUEUED = 10_000
_BUDGET_SECONDS = 15.0
_POLLS_AN_HOUR = 120
_LOOKS_AN_HOUR = 12
_AT_ONCE = 500


def replicate(folder: Path) -> Iterator[Row]:
    """Seconds until 10,000 queued changes are sent, and the rows that a server counts."""
    with server(folder / "server") as remote, ThreadPoolExecutor(4) as threads:
        far, near = asyncio.run(_drained(folder, remote.url, remote.port, threads))
        yield Row(
            what=f"{_QUEUED} queued changes, {_ROUND_TRIP_MS:.0f} ms round trip",
            unit="s",
            p50=far,
            beside=("without the delay", near),
            budget=_BUDGET_SECONDS,
        )
    with server(folder / "counting") as remote, ThreadPoolExecutor(4) as threads:
        yield from _costs(asyncio.run(_counted(folder, remote, threads)))


async def _drained(
    folder: Path, url: str, port: int, threads: ThreadPoolExecutor
) -> tuple[float, float]:
    """Through the delay, and without it, each from a device of its own."""
    with network(port, _ROUND_TRIP_MS) as distant:
        far = await _drain(folder / "far", distant, threads)
    return far, await _drain(folder / "near", url, threads)


async def _drain(folder: Path, url: str, threads: ThreadPoolExecutor) -> float:
    device = await _device(folder, url, threads)
    await device.sync()
    await _store(device, _QUEUED)
    began = time.monotonic()
    tally = await device.sync()
    seconds = time.monotonic() - began
    if tally.sent < _QUEUED or (await device.contents()).queued:
        raise SystemExit(f"sent {tally.sent} rows of {_QUEUED}")
    await device.stop()
    await device.remote.close()
    return seconds


async def _device(folder: Path, url: str, threads: ThreadPoolExecutor) -> Device:
    clock = Clock(time.time())
    remote = await turso.connect(url)
    return Device(folder, folder.name, remote, now=clock, threads=threads, rules=Rules())


async def _store(device: Device, number: int, start: int = 0) -> None:
    made = [
        Memory(**body, id=f"{device.name}{start + n:012d}", updated_at=body["created_at"])
        for n, body in enumerate(
            fields | {"tags": tuple(fields.get("tags", ()))}
            for fields in Corpus().memories(number, device.now())
        )
    ]
    for begin in range(0, number, _AT_ONCE):
        await device.write(lambda tx, part=made[begin : begin + _AT_ONCE]: _insert(tx, part))


def _insert(tx: Transaction, part: list[Memory]) -> None:
    for memory in part:
        memories.insert(tx, memory)


async def _counted(
    folder: Path, remote: Sqld, threads: ThreadPoolExecutor
) -> dict[str, tuple[int, int]]:
    """Rows read and written, by what was done."""
    device = await _device(folder / "counted", remote.url, threads)
    await device.sync()
    found: dict[str, tuple[int, int]] = {}
    before = remote.cost()
    for poll in range(_POLLS_AN_HOUR):
        # As the replicator does it: now and then it looks at what other tools do, and signs.
        look = poll % (_POLLS_AN_HOUR // _LOOKS_AN_HOUR) == 0
        await device.round.run(urgent_only=False, look=look, sign=poll == 0)
    found["an idle hour"] = _difference(before, remote.cost())
    await _store(device, 1000)
    before = remote.cost()
    await device.sync()
    found["1000 new memories"] = _difference(before, remote.cost())
    await device.stop()
    await device.remote.close()
    return found


def _difference(before: tuple[int, int], after: tuple[int, int]) -> tuple[int, int]:
    return after[0] - before[0], after[1] - before[1]


def _costs(found: dict[str, tuple[int, int]]) -> Iterator[Row]:
    for what, (read, written) in found.items():
        yield Row(what=f"rows read on the server: {what}", unit="rows", p50=float(read))
        yield Row(what=f"rows written on the server: {what}", unit="rows", p50=float(written))
