"""The view of the upkeep and the model: each of its actions, against a real daemon."""

from datetime import UTC, datetime

import msgspec
import pytest
from daemon_process import Daemon

pytest.importorskip("textual")

from terminal import Terminal, terminal

from thermocline.daemon.schemas.status import (
    CacheState,
    DayLimits,
    ModelStatus,
    PurposeUsage,
    Spent,
    WorkerState,
)
from thermocline.daemon.schemas.upkeep import Running
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


def filled(daemon: Daemon, agent: str) -> None:
    with daemon.client(agent) as client:
        client.store("Ana prefers tea")


def runs(daemon: Daemon, agent: str) -> list[tuple[str, bool]]:
    """The agent's runs: their modes, and whether they only tried."""
    with daemon.client(agent) as client:
        found = client.upkeep().runs
    return [(one.mode, one.result is not None and one.result.dry_run) for one in found]


async def choose(term: Terminal, key: str, words: str, mode: str) -> None:
    """Open the list of runs with a key, and take one."""
    await term.press(key)
    await term.see(words, f"{mode}:")
    options = term.app.screen.query_one("OptionList")
    while not str(options.get_option_at_index(options.highlighted or 0).prompt).startswith(mode):
        await term.press("down")
    await term.press("enter")


async def test_schedules_are_shown_and_the_one_under_the_cursor_is_run(daemon):
    filled(daemon, "runner")
    async with terminal(daemon, "upkeep", "runner") as term:
        await term.see("quick", "no run since the daemon started: r runs one")
        term.view.table_of("schedules").select("daily")
        await term.press("enter")
        await term.see("Run now")
        # What is under the cursor is the first.
        await term.press("enter")
        await term.hear("daily did: nothing to do")
        await term.see("✓ nothing to do", "✓ daily ran")
        assert ("daily", False) in runs(daemon, "runner")
        await term.see("daily: ingest, evict, prune, merge, hot", "1 warm")
        assert term.view.copied().startswith("daily: ingest")


async def test_a_run_is_tried_without_changes_and_the_daily_notes_are_read(daemon):
    filled(daemon, "trier")
    folder = daemon.folder("trier") / "memory"
    folder.mkdir(exist_ok=True)
    today = datetime.now(UTC).astimezone().date().isoformat()
    (folder / f"{today}.md").write_text(
        "# Decisions\n\n- We decided to use Postgres for billing.\n"
    )
    async with terminal(daemon, "upkeep", "trier") as term:
        await choose(term, "t", "What would be done by", "full")
        await term.hear("full would do")
        await term.see("try full", "would do")
        assert ("full", True) in runs(daemon, "trier")
        assert ("full", False) not in runs(daemon, "trier")
        await choose(term, "r", "Run now", "notes")
        await term.hear("1 note read: 1 new fact")
    with daemon.client("trier") as client:
        assert client.recall("Postgres").results


async def test_a_run_in_progress_and_the_models_calls_cost_and_cache_are_shown(daemon):
    filled(daemon, "slow")
    async with terminal(daemon, "upkeep", "slow", now=lambda: 1_000_000.0) as term:
        await term.see("○ none, rules only")
        await term.freeze()
        data = {"mode": "full", "steps": ["evict", "prune", "hot"]}
        started = FeedEvent("1", "upkeep.started", "slow", 0.0, data)
        step = FeedEvent("2", "upkeep.progress", "slow", 0.0, {"mode": "full", "step": "evict"})
        other = FeedEvent("3", "upkeep.progress", "other", 0.0, {"mode": "full", "step": "evict"})
        term.app.events.extend([started, step, other])
        running = Running("full", 1_000_000.0 - 75, "evict")
        term.view.status = msgspec.structs.replace(term.view.status, running=running)
        term.view.tick()
        await term.see("⟳ full ██████▋", "step 2 of 3, evict is done, since 1 min")
        assert term.app.snapshot.status is not None
        term.app.snapshot.status.llm = MODEL
        term.view.draw()
        await term.see(
            "✗ failing, rules only until it answers",
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
