"""What a fleet of devices asks of its databases: requests, rows, bytes, and the bill.

    python tests/benchmarks/fleet.py --devices 10000

100 devices (`--real`) replicate against a real server, with the code and the intervals of the
daemon; between two requests time passes at once. A simulation of the same devices, from the costs
of single requests, is compared with what the server counted; then it tells of the whole fleet: a
day, an hour without the server, and a release that restarts every device within an hour.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import random
import selectors
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "fixtures"))

import cloud
from memory_sides import MemoryLocal

from thermocline.sync import (
    Cursor,
    Device,
    HybridClock,
    Remote,
    Replica,
    Replicator,
    Result,
    SqlStatement,
    TryLater,
    Usage,
    Waiting,
    poll_interval,
    turso,
)

HOUR = 3600.0
DAY = 24 * HOUR
START = 1_700_000_000.0
TEXT = "The ferry to the island leaves at nine, and the ticket costs as much as last year. " * 2
TIMING = SimpleNamespace(critical_seconds=1.0, change_seconds=30.0, poll_seconds=30.0)
# As the replicator has it.
SIGN_SECONDS = 3600.0
# Turso, beyond what a plan includes, in dollars a row.
READ_PRICE, WRITE_PRICE = 1e-9, 1e-6
MONTH_DAYS = 30


class Costs(NamedTuple):
    """The use of single requests; `push` and `page` of one row, `_more` of each further row."""

    poll: Usage
    sign: Usage
    push: Usage
    push_more: Usage
    page: Usage
    page_more: Usage


class Plan(NamedTuple):
    """The changes of each device, in seconds since the begin; two devices share an owner."""

    seconds: float
    changes: list[list[float]]

    @classmethod
    def drawn(cls, devices: int, seconds: float, a_day: float, seed: int = 4) -> Plan:
        chance, changes = random.Random(seed), []
        for _ in range(devices):
            times, now = [], chance.expovariate(a_day / DAY)
            while now < seconds:
                times.append(now)
                now += chance.expovariate(a_day / DAY)
            changes.append(times)
        return cls(seconds, changes)


# Real devices


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
    """A remote whose requests stop the time of the loop."""

    def __init__(self, inner: Remote, selector: _Selector) -> None:
        self._inner = inner
        self._selector = selector
        self.close = inner.close

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        self._selector.requests += 1
        try:
            return await self._inner.batch(statements)
        finally:
            self._selector.requests -= 1


def _row(number: int) -> dict[str, Any]:
    return {"text": f"{number} {TEXT}", "category": "travel", "created_at": START + number}


async def measure(url: str) -> Costs:
    """The costs of single requests, on a database with two devices."""
    used: list[Usage] = []
    remote = await turso.connect(url, count=used.append)
    replica = Replica(remote, "owner10")
    await replica.prepare(START)
    device = Device("d" * 12, "a device", "0.1.0")
    local = MemoryLocal("d" * 12, HybridClock(lambda: START))

    async def cost(request: Any) -> Usage:
        used.clear()
        await request
        return sum(used, start=Usage())

    async def pushed(number: int) -> Usage:
        for _ in range(number):
            local.write("memory", f"{len(local.rows):016x}", _row(len(local.rows)))
        rows = await local.pending(None, number, 1 << 20)
        link = await local.link()
        used.clear()
        end = (await replica.push(rows, device, link.seq, START)).poll
        await local.taken(rows, Cursor(end.epoch, end.seq))
        return sum(used, start=Usage())

    await pushed(1)
    await replica.sign(Device("e" * 12, "another", "0.1.0"), 0, START)
    one, eleven = await pushed(1), await pushed(11)
    poll = await cost(replica.poll())
    page, longer = await cost(replica.page(0, 1)), await cost(replica.page(0, 11))
    sign = await cost(replica.sign(device, 1, START))
    await remote.close()
    return Costs(poll, sign, one, _per_row(one, eleven), page, _per_row(page, longer))


def _per_row(one: Usage, eleven: Usage) -> Usage:
    names = Usage.__struct_fields__
    return Usage(*(round((getattr(eleven, n) - getattr(one, n)) / 10) for n in names))


class Begun(NamedTuple):
    """When each device was seen last before the begin, and its first poll."""

    signed: list[float]
    polls: list[float]


async def replicate(url: str, plan: Plan) -> tuple[Usage, Begun]:
    """Let real devices replicate; what they used, and how they began."""
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
    for number in range(len(plan.changes)):
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
    seen = []
    for _, replicator in [*devices, *devices]:
        await replicator.sync()
        seen.append(loop.time())
    used.clear()
    begun = loop.time()
    polls = [(one.state.next_poll or START) - START + zero - begun for _, one in devices]
    tasks = [asyncio.create_task(replicator.run()) for _, replicator in devices]
    tasks += [
        asyncio.create_task(_change(begun, *device, times))
        for device, times in zip(devices, plan.changes, strict=True)
    ]
    await asyncio.sleep(plan.seconds)
    total = sum(used, start=Usage())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await remote.close()
    return total, Begun([at - begun for at in seen[len(devices) :]], polls)


async def _change(
    begun: float, local: MemoryLocal, replicator: Replicator, times: list[float]
) -> None:
    for number, at in enumerate(times):
        await asyncio.sleep(begun + at - asyncio.get_running_loop().time())
        local.write("memory", f"{local.device}{number:04x}", _row(number))
        replicator.changed(urgent=False)


# Simulated devices


class Simulated:
    """A device: what its replicator knows, in seconds since the begin."""

    __slots__ = ("active", "change", "failures", "link", "number", "pending", "poll", "signed")

    def __init__(self, number: int, poll: float, signed: float, active: float) -> None:
        self.number = number
        self.poll, self.signed, self.active = poll, signed, active
        self.change = float("inf")
        self.pending = self.link = self.failures = 0


class Fleet:
    """The requests of simulated devices, by the rules of the replicator.

    Attributes:
        requests: how many there were, by kind; `push_more` and `page_more` count further rows.
        minutes: requests of each minute.
    """

    def __init__(self, plan: Plan, seed: int = 4) -> None:
        self._plan = plan
        self._chance = random.Random(seed)
        self._waiting = Waiting()
        self.requests: Counter[str] = Counter()
        self.minutes: Counter[int] = Counter()

    def run(
        self,
        *,
        signed: list[float] | None = None,
        starts: list[float] | None = None,
        outage: tuple[float, float] = (-1.0, -1.0),
    ) -> Fleet:
        """Simulate.

        Args:
            signed: when each device was seen last, if all run from the begin on.
            starts: the moments of the first polls, by default the begin.
        """
        plan = self._plan
        first = starts or [0.0] * len(plan.changes)
        devices = [
            Simulated(
                number,
                first[number],
                signed[number] if signed else -self._chance.uniform(0.0, SIGN_SECONDS),
                0.0 if signed else first[number],
            )
            for number in range(len(plan.changes))
        ]
        heads = [0] * len(devices)
        due = [(device.poll, device.number, False) for device in devices]
        due += [(at, n, True) for n, times in enumerate(plan.changes) for at in times]
        heapq.heapify(due)
        while due and due[0][0] < plan.seconds:
            at, number, is_change = heapq.heappop(due)
            device = devices[number]
            if is_change:
                device.pending += 1
                device.active = at
                if device.change == float("inf") and not device.failures:
                    device.change = at + TIMING.change_seconds
                    heapq.heappush(due, (device.change, number, False))
            elif at >= device.poll or (at >= device.change and not device.failures):
                self._round(device, at, heads, outage)
                heapq.heappush(due, (device.poll, number, False))
        return self

    def _round(
        self, device: Simulated, at: float, heads: list[int], outage: tuple[float, float]
    ) -> None:
        interval = poll_interval(TIMING.poll_seconds, at - device.active)
        device.change = float("inf")
        self._ask("poll", at)
        if outage[0] <= at < outage[1]:
            device.failures += 1
            error = TryLater("offline")
            device.poll = at + self._waiting.seconds(error, device.failures, self._chance)
            return
        owner = device.number // 2
        sign = at - device.signed > SIGN_SECONDS
        received, sent = heads[owner] - device.link, device.pending
        if received or sign:
            self._ask("sign", at)
            device.signed = at
        if received:
            self._ask("page", at)
            self.requests["page_more"] += received - 1
        if sent:
            self._ask("push", at)
            self.requests["push_more"] += sent - 1
            heads[owner] += sent
            device.pending = 0
        device.link = heads[owner]
        if sent or received:
            device.active, interval = at, TIMING.poll_seconds
        share = self._chance.uniform(0.5, 1.0) if device.failures else 1.0
        device.failures = 0
        device.poll = at + share * interval

    def _ask(self, kind: str, at: float) -> None:
        self.requests[kind] += 1
        self.minutes[int(at // 60)] += 1

    def used(self, costs: Costs) -> Usage:
        """Rows and bytes of all requests."""
        names = Usage.__struct_fields__
        return Usage(
            *(
                sum(
                    self.requests[kind] * getattr(cost, n) for kind, cost in costs._asdict().items()
                )
                for n in names
            )
        )

    @property
    def total(self) -> int:
        """The number of requests."""
        return sum(self.minutes.values())


# What is printed


def _line(what: str, *cells: object) -> None:
    print(f"{what:<34}", *(f"{cell:>16}" for cell in cells))


def calibrate(costs: Costs, plan: Plan, url: str) -> None:
    """Compare the simulation with real devices."""
    begun = time.monotonic()
    with asyncio.Runner(loop_factory=_Loop) as runner:
        counted, before = runner.run(replicate(url, plan))
    fleet = Fleet(plan).run(signed=before.signed, starts=before.polls)
    predicted = fleet.used(costs)
    print(
        f"{len(plan.changes)} real devices, {plan.seconds / HOUR:.0f} h"
        f" in {time.monotonic() - begun:.0f} s"
    )
    _line("", "counted", "predicted", "difference")
    for name in Usage.__struct_fields__:
        real, model = getattr(counted, name), getattr(predicted, name)
        _line(name, f"{real:,}", f"{model:,}", f"{model / real - 1:+.2%}")
    bills = [_bill(usage) for usage in (counted, predicted)]
    _line("bill", *(f"{bill:.6f} $" for bill in bills), f"{bills[1] / bills[0] - 1:+.2%}")


def _bill(used: Usage) -> float:
    return used.rows_read * READ_PRICE + used.rows_written * WRITE_PRICE


def print_figures(costs: Costs, plan: Plan) -> None:
    """The figures of a whole fleet."""
    number = len(plan.changes)
    chance = random.Random(5)
    spread = [chance.uniform(0.0, 900.0) for _ in plan.changes]
    usual = Fleet(plan).run(starts=spread)
    used = usual.used(costs)
    days = plan.seconds / DAY
    month = MONTH_DAYS / days
    print(f"\n{number:,} devices, two of each owner, {plan.seconds / HOUR:.0f} h")
    _line("requests a second, mean", f"{usual.total / plan.seconds:.1f}")
    _line("requests a second, busiest minute", f"{max(usual.minutes.values()) / 60:.1f}")
    for name in Usage.__struct_fields__:
        _line(f"{name} a month", f"{getattr(used, name) * month:.3g}")
    # In a daemon the search for new agents reads a row for each agent of the database.
    searches = MONTH_DAYS * DAY / 900 * number
    shared = MONTH_DAYS * DAY / max(900, number / 2) * number * number / 2
    bill = _bill(used) * month
    _line("searches for agents, rows a month", f"{searches:.3g}", f"(shared: {shared:.3g})")
    _line("bill a month", f"{bill + searches * READ_PRICE:,.2f} $")
    _line("  in one shared database", f"{bill + shared * READ_PRICE:,.2f} $")
    hours = Plan(4 * HOUR, plan.changes)
    after = Fleet(hours).run(starts=spread, outage=(2 * HOUR, 3 * HOUR))
    _outage(after, usual, 180)
    rollout = [chance.uniform(0.0, HOUR) for _ in plan.changes]
    restarted = Fleet(Plan(HOUR, plan.changes)).run(starts=rollout)
    first = [restarted.minutes[minute] / 60 for minute in range(60)]
    _line("a release within an hour, busiest", f"{max(first):.1f} a second")


def _outage(fleet: Fleet, usual: Fleet, end: int) -> None:
    rates = [fleet.minutes[minute] / 60 for minute in range(end, end + 60)]
    normal = [usual.minutes[minute] / 60 for minute in range(end, end + 60)]
    settled = next(
        (n for n in range(60) if max(rates[n:]) <= 1.25 * max(normal)),
        60,
    )
    _line("during an outage of an hour", f"{fleet.minutes[end - 10] / 60:.1f} a second")
    _line("after it, busiest minute", f"{max(rates):.1f} a second")
    _line("as before after", f"{settled} min")


def _show(costs: Costs) -> None:
    _line("a request", *Usage.__struct_fields__)
    for kind, cost in costs._asdict().items():
        _line(kind, *(getattr(cost, name) for name in Usage.__struct_fields__))


def main() -> int:
    """Measure, compare and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--hours", type=float, default=24.0, help="4 or more")
    parser.add_argument("--changes", type=float, default=50.0, help="of a device a day")
    parser.add_argument("--real", type=int, default=100)
    parser.add_argument("--real-hours", type=float, default=2.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, cloud.server(Path(folder)) as server:
        costs = asyncio.run(measure(server.url))
        _show(costs)
        print()
        real = Plan.drawn(chosen.real, chosen.real_hours * HOUR, chosen.changes)
        calibrate(costs, real, server.url)
    print_figures(costs, Plan.drawn(chosen.devices, chosen.hours * HOUR, chosen.changes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
