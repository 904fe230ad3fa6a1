"""Upkeep by the schedules: on devices that sleep, and with clocks that jump."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from thermocline.daemon.errors import DiskFull, NotFound, ThermoclineError
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.problems import Problems
from thermocline.daemon.store import memories
from thermocline.daemon.store.agents import Agents, Keeping
from thermocline.daemon.store.engine import Surroundings
from thermocline.daemon.store.transaction import Event, Rules
from thermocline.daemon.upkeep import ledger
from thermocline.daemon.upkeep.keeper import Clock, Upkeep
from thermocline.daemon.upkeep.plan import Plan, jobs_of

BERLIN = ZoneInfo("Europe/Berlin")
# 21 November 2026, noon in Berlin.
NOON = 1_795_258_800.0
CRONS = {"quick": "0 */3 * * *", "daily": "0 0 * * *", "monthly": "0 0 1 * *", "merging": None}


class World:
    """A device and its clocks, which pass only while somebody sleeps.

    Attributes:
        ran: the runs that began, as (agent, mode, hours since the beginning).
        rounds: how often the schedules were looked at.
        most_open: of so many agents the one that was used last stays open.
    """

    def __init__(self, folder: Path, threads: ThreadPoolExecutor) -> None:
        self.folder = folder
        self.now = self.begun = NOON
        self.uptime = 1000.0
        self.ran: list[tuple[str, str, float]] = []
        self.told: list[tuple[str, Event]] = []
        self.started, self.finished = asyncio.Event(), asyncio.Event()
        self.rounds = 0
        self.most_open = 99
        self.until = 0.0
        self.problems = Problems()
        self.plan = plan_of(CRONS)
        self._threads = threads
        self.start()

    def start(self) -> None:
        """The daemon begins, as after a restart."""
        around = Surroundings(
            threads=self._threads,
            problems=self.problems,
            now=lambda: self.now,
            publish=self.publish,
            outgoing=lambda _agent, _kinds: None,
            rules=Rules,
            readers=1,
            face_delay_seconds=lambda: 0.01,
        )
        self.agents = Agents(
            self.folder,
            workspaces={},
            device="device",
            cache_kb=512,
            around=around,
            keeping=lambda: Keeping(1e9, self.most_open, 1e9, 1e9),
        )
        self.upkeep = Upkeep(
            self.agents,
            plan=lambda: self.plan,
            followed=lambda _agent: True,
            publish=self.publish,
            problems=self.problems,
            device="device",
            clock=Clock(BERLIN, lambda: self.now, lambda: self.uptime, self.sleep),
        )

    def publish(self, agent: str, event: Event) -> None:
        if event.type == "upkeep.started":
            self.ran.append((agent, event.data["mode"], round((self.now - self.begun) / 3600, 2)))
            self.started.set()
        if event.type == "upkeep.finished":
            self.finished.set()
        if event.type.startswith("upkeep."):
            self.told.append((agent, event))

    async def sleep(self, seconds: float) -> None:
        self.rounds += 1
        if self.now >= self.until:
            raise asyncio.CancelledError
        self.now += seconds
        self.uptime += seconds

    async def live(self, hours: float) -> list[tuple[str, str, float]]:
        """Let hours pass; what ran meanwhile."""
        self.until = self.now + hours * 3600
        known = len(self.ran)
        with pytest.raises(asyncio.CancelledError):
            await self.upkeep.run()
        return self.ran[known:]

    async def restart(self, off_hours: float = 0.0) -> None:
        """Stop the daemon, and start it again later."""
        await self.agents.close()
        self.now += off_hours * 3600
        self.uptime += off_hours * 3600
        self.start()

    async def use(self, agent: str) -> None:
        async with self.agents.use(agent, create=False):
            pass

    async def store(self, agent: str, number: int = 1, **fields: Any) -> None:
        async with self.agents.use(agent, create=True) as store:
            for n in range(number):
                await store.write(
                    lambda tx, n=n: memories.insert(tx, memory(f"{agent}{n}", tx.now, **fields))
                )


def memory(key: str, now: float, **fields: Any) -> memories.Memory:
    given = {"text": f"text of {key}", "created_at": now, "updated_at": now, "writer": "test"}
    return memories.Memory(**({"id": key} | given | fields))


def plan_of(crons: dict[str, str | None], jitter: float = 0.0) -> Plan:
    return Plan(
        jobs=jobs_of(crons),
        jitter_seconds=jitter,
        retention_years=10,
        categories={},
        note_days=2,
        max_note_bytes=1_000_000,
    )


@pytest.fixture
async def world(tmp_path: Path, threads: ThreadPoolExecutor) -> AsyncIterator[World]:
    made = World(tmp_path, threads)
    yield made
    await made.upkeep.close()
    await made.agents.close()


def number_of(kind: type) -> int:
    return sum(isinstance(one, kind) for one in gc.get_objects())


def modes(ran: list[tuple[str, str, float]]) -> list[tuple[str, float]]:
    return [(mode, hours) for _, mode, hours in ran]


async def test_every_agent_that_there_is_has_its_upkeep_and_no_other(world: World) -> None:
    await world.store("ana")
    await world.store("ben")
    await world.restart()
    # It is 12 in Berlin; both are closed.
    ran = await world.live(13)
    assert [run for run in ran if run[0] == "ana"] == [
        ("ana", "quick", 3.0),
        ("ana", "quick", 6.0),
        ("ana", "quick", 9.0),
        ("ana", "daily", 12.0),
    ]
    assert {agent for agent, _, _ in ran} == {"ana", "ben"}
    assert not (world.folder / "agents" / "default").exists()


async def test_a_closed_agent_that_nobody_uses_is_spared_the_small_runs(world: World) -> None:
    def of(agent: str, ran: list[tuple[str, str, float]]) -> list[tuple[str, float]]:
        return modes([run for run in ran if run[0] == agent])

    world.most_open = 1
    await world.store("ana")
    await world.store("ben")
    ran = await world.live(13)
    # Nobody can tell what was done to them before the start, so the first is for both.
    assert of("ana", ran) == [("quick", 3.0), ("daily", 12.0)]
    # It costs nothing to look at the one that stays open.
    assert of("ben", ran) == [("quick", 3.0), ("quick", 6.0), ("quick", 9.0), ("daily", 12.0)]
    # Ana is used, and closed before its time comes.
    await world.use("ana")
    await world.use("ben")
    assert of("ana", await world.live(4)) == [("quick", 15.0)]
    # Whoever is used when the time has passed has its run soon.
    await world.use("ben")
    assert of("ben", await world.live(2)) == [("quick", 18.0)]
    await world.use("ana")
    [(mode, hours)] = of("ana", await world.live(0.5))
    assert mode == "quick"
    assert 19.0 <= hours <= 19.2


async def test_a_closed_agent_is_looked_at_once_a_day_whatever_is_planned(world: World) -> None:
    world.plan = plan_of({"quick": "0 */3 * * *"})
    world.most_open = 1
    await world.store("ana")
    await world.store("ben")
    ran = await world.live(30)
    # The one that is open, and twice the other.
    assert len(ran) <= 10 + 2
    for agent in ("ana", "ben"):
        hours = [at for name, _, at in ran if name == agent]
        assert all(after - before <= 24 for before, after in pairwise([0.0, *hours, 30.0]))


async def test_a_note_that_is_not_read_stands_in_status_until_it_is(world: World) -> None:
    await world.store("ana")
    note = world.folder / "agents" / "ana" / "memory" / "2026-11-21.md"
    note.parent.mkdir()
    note.write_bytes(b"\xff\xfe\x00")
    await world.live(12.5)
    (problem,) = world.problems.standing()
    assert (problem.code, problem.lasting) == ("notes_unread", False)
    assert "'ana': did not read 2026-11-21.md: it is no UTF-8 text" in problem.message
    note.write_bytes(b"- [x] wrote the weekly letter\n")
    assert (await world.upkeep.ingest("ana")).facts_stored == 1
    assert world.problems.standing() == []


async def test_a_month_begins_with_the_largest_run_and_no_smaller_one_beside_it(
    world: World,
) -> None:
    await world.store("ana")
    world.now = world.begun = NOON + 9 * DAY
    await world.live(1)
    assert modes(await world.live(14)) == [
        ("quick", 3.0), ("quick", 6.0), ("quick", 9.0), ("monthly", 12.0), ("quick", 15.0),
    ]  # fmt: skip


async def test_what_was_missed_for_weeks_is_done_once(world: World) -> None:
    await world.store("ana")
    await world.live(1)
    await world.restart(off_hours=24 * 40)
    assert modes(await world.live(1.5)) == [("monthly", 961.0)]


async def test_what_was_done_is_remembered_across_restarts(world: World) -> None:
    await world.store("ana")
    assert len(await world.live(3.5)) == 1
    for _ in range(3):
        await world.restart()
        assert await world.live(0.5) == []
    assert len(await world.live(1.5)) == 1


async def test_an_agent_that_comes_later_waits_for_its_first_time(world: World) -> None:
    await world.live(2)
    await world.store("late")
    assert modes(await world.live(2)) == [("quick", 3.0)]


async def test_a_removed_agent_is_left_alone(world: World) -> None:
    await world.store("ana")
    await world.live(1)
    await world.agents.close()
    for path in sorted((world.folder / "agents" / "ana").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (world.folder / "agents" / "ana").rmdir()
    world.start()
    assert await world.live(5) == []
    assert not (world.folder / "agents" / "ana").exists()


async def test_beginnings_are_spread(world: World) -> None:
    world.plan = plan_of(CRONS, jitter=3000.0)
    for number in range(6):
        await world.store(f"agent{number}")
    ran = await world.live(4.5)
    assert len(ran) == 6
    times = [hours for _, _, hours in ran]
    assert all(3.0 <= hours <= 3.9 for hours in times)
    assert len(set(times)) == 6


async def test_a_clock_that_jumps_makes_no_busy_loop_and_starves_nobody(world: World) -> None:
    await world.store("ana")
    await world.live(1)
    world.now += 400 * DAY
    assert modes(await world.live(1)) == [("monthly", 9601.0)]
    world.now -= 400 * DAY
    assert modes(await world.live(2)) == [("quick", 3.0)]
    rounds = world.rounds
    for _ in range(20):
        world.now += 7 * DAY
        ran = await world.live(0.05)
        world.now -= 7 * DAY
        ran += await world.live(0.05)
        assert len(ran) <= 2
    # Two minutes in each of forty halves, a look a minute at most, and one when each begins.
    assert world.rounds - rounds <= 40 * 6


async def test_a_plan_that_changes_holds_at_once(world: World) -> None:
    await world.store("ana")
    world.plan = plan_of({"quick": None, "daily": None, "monthly": None, "merging": None})
    assert await world.live(30) == []
    world.plan = plan_of({"quick": "30 * * * *"})
    assert modes(await world.live(2)) == [("quick", 30.5), ("quick", 31.5)]


async def test_a_run_that_failed_is_told_and_tried_again_later(world: World) -> None:
    await world.store("ana")
    await world.live(1)
    broken = world.agents.open_stores()["ana"]
    real, tried = broken.flush_faces, []

    async def refuse() -> bool:
        tried.append(world.now)
        raise DiskFull("the disk is full")

    broken.flush_faces = refuse  # type: ignore[method-assign]
    await world.live(2.4)
    assert [problem.code for problem in world.problems.standing()] == ["upkeep_failed"]
    assert 2 <= len(tried) <= 4
    async with world.agents.use("ana", create=False) as store:
        noted = await store.read(ledger.load)
    assert noted.runs["quick"].error == "the disk is full"
    assert noted.progress is not None
    broken.flush_faces = real  # type: ignore[method-assign]
    assert [mode for _, mode, _ in await world.live(0.5)] == ["quick"]
    assert world.problems.standing() == []


async def test_a_step_that_cannot_be_done_keeps_nothing_that_is_due_from_being_done(
    world: World,
) -> None:
    await world.store("ana")
    await world.live(1)
    in_the_way = world.folder / "agents" / "ana" / "reports"
    in_the_way.write_text("a file")
    with pytest.raises(ThermoclineError):
        await world.upkeep.consolidate("ana", "full")
    # It is tried once more, and then it is the turn of the others.
    assert modes(await world.live(12)) == [
        ("full", 3.0), ("quick", 3.0), ("quick", 6.0), ("quick", 9.0), ("daily", 12.0),
    ]  # fmt: skip
    assert world.problems.standing() == []
    async with world.agents.use("ana", create=False) as store:
        noted = await store.read(ledger.load)
    assert "/agents/ana/reports: File exists" in noted.runs["full"].error


async def test_a_smaller_run_is_done_while_a_larger_one_cannot_be(world: World) -> None:
    await world.store("ana")
    await world.live(1)
    in_the_way = world.folder / "agents" / "ana" / "reports"
    in_the_way.write_text("a file")
    async with world.agents.use("ana", create=False) as store:
        # As if the daily run had a step that fails.
        left = ledger.Progress("daily", world.now, ("daily",), ("report",))
        await store.write(lambda tx: ledger.change(tx, progress=left))
    assert ("quick", 3.0) in modes(await world.live(3))


async def test_what_is_due_soon_does_not_wait_for_the_next_try_of_what_cannot_be_done(
    world: World,
) -> None:
    world.plan = plan_of({"quick": "*/6 * * * *"})
    await world.store("ana")
    await world.live(1)
    (world.folder / "agents" / "ana" / "reports").write_text("a file")
    async with world.agents.use("ana", create=False) as store:
        left = ledger.Progress("full", world.now, ("full",), ("report",))
        await store.write(lambda tx: ledger.change(tx, progress=left))
    # Whoever starts goes on with it at once, in vain.
    await world.restart()
    assert modes(await world.live(0.25)) == [
        ("full", 1.0), ("full", 1.1), ("quick", 1.1), ("quick", 1.2),
    ]  # fmt: skip


async def test_what_an_unexpected_error_says_is_not_told(world: World) -> None:
    await world.store("ana")
    await world.live(1)

    async def fail() -> bool:
        raise ValueError("cannot encode: the owner's secret")

    world.agents.open_stores()["ana"].flush_faces = fail  # type: ignore[method-assign]
    await world.live(2.1)
    (problem,) = world.problems.standing()
    assert problem.message == "cannot keep up the memory of 'ana': ValueError"


async def test_whose_upkeep_it_is_is_found_out_beside_the_event_loop(world: World) -> None:
    asked, names = [], world.agents.names

    def watched() -> list[str]:
        asked.append(threading.current_thread())
        return names()

    world.agents.names = watched  # type: ignore[method-assign]
    await world.live(1)
    assert asked
    assert threading.current_thread() not in asked


async def test_there_are_never_two_runs_at_once_for_an_agent(world: World) -> None:
    await world.store("ana", 30)
    await asyncio.gather(*(world.upkeep.consolidate("ana", "daily") for _ in range(4)))
    order = [event.type for agent, event in world.told if agent == "ana"]
    depth = 0
    for kind in order:
        depth += {"upkeep.started": 1, "upkeep.finished": -1}.get(kind, 0)
        assert depth in {0, 1}
    assert order.count("upkeep.started") == 4


async def test_what_a_person_has_run_is_not_run_again_at_its_time(world: World) -> None:
    await world.store("ana")
    await world.live(11.5)
    await world.upkeep.consolidate("ana", "daily")
    assert modes(await world.live(1)) == [("daily", 12.0)]
    world.now += 23 * 3600
    world.uptime += 23 * 3600
    # Past the next midnight, whose runs have not begun yet.
    await world.upkeep.consolidate("ana", "daily")
    assert await world.live(0.4) == []


async def test_a_caller_who_leaves_does_not_break_the_run_off(world: World) -> None:
    await world.store("ana")
    task = asyncio.create_task(world.upkeep.consolidate("ana", "full"))
    await world.started.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await world.finished.wait()
    await world.upkeep.consolidate("ana", "quick", dry_run=True)
    async with world.agents.use("ana", create=False) as store:
        noted = await store.read(ledger.load)
    assert noted.progress is None
    assert "full" in noted.runs


async def test_only_agents_that_there_are_can_be_looked_after(world: World) -> None:
    with pytest.raises(NotFound, match="no agent is called 'nobody'"):
        await world.upkeep.consolidate("nobody", "quick")
    with pytest.raises(NotFound):
        await world.upkeep.ingest("nobody")
    # And nothing is kept of those that there are not.
    gc.collect()
    locks = number_of(asyncio.Lock)
    for number in range(20):
        with pytest.raises(NotFound):
            await world.upkeep.consolidate(f"nobody{number}", "quick")
    gc.collect()
    assert number_of(asyncio.Lock) <= locks


async def test_status_tells_what_ran_and_what_comes(world: World) -> None:
    await world.store("ana")
    await world.live(3.5)

    def standing(db: sqlite3.Connection) -> Any:
        return world.upkeep.standing("ana", db)

    async with world.agents.use("ana", create=False) as store:
        found = await store.read(standing)
    assert (found.zone, found.running, found.unfinished) == ("CET", None, None)
    schedules = {schedule.name: schedule for schedule in found.schedules}
    assert set(schedules) == {"quick", "daily", "monthly"}
    assert schedules["quick"].last == NOON + 3 * 3600
    assert schedules["quick"].next == NOON + 6 * 3600
    assert schedules["daily"].last is None
    assert schedules["daily"].next == NOON + 12 * 3600
    assert (found.brief.last, found.brief.last_at) == ("quick", NOON + 3 * 3600)
    assert (found.brief.next, found.brief.next_at) == ("quick", NOON + 6 * 3600)
