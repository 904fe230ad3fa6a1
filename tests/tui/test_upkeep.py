"""The view of the upkeep and the model: each of its actions, against a real daemon."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
import pytest
from daemon_process import Daemon

pytest.importorskip("textual")

from tui_pilot import Seat, seated

from thermocline.daemon.shapes.status import (
    CacheState,
    DayLimits,
    ModelStatus,
    PurposeUsage,
    Spent,
    WorkerState,
)
from thermocline.daemon.shapes.upkeep import Running
from thermocline.tui.feed import FeedEvent

MODEL = ModelStatus(
    state="failing",
    worker=WorkerState(4711, "1.80.0", busy=False, starts=2, deaths=1),
    models={"distil": ("openai/small", "ollama/tiny")},
    resting={"openai/small": "rate limit [b]429[/b]"},
    day="2026-01-01",
    today=Spent(tokens=12_345, cost=0.75, calls=9, unpriced=2),
    limits=DayLimits(tokens=0, cost=1.5),
    cache=CacheState(entries=40, hits=3, misses=9),
    purposes={
        "distil": PurposeUsage(12, 2, 3, 1, 9_000, 3_000, 0.75, 0.8, 2.5, "timeout"),
    },
    cleared={},
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for the tests of this file, where nothing runs by itself."""
    made = Daemon(
        tmp_path_factory.mktemp("daemon"),
        *(f"--set=consolidation.{name}=never" for name in ("warm_eviction", "tree_prune")),
    ).start()
    yield made
    made.stop()


def filled(daemon: Daemon, agent: str) -> None:
    with daemon.client(agent) as client:
        client.store("Ana prefers tea")


def runs(daemon: Daemon, agent: str) -> list[tuple[str, bool]]:
    """The agent's runs: their modes, and whether they only tried."""
    with daemon.client(agent) as client:
        found = client.upkeep().runs
    return [(one.mode, one.result is not None and one.result.dry_run) for one in found]


async def choose(seat: Seat, key: str, words: str, mode: str) -> None:
    """Open the list of runs with a key, and take one."""
    await seat.press(key)
    await seat.sees(words, f"{mode}:")
    options = seat.app.screen.query_one("OptionList")
    while not str(options.get_option_at_index(options.highlighted or 0).prompt).startswith(mode):
        await seat.press("down")
    await seat.press("enter")


async def test_schedules_are_shown_and_the_one_under_the_cursor_is_run(daemon: Daemon) -> None:
    filled(daemon, "runner")
    async with seated(daemon, "upkeep", "runner") as seat:
        await seat.sees("quick", "no run since the daemon started: r runs one")
        seat.view.rows("schedules").select("daily")
        await seat.press("enter")
        await seat.sees("Run now")
        # What is under the cursor is the first.
        await seat.press("enter")
        await seat.hears("daily did: nothing to do")
        await seat.sees("✓ nothing to do", "✓ daily ran")
        assert ("daily", False) in runs(daemon, "runner")
        await seat.sees("daily: ingest, evict, prune, merge, hot", "1 warm")
        assert seat.view.copied().startswith("daily: ingest")


async def test_a_run_is_tried_without_changes(daemon: Daemon) -> None:
    filled(daemon, "trier")
    async with seated(daemon, "upkeep", "trier") as seat:
        await choose(seat, "t", "What would be done by", "full")
        await seat.hears("full would do")
        await seat.sees("try full", "would do")
    assert ("full", True) in runs(daemon, "trier")
    assert ("full", False) not in runs(daemon, "trier")


async def test_the_daily_notes_are_read(daemon: Daemon) -> None:
    filled(daemon, "noted")
    folder = daemon.folder("noted") / "memory"
    folder.mkdir(exist_ok=True)
    today = datetime.now(UTC).astimezone().date().isoformat()
    (folder / f"{today}.md").write_text(
        "# Decisions\n\n- We decided to use Postgres for billing.\n"
    )
    async with seated(daemon, "upkeep", "noted") as seat:
        await choose(seat, "r", "Run now", "notes")
        await seat.hears("1 note read: 1 new fact")
    with daemon.client("noted") as client:
        assert client.recall("Postgres").results


async def test_a_run_in_progress_shows_how_far_it_is(daemon: Daemon) -> None:
    filled(daemon, "slow")
    async with seated(daemon, "upkeep", "slow", now=lambda: 1_000_000.0) as seat:
        await seat.freezes()
        data = {"mode": "full", "steps": ["evict", "prune", "hot"]}
        started = FeedEvent("1", "upkeep.started", "slow", 0.0, data)
        step = FeedEvent("2", "upkeep.progress", "slow", 0.0, {"mode": "full", "step": "evict"})
        other = FeedEvent("3", "upkeep.progress", "other", 0.0, {"mode": "full", "step": "evict"})
        seat.app.happened.extend([started, step, other])
        running = Running("full", 1_000_000.0 - 75, "evict")
        seat.view.standing = msgspec.structs.replace(seat.view.standing, running=running)
        seat.view.tick()
        await seat.sees("⟳ full ██████▋", "step 2 of 3, evict is done, since 1 min")


async def test_the_models_calls_cost_and_cache_are_shown_by_purpose(daemon: Daemon) -> None:
    filled(daemon, "asker")
    async with seated(daemon, "upkeep", "asker") as seat:
        await seat.sees("none is configured: rules do everything")
        await seat.freezes()
        assert seat.app.snapshot.status is not None
        seat.app.snapshot.status.llm = MODEL
        seat.view.draw()
        await seat.sees(
            "✗ FAILING: rules stand in",
            "9 calls, 12,345 tokens, $0.7500, 2 of unknown price",
            "openai/small, then ollama/tiny",
            "! openai/small: rate limit [b]429[/b]",
            "40 entries, 25 % of 12 answered",
            "process 4711, 2 starts, ! 1 death",
            "50 % $0.75 of $1.50 today",
            "9,000 → 3,000",
            "800 ms",
            "timeout",
        )


@pytest.mark.parametrize("size", [(40, 12), (40, 24), (80, 12), (80, 24), (120, 40)])
async def test_each_size_has_every_part(daemon: Daemon, size: tuple[int, int]) -> None:
    agent = f"size-{size[0]}-{size[1]}"
    filled(daemon, agent)
    with daemon.client(agent) as client:
        client.consolidate("quick")
    async with seated(daemon, "upkeep", agent, size) as seat:
        await seat.sees("✓ quick ran", "Job", "daily", "in ")
        await seat.press("right")
        await seat.sees("Run", "✓ noth")
        await seat.press("right")
        await seat.sees("none is configured")


async def test_nothing_runs_where_it_is_read_only(daemon: Daemon) -> None:
    filled(daemon, "reader")
    async with seated(daemon, "upkeep", "reader", read_only=True) as seat:
        await seat.press("r", "enter")
        assert len(seat.app.screen_stack) == 1
        # A dry run changes nothing.
        await choose(seat, "t", "What would be done by", "quick")
        await seat.hears("quick would do")
