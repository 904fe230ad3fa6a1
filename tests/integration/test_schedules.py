"""Upkeep by the schedules: on devices that sleep, and with clocks that jump."""

import asyncio
import gc
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from store_parts import make_agents

from thermocline.daemon.config.settings import Rules, Settings, StoreSettings, Sync, UpkeepTimes
from thermocline.daemon.errors import DiskFull, NotFound, Unavailable
from thermocline.daemon.maintenance import consolidation
from thermocline.daemon.maintenance.schedule import INTERRUPTED, Run, last_run, put_runs
from thermocline.daemon.maintenance.scheduler import Clock, Job, Scheduler
from thermocline.daemon.maintenance.upkeep import Upkeep, jobs_of
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.runtime.problems import Problems
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database.transaction import Event
from thermocline.daemon.store.records import memories

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
        # Runs that nobody waits for.
        self.stuck: set[tuple[str, str]] = set()
        self.problems = Problems()
        self.settings = settings_of(CRONS)
        self.jitter = 0.0
        self.more: list[Job] = []
        self._threads = threads
        self.start()

    def start(self) -> None:
        """The daemon begins, as after a restart."""
        self.agents = make_agents(
            self.folder,
            self._threads,
            lambda: StoreSettings(idle_close_seconds=1e9, max_open_agents=self.most_open),
            problems=self.problems,
            now=lambda: self.now,
            publish=self.publish,
            readers=1,
        )
        clock = Clock(BERLIN, lambda: self.now, lambda: self.uptime, self.sleep)
        self.upkeep = Upkeep(
            self.agents,
            rules=Rules,
            publish=self.publish,
            problems=self.problems,
            clock=clock,
            schedules=lambda agent, db: self.scheduler.schedules(agent, db),  # noqa: PLW0108
        )
        jobs = jobs_of(
            lambda: self.settings,
            self.upkeep,
            keep_files=nothing,
            verify=nothing,
            close_idle=self.agents.close_idle,
            trim_memory=nothing,
            sample=nothing,
        )
        self.scheduler = Scheduler(
            self.agents,
            [*(job for job in jobs if job.agents == "all" or job.name == "idle"), *self.more],
            clock=clock,
            device="device",
            jitter=lambda: self.jitter,
            problems=self.problems,
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
        while self.scheduler._tasks.keys() - self.stuck:  # noqa: ASYNC110 - time stands still
            await asyncio.sleep(0.001)
        if self.now >= self.until:
            raise asyncio.CancelledError
        self.now += seconds
        self.uptime += seconds

    async def live(self, hours: float) -> list[tuple[str, str, float]]:
        """Let hours pass; what ran meanwhile."""
        self.until = self.now + hours * 3600
        known = len(self.ran)
        with pytest.raises(asyncio.CancelledError):
            await self.scheduler.run()
        return self.ran[known:]

    async def restart(self, off_hours: float = 0.0) -> None:
        """Stop the daemon, and start it again later."""
        await self.agents.close()
        self.now += off_hours * 3600
        self.uptime += off_hours * 3600
        self.start()

    async def record(self, agent: str, job: str) -> Run:
        """The last run of a job."""
        async with self.agents.use(agent, create=False, quietly=True) as store:
            run = await store.read(lambda db: last_run(db, job))
        assert run is not None
        return run

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


def settings_of(crons: dict[str, str | None]) -> Settings:
    """Settings with these cron expressions alone, and without verifying."""
    every = {"quick": None, "daily": None, "monthly": None, "merging": None} | crons
    return Settings(
        upkeep=UpkeepTimes(**every),
        sync=Sync(verify_days=0),
        store=StoreSettings(state_file_check_seconds=600.0),
    )


async def nothing(_store: object = None) -> None:
    pass


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


async def test_a_closed_agent_that_nobody_uses_is_spared_the_small_runs(world):
    def of(agent: str, ran: list[tuple[str, str, float]]) -> list[tuple[str, float]]:
        return modes([run for run in ran if run[0] == agent])

    world.most_open = 1
    await world.store("ana")
    await world.store("ben")
    ran = await world.live(13)
    # Nobody can tell what was done to them before the start, so the first is for both.
    assert of("ana", ran) == [("quick", 3.0), ("daily", 12.0)]
    assert of("ben", ran) == [("quick", 3.0), ("daily", 12.0)]
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


async def test_a_note_that_is_not_read_stands_in_status_until_it_is(world):
    await world.store("ana")
    note = world.folder / "agents" / "ana" / "memory" / "2026-11-21.md"
    note.parent.mkdir()
    note.write_bytes(b"\xff\xfe\x00")
    await world.live(12.5)
    (problem,) = world.problems.current()
    assert (problem.code, problem.lasting) == ("notes_unread", False)
    assert "'ana': did not read 2026-11-21.md: it is not UTF-8 text" in problem.message
    note.write_bytes(b"- [x] wrote the weekly letter\n")
    assert (await world.upkeep.ingest("ana")).facts_stored == 1
    assert world.problems.current() == []


async def test_a_month_begins_with_the_largest_run_and_no_smaller_one_beside_it(world):
    await world.store("ana")
    world.now = world.begun = NOON + 9 * DAY
    await world.live(1)
    assert modes(await world.live(14)) == [
        ("quick", 3.0), ("quick", 6.0), ("quick", 9.0), ("monthly", 12.0), ("quick", 15.0),
    ]  # fmt: skip


async def test_what_was_missed_for_weeks_is_done_once(world):
    await world.store("ana")
    await world.live(1)
    await world.restart(off_hours=24 * 40)
    assert modes(await world.live(1.5)) == [("monthly", 961.0)]


async def test_a_clock_that_jumps_makes_no_busy_loop_and_starves_nobody(world):
    await world.store("ana")
    await world.live(1)
    world.now += 400 * DAY
    assert modes(await world.live(1)) == [("monthly", 9601.0)]
    world.now -= 400 * DAY
    assert modes(await world.live(2)) == [("quick", 3.0)]
    async with world.agents.use("ana", create=False) as store:
        brief = await store.read(lambda db: world.upkeep.status("ana", db).brief)
    assert brief.last == "quick"
    assert brief.last_at < world.now
    rounds = world.rounds
    for _ in range(20):
        world.now += 7 * DAY
        ran = await world.live(0.05)
        world.now -= 7 * DAY
        ran += await world.live(0.05)
        assert len(ran) <= 2
    # Two minutes in each of forty halves, a look a minute at most, and one when each begins.
    assert world.rounds - rounds <= 40 * 6


async def test_a_plan_that_changes_holds_at_once(world):
    await world.store("ana")
    world.settings = settings_of({"quick": None, "daily": None, "monthly": None, "merging": None})
    assert await world.live(13) == []
    world.settings = settings_of({"quick": "30 * * * *"})
    assert modes(await world.live(2)) == [("quick", 13.5), ("quick", 14.5)]


async def test_a_run_that_failed_is_told_and_tried_again_at_growing_distances(world):
    await world.store("ana")
    await world.live(1)
    broken = world.agents.open_stores()["ana"]
    real, tried = broken.flush_state_files, []

    async def refuse() -> bool:
        tried.append(round((world.now - world.begun) / 60))
        raise DiskFull("the disk is full")

    broken.flush_state_files = refuse  # type: ignore[method-assign]
    await world.live(4.9)
    (problem,) = world.problems.current()
    assert problem.code == "upkeep_failed"
    assert problem.message == "cannot run 'quick' for 'ana': the disk is full"
    assert tried == [180, 185, 195, 215, 255, 315]
    assert (await world.record("ana", "quick")).error == "the disk is full"
    broken.flush_state_files = real  # type: ignore[method-assign]
    assert [mode for _, mode, _ in await world.live(1)] == ["quick"]
    assert world.problems.current() == []
    assert (await world.record("ana", "quick")).error == ""


async def test_while_the_disk_refuses_writes_runs_wait_and_only_the_refusal_is_told(world):
    await world.store("ana")
    await world.live(1)
    async with world.agents.use("ana", create=False) as store:
        with pytest.raises(DiskFull), store._write_health.reporting():
            raise DiskFull("the disk is full")
    assert await world.live(4) == []
    assert [problem.message for problem in world.problems.current()] == ["the disk is full"]
    await store.check_files()
    assert modes(await world.live(0.1)) == [("quick", 5.02)]
    assert world.problems.current() == []


async def test_a_run_that_was_interrupted_runs_once_after_the_restart(world):
    await world.store("ana")
    await world.live(1)
    begun = Run(world.now - 60, world.now, error=INTERRUPTED)
    async with world.agents.use("ana", create=False) as store:
        await store.write(lambda tx: put_runs(tx, {"full": begun}))
    await world.restart()
    assert modes(await world.live(1)) == [("full", 1.0)]
    assert (await world.record("ana", "full")).error == ""


async def test_a_larger_run_that_fails_does_not_keep_smaller_ones_from_their_times(
    world, monkeypatch
):
    await world.store("ana")
    await world.live(1)

    async def refuse(*_: object, **__: object) -> int:
        raise DiskFull("no room for a tree")

    monkeypatch.setattr(consolidation, "clean", refuse)
    with pytest.raises(DiskFull):
        await world.upkeep.consolidate("ana", "full")
    await world.restart()
    ran = modes(await world.live(12))
    assert [run for run in ran if run[0] != "full"] == [
        ("quick", 3.0), ("quick", 6.0), ("quick", 9.0), ("daily", 12.0),
    ]  # fmt: skip
    assert 10 < ran.count(("full", 1.0)) + len([mode for mode, _ in ran if mode == "full"]) < 20
    assert (await world.record("ana", "full")).error == "no room for a tree"
    monkeypatch.undo()
    assert ("full", 13.5) not in modes(await world.live(1.1))
    assert world.problems.current() == []


async def test_a_slow_job_of_one_agent_delays_no_other(world):
    over = asyncio.Event()
    ran: list[str] = []

    async def run(store: AgentStore) -> None:
        ran.append(store.place.agent)
        if store.place.agent == "agent0":
            await over.wait()

    world.more = [Job(name="slow", when=lambda: 3600.0, run=run)]
    for number in range(6):
        await world.store(f"agent{number}")
    await world.restart()
    world.stuck = {("agent0", "slow")}
    found = await world.live(3.5)
    assert sorted(set(ran)) == [f"agent{number}" for number in range(6)]
    assert ran.count("agent0") == 1
    assert ran.count("agent1") == 3
    # Its own other jobs are not delayed either.
    assert [run for run in found if run[0] == "agent0"] == [("agent0", "quick", 3.0)]
    # Whoever stops the scheduler stops the run; it begins again after a restart.
    assert not world.scheduler._tasks
    assert (await world.record("agent0", "slow")).error == INTERRUPTED
    over.set()
    world.stuck = set()
    await world.restart()
    await world.live(0.1)
    assert ran.count("agent0") == 2


async def test_a_job_for_open_agents_that_fails_is_told_and_stops_no_other(world):
    ran: list[str] = []
    broken = True

    async def run(store: AgentStore) -> None:
        ran.append(store.place.agent)
        if store.place.agent == "ana" and broken:
            raise Unavailable("no room")

    looking = Job(name="look", when=lambda: 60.0, run=run, agents="open", problem="agent_trouble")
    world.more = [looking]
    await world.restart()
    for agent in ("ana", "ben"):
        await world.store(agent)
    await world.live(1)
    [problem] = world.problems.current()
    assert (problem.code, problem.message) == (
        "agent_trouble",
        "cannot run 'look' for 'ana': no room",
    )
    # Each minute, and after 1, 2, 4, 8 and then each 12 minutes.
    assert 55 <= ran.count("ben") <= 60
    assert ran.count("ana") == 8
    broken = False
    await world.live(0.3)
    assert world.problems.current() == []


async def test_there_are_never_two_runs_at_once_for_an_agent(world):
    await world.store("ana", 30)
    await asyncio.gather(*(world.upkeep.consolidate("ana", "daily") for _ in range(4)))
    order = [event.type for agent, event in world.told if agent == "ana"]
    depth = 0
    for kind in order:
        depth += {"upkeep.started": 1, "upkeep.finished": -1}.get(kind, 0)
        assert depth in {0, 1}
    assert order.count("upkeep.started") == 4


async def test_a_caller_who_leaves_does_not_break_the_run_off(world):
    await world.store("ana")
    task = asyncio.create_task(world.upkeep.consolidate("ana", "full"))
    await world.started.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await world.finished.wait()
    await world.upkeep.consolidate("ana", "quick", dry_run=True)
    assert (await world.record("ana", "full")).error == ""


async def test_only_agents_that_there_are_can_be_looked_after(world):
    with pytest.raises(NotFound, match="no agent is called 'nobody'"):
        await world.upkeep.consolidate("nobody", "quick")
    with pytest.raises(NotFound):
        await world.upkeep.ingest("nobody")
    # And nothing is kept of those that there are not. What is older is not looked through.
    gc.freeze()
    locks = number_of(asyncio.Lock)
    for number in range(20):
        with pytest.raises(NotFound):
            await world.upkeep.consolidate(f"nobody{number}", "quick")
    gc.collect()
    assert number_of(asyncio.Lock) <= locks


async def test_a_memory_that_could_not_be_opened_is_no_problem_once_it_can(world):
    await world.store("ana")
    await world.restart()
    real = world.agents.use
    refused = 0

    @asynccontextmanager
    async def refuse(agent: str, **how: Any) -> AsyncIterator[AgentStore]:
        nonlocal refused
        if refused < 2 and agent == "ana":
            refused += 1
            raise DiskFull("no room to open it")
        async with real(agent, **how) as store:
            yield store

    world.agents.use = refuse  # type: ignore[method-assign, assignment]
    await world.live(0.05)
    codes = {problem.code for problem in world.problems.current()}
    assert codes == {"upkeep_failed", "verify_failed"}
    await world.live(1)
    assert world.problems.current() == []
    assert modes(await world.live(2)) == [("quick", 3.0)]
