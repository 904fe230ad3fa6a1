"""Runs of upkeep: what each step does, and that nothing is lost wherever they break off."""

import asyncio
import sqlite3
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from scripted_model import ScriptedModel
from store_parts import add_memories, all_memories

from thermocline.daemon.config.settings import Cold, Ingest, Rules
from thermocline.daemon.errors import NotFound
from thermocline.daemon.llm.model import read_prompts
from thermocline.daemon.maintenance import days, rebuilding
from thermocline.daemon.maintenance.consolidation import RUN_STEP, STEPS, consolidate, steps_of
from thermocline.daemon.maintenance.daily_notes import Folder, Work
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.memory.tree_rebuild import TreeChange
from thermocline.daemon.schemas.upkeep import Consolidated, ConsolidationMode
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database import meta
from thermocline.daemon.store.database.transaction import Event, Transaction
from thermocline.daemon.store.engine import CHECKED
from thermocline.daemon.store.records import history, memories
from thermocline.daemon.tasks.model_or_rules import ModelOrRules

NOW = 1_795_258_800.0
NOTE = """# 2026-11-21

## Boat

- [x] Ordered the new mainsail from https://sails.example.org/main
- **Rigging** is inspected every spring by Carla
- Decided to paint the hull green before the season begins
"""


class Upkept:
    """An agent's memory, and runs for it."""

    def __init__(self, store: AgentStore) -> None:
        self.store = store
        self.told: list[Event] = []

    def work(self, mode: ConsolidationMode, **fields: Any) -> Work:
        given: dict[str, Any] = {
            "store": self.store,
            "mode": mode,
            "dry_run": False,
            "folders": (Folder("own", self.store.place.folder / "memory"),),
            "notes": Ingest(categories={"boat": "boat"}),
            "zone": UTC,
        }
        return Work(**given | fields)

    async def run(self, mode: ConsolidationMode, **fields: Any) -> Consolidated:
        work = self.work(mode, **fields)
        return await consolidate(work, steps_of(mode), self.told.append)

    def note(self, text: str = NOTE, name: str = "2026-11-21.md") -> Path:
        path = self.store.place.folder / "memory" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path


def prune(tx: Transaction) -> None:
    history.prune(tx, 1 << 20)


async def kept(open_store, rules: Rules) -> Upkept:
    """A memory whose clock has been right for a day."""
    at = NOW - DAY
    upkept = Upkept(await open_store(now=lambda: at, rules=rules))
    await upkept.store.write(prune)
    at = NOW
    return upkept


@pytest.fixture
async def upkept(open_store) -> Upkept:
    """The same by the usual rules."""
    return await kept(open_store, Rules())


def memory(key: str, text: str | None = None, days: float = 1.0, **fields: Any) -> Memory:
    at = NOW - days * DAY
    given = {"text": text or f"something about {key}", "created_at": at, "updated_at": at}
    return Memory(**({"id": key, "writer": "test"} | given | fields))


# The modes


async def test_an_undo_leaves_alone_what_has_happened_since(upkept):
    await add_memories(upkept.store, memory("a", category="x/old"), memory("b", category="x/old"))
    merge = TreeChange(type="merge", path="x/old", new_path="x")
    await upkept.store.write(lambda tx: rebuilding.rebuild(tx, [merge]))
    assert {one.category for one in (await all_memories(upkept.store)).values()} == {"x"}
    await add_memories(upkept.store, memory("c", category="x/old"))
    assert (await all_memories(upkept.store))["c"].category == "x"

    def move(tx: Transaction) -> None:
        found = memories.find(tx.db, "b")
        memories.replace(tx, found, structs.replace(found, category="elsewhere"))

    await upkept.store.write(move)
    undone = await upkept.store.write(rebuilding.undo)
    after = {key: one.category for key, one in (await all_memories(upkept.store)).items()}
    assert after == {"a": "x/old", "b": "elsewhere", "c": "x"}
    assert undone.memories == 1


@pytest.mark.parametrize(("years", "forgotten"), [(10, 1), (0, 0)])
async def test_monthly_forgets_what_is_frozen_for_longer_than_the_retention_if_there_is_one(
    open_store, years, forgotten
):
    upkept = await kept(open_store, Rules(cold=Cold(retention_years=years)))
    await add_memories(upkept.store, memory("old", days=11 * 366, importance=0.1))
    assert (await upkept.run("monthly", dry_run=True)).forgotten == forgotten
    assert (await upkept.run("monthly")).forgotten == forgotten
    assert len(await all_memories(upkept.store)) == 1 - forgotten


