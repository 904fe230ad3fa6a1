"""What a fleet of devices asks of its databases: requests, rows, bytes, and the bill.

    python tests/benchmarks/fleet.py --devices 10000

100 devices (`--real`), two of each owner, replicate for some hours against a real server, with the
code and the intervals of the daemon; between two requests time passes at once. What the server
counted is multiplied by the size of the fleet, whose owners have nothing in common.
"""

import argparse
import asyncio
import random
import selectors
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "fixtures"))

import cloud
from memory_sides import MemoryLocal

from thermocline.sync import (
    Device,
    HybridClock,
    Remote,
    Replica,
    Replicator,
    Result,
    SqlStatement,
    Usage,
    Waiting,
    turso,
)

HOUR = 3600.0
DAY = 24 * HOUR
MONTH = 30 * DAY
START = 1_700_000_000.0
TEXT = "The ferry to the island leaves at nine, and the ticket costs as much as last year. " * 2
TIMING = SimpleNamespace(critical_seconds=1.0, change_seconds=30.0, poll_seconds=30.0)
# A daemon looks for new agents in its database as often.
SEARCH_SECONDS = 900.0
# Turso, beyond what a plan includes, in dollars a row.
READ_PRICE, WRITE_PRICE = 1e-9, 1e-6


class _Selector(selectors.DefaultSelector):
    """Time stands still while a request is on its way, and else passes at once.

    Attributes:
        now: the seconds that have passed.
        requests: how many are on their way.
    """

    now = 0.0
    requests = 0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or (self.requests and timeout > 0):
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self.now += max(0.0, timeout)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now


class _Counting:
    """A remote whose requests stop the time of the loop, and are counted."""

    def __init__(self, inner: Remote, selector: _Selector) -> None:
        self._inner = inner
        self._selector = selector
        self.close = inner.close
        self.requests = 0

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        self.requests += 1
        self._selector.requests += 1
        try:
            return await self._inner.batch(statements)
        finally:
            self._selector.requests -= 1


def drawn_changes(devices: int, seconds: float, a_day: float, seed: int = 4) -> list[list[float]]:
    """When each device changes a memory, in seconds since the begin."""
    chance, changes = random.Random(seed), []
    for _ in range(devices):
        times, now = [], chance.expovariate(a_day / DAY)
        while now < seconds:
            times.append(now)
            now += chance.expovariate(a_day / DAY)
        changes.append(times)
    return changes


def _row(number: int) -> dict[str, Any]:
    return {"text": f"{number} {TEXT}", "category": "travel", "created_at": START + number}


async def replicate(url: str, changes: list[list[float]], seconds: float) -> tuple[int, Usage]:
    """Let devices that know each other already replicate; their requests, and what they used."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _Loop)
    used: list[Usage] = []
    patient = turso.Limits(total=1e9, connect=1e9, read=1e9)
    connection = await turso.connect(url, limits=patient, count=used.append)
    remote = _Counting(connection, loop.selector)
    zero = loop.time()

    def now() -> float:
        return START + loop.time() - zero

    devices = []
    for number in range(len(changes)):
        name = f"{number:012x}"
        local = MemoryLocal(name, HybridClock(now))
        if number % 2 == 0:
            local.write("memory", "first", _row(0))
        replicator = Replicator(
            local,
            Replica(remote, f"owner{number // 2}"),
            Device(name, "a device", "0.1.0"),
            urgent=frozenset(),
            timing=TIMING,
            waiting=Waiting(),
            now=now,
            on_state=lambda _: None,
        )
        devices.append((local, replicator))
    for _, replicator in [*devices, *devices]:
        await replicator.sync()
    used.clear()
    remote.requests, begun = 0, loop.time()
    tasks = [asyncio.create_task(replicator.run()) for _, replicator in devices]
    tasks += [
        asyncio.create_task(_change(begun, *device, times))
        for device, times in zip(devices, changes, strict=True)
    ]
    await asyncio.sleep(seconds)
    requests, total = remote.requests, sum(used, start=Usage())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await remote.close()
    return requests, total


async def _change(
    begun: float, local: MemoryLocal, replicator: Replicator, times: list[float]
) -> None:
    for number, at in enumerate(times):
        await asyncio.sleep(begun + at - asyncio.get_running_loop().time())
        local.write("memory", f"{local.device}{number:04x}", _row(number))
        replicator.changed(urgent=False)


def main() -> int:
    """Measure, and print the figures of the fleet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--changes", type=float, default=50.0, help="of a device a day")
    parser.add_argument("--real", type=int, default=100)
    parser.add_argument("--hours", type=float, default=6.0)
    chosen = parser.parse_args()
    seconds, began = chosen.hours * HOUR, time.monotonic()
    changes = drawn_changes(chosen.real, seconds, chosen.changes)
    with (
        tempfile.TemporaryDirectory() as folder,
        cloud.server(Path(folder)) as server,
        asyncio.Runner(loop_factory=_Loop) as runner,
    ):
        requests, used = runner.run(replicate(server.url, changes, seconds))
    took = time.monotonic() - began
    print(f"{chosen.real} real devices, {chosen.hours:g} h in {took:.0f} s: {requests:,} requests")
    fleet = chosen.devices / chosen.real
    month = fleet * MONTH / seconds
    print(f"{chosen.devices:,} devices, two of each owner")
    print(f"  {requests * fleet / seconds:.1f} requests a second")
    for name in Usage.__struct_fields__:
        print(f"  {name} a month: {getattr(used, name) * month:.3g}")
    # The search reads a row for each agent of the database.
    alone = MONTH / SEARCH_SECONDS * chosen.devices
    owners = chosen.devices / 2
    shared = MONTH / max(SEARCH_SECONDS, owners) * chosen.devices * owners
    bill = (used.rows_read * READ_PRICE + used.rows_written * WRITE_PRICE) * month
    print(f"  bill a month: {bill + alone * READ_PRICE:,.2f} $")
    print(f"  in one shared database: {bill + shared * READ_PRICE:,.2f} $")
    return 0


if __name__ == "__main__":
    sys.exit(main())