async def test_what_a_clock_that_has_jumped_calls_old_is_deleted_if_it_stands_a_day(open_store):
    at = NOW - DAY
    upkept = Upkept(await open_store(now=lambda: at))
    await upkept.store.write(prune)
    at = NOW
    lent = memory("lent", expires_at=NOW + 30 * DAY)
    await add_memories(upkept.store, memory("a", importance=0.1), lent)

    def change(tx: Transaction) -> None:
        found = memories.find(tx.db, "a")
        memories.replace(tx, found, structs.replace(found, text="something else"))

    async def left() -> tuple[int, int, bool]:
        await upkept.run("quick")
        await upkept.store.write(prune)
        forgotten = (await upkept.run("monthly")).forgotten
        versions = await upkept.store.read(lambda db: history.read(db, "id = ?", "a"))
        return forgotten, len(versions), "lent" in await all_memories(upkept.store)

    await upkept.store.write(change)
    at = NOW + 11 * 366 * DAY
    assert await left() == (0, 1, True)
    assert await left() == (0, 1, True)
    at = NOW + 3600
    assert await left() == (0, 1, True)
    at = NOW + 11 * 366 * DAY
    assert await left() == (0, 1, True)
    at += DAY
    assert await left() == (1, 0, False)


async def test_what_was_stored_before_the_clock_was_set_is_not_taken_for_old(upkept):
    await add_memories(upkept.store, memory("unset", days=NOW / DAY - 0.01, importance=0.1))
    assert (await upkept.run("monthly")).forgotten == 0
    assert (await upkept.run("monthly", dry_run=True)).forgotten == 0


async def test_every_answer_counts_what_was_merged_what_faded_and_what_is_fading(upkept):
    await add_memories(
        upkept.store,
        memory("faded", days=40, importance=0.5),
        memory("fading", "unused for nine days", days=9),
        memory("fresh", "used yesterday", days=9, last_accessed_at=NOW - DAY),
        memory("least", "of no importance", days=9, importance=0.05),
        memory("c", "Ana likes tea", days=2),
        memory("d", "ana likes tea.", days=1),
        memory("old", "frozen for eleven years", days=11 * 366, importance=0.1),
    )
    await upkept.store.write(lambda tx: memories.archive(tx, ["old"]) and None)
    quick = await upkept.run("quick", dry_run=True)
    assert (quick.merged, quick.pruned, quick.decayed) == (0, 1, 3)
    dry = await upkept.run("monthly", dry_run=True)
    done = await upkept.run("monthly")
    for outcome in (dry, done):
        assert (outcome.merged, outcome.pruned, outcome.decayed) == (1, 2, 3)
    assert done.pruned == int(done.evicted_warm or 0) + int(done.forgotten or 0)


# Dry runs


async def test_a_dry_run_changes_nothing_and_says_what_would_be_done(upkept):
    upkept.note()
    await add_memories(upkept.store, memory("faded", days=40), memory("gone", expires_at=NOW + 1))
    await upkept.store.flush_state_files()

    def dump(db: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
        tables = db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'state_files'"
            " AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        dumped = {name: db.execute(f"SELECT * FROM {name}").fetchall() for (name,) in tables}
        # The check of the database, which runs since it was opened, may end in the meantime.
        dumped["meta"] = [note for note in dumped["meta"] if note[0] != CHECKED]
        return dumped

    before = await upkept.store.read(dump)
    outcome = await upkept.run("full", dry_run=True)
    assert await upkept.store.read(dump) == before
    assert (outcome.dry_run, outcome.ingested_facts, outcome.evicted_warm) == (True, 3, 1)


# What it notes


# Interrupted


@pytest.mark.parametrize("last", [step for step in STEPS if step != "ingest"])
async def test_a_run_that_was_interrupted_begins_again_and_does_nothing_twice(
    upkept, last, monkeypatch
):
    upkept.note()
    await add_memories(
        upkept.store,
        memory("faded", days=40),
        memory("c", "Ana likes tea"),
        memory("d", "ana likes tea"),
    )

    async def interrupted(_work: Work) -> Any:
        raise asyncio.CancelledError

    monkeypatch.setitem(RUN_STEP, last, interrupted)
    with pytest.raises(asyncio.CancelledError):
        await upkept.run("full")
    monkeypatch.undo()
    assert upkept.told[-1].data["error"] == "interrupted"
    await upkept.run("full")
    after = await all_memories(upkept.store)
    assert len(after) == 6
    assert after["faded"].archived_at is not None
    assert after["c"].merged_into == "d"
    again = await upkept.run("full")
    assert (again.ingested_facts, again.merged, again.pruned, again.decayed) == (0, 0, 0, 1)
    assert await all_memories(upkept.store) == after


async def test_a_step_that_fails_keeps_no_other_from_being_done(upkept, monkeypatch):
    async def fails(_work: Work) -> Any:
        raise ValueError("cannot encode: the owner's secret")

    upkept.note()
    await add_memories(upkept.store, memory("faded", days=40))
    monkeypatch.setitem(RUN_STEP, "ingest", fails)
    with pytest.raises(ValueError, match="cannot encode"):
        await upkept.run("full")
    monkeypatch.undo()
    assert (await all_memories(upkept.store))["faded"].archived_at is not None
    # What an unexpected error says may be what was remembered.
    assert upkept.told[-1].data["error"] == "ValueError"
    outcome = await upkept.run("full")
    assert (outcome.ingested_facts, outcome.evicted_warm) == (3, 0)


async def test_damaged_notes_are_as_if_there_were_none(upkept):
    def spoil(tx: Transaction) -> None:
        dates = ("day/2026-11-19", "day/2026-11-20")
        for key in (
            "job/full", "notes_read", "tree_undo", "note/own/2026-11-21.md", *dates,
        ):  # fmt: skip
            tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, '{not json')", (key,))
        # One that can be read, but is of no day.
        names = structs.fields(days.Day)
        no_day = {field.encode_name: 0 for field in names} | {"date": "soon"}
        meta.write(tx, "day/soon", no_day)

    upkept.note()
    await upkept.store.write(spoil)
    outcome = await upkept.run("full")
    assert outcome.ingested_facts == 3
    assert [str(day.day) for day in await upkept.store.read(lambda db: days.load(db, 9))] == [
        "2026-11-21"
    ]
    with pytest.raises(NotFound, match="no rebuild of the tree to undo"):
        await upkept.store.write(rebuilding.undo)


# With a model


async def test_a_model_says_how_the_tree_is_rebuilt_and_nonsense_is_refused(upkept):
    key = "Ada keeps the spare key of the boat in the"
    await add_memories(
        upkept.store,
        memory("a", category="x"),
        memory("b", category="y"),
        memory("c", f"{key} shed", category="y"),
        memory("d", f"{key} old shed", category="y"),
        memory("e", "The museum of clocks opens at ten on Sunday", category="y", source="web"),
        memory("f", "The museum of old clocks opens at ten on Sunday", category="y", source="web"),
    )
    operations = [
        {"type": "merge", "path": "x", "new_path": "y", "reason": "the same"},
        {"type": "remove", "path": "y"},
        {"type": "add", "path": "one/two/three/four/five"},
    ]
    merged = {"text": f"{key} old shed, at the back"}
    model = ScriptedModel({"merge": [merged], "rebuild": [{"operations": operations}]})
    mind = ModelOrRules(model, read_prompts())
    outcome = await upkept.run("monthly", model=mind, endpoint="http://localhost:1/v1")
    assert outcome.tree_rebuilt == "llm"
    assert outcome.tree_changes == ("merge x -> y: the same",)
    assert outcome.merged == 2
    # What came from outside would become the agent's own word.
    assert (await all_memories(upkept.store))["f"].merged_into is None
    assert model.endpoints == ["http://localhost:1/v1"] * 2
    assert {one.category for one in (await all_memories(upkept.store)).values()} == {"y"}


async def test_without_its_answer_the_tree_stays_and_the_outcome_says_why(upkept):
    upkept.note()
    away = ScriptedModel({"ingest": [], "merge": [], "rebuild": []})
    outcome = await upkept.run("monthly", model=ModelOrRules(away, read_prompts()))
    assert (outcome.tree_rebuilt, outcome.ingested_facts) == ("failed", 3)
    assert outcome.model_error == "no model is configured for rebuild"
