"""Taking in daily notes: every fact once, whatever the files are and however often they change."""

import os
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from scripted_model import ScriptedModel
from store_parts import add_memories, all_memories

from thermocline.daemon.config.settings import Ingest, Tuning
from thermocline.daemon.errors import DiskFull, ModelUnavailable
from thermocline.daemon.llm.model import read_prompts
from thermocline.daemon.maintenance.consolidation import consolidate, steps_of
from thermocline.daemon.maintenance.daily_notes import Folder, Work, ingest
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import DAY
from thermocline.daemon.recall.recall import Request, recall
from thermocline.daemon.schemas.upkeep import Consolidated, Ingested
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database import meta
from thermocline.daemon.store.records import memories
from thermocline.daemon.store.records.selecting import Filters
from thermocline.daemon.tasks.model_or_rules import ModelOrRules

NOW = 1_795_258_800.0  # 21 November 2026, 11:00 UTC
TODAY = "2026-11-21.md"
# As EvoClaw's agents write them.
EVOCLAW = """# Daily notes

## GPU server: ComfyUI
- [x] Installed ComfyUI from https://github.com/comfyanonymous/ComfyUI in /opt/comfyui
- [X] Downloaded the LTX weights with `huggingface-cli download Lightricks/LTX-Video`
- [ ] Try the larger model
- **Port**: the web interface listens on 8188 behind the proxy

## EvoClaw CI
- Coverage of the scheduler was raised, and we agreed on 80 % as the least
- short one
- Fixed the flaky registry test by waiting for the port before the first request

## Cron and alerts
- The disk alert was confirmed by Ben: it fires at 90 % and writes to #ops

**Decision:** the backup runs at 02:30, before the consolidation begins

## Lunch
- Deployed nothing, talked about sailing with Carla and decided to meet in Kiel
"""
FACTS = [
    ("ComfyUI from", "technical/gpu", 0.7), ("LTX weights", "technical/gpu", 0.7),
    ("listens on 8188", "technical/gpu", 0.7), ("80 %", "projects/evoclaw", 0.75),
    ("flaky registry", "projects/evoclaw", 0.75), ("02:30", "technical/cron", 0.7),
    ("90 %", "technical/cron", 0.75), ("meet in Kiel", "general", 0.75),
]  # fmt: skip


class Notes:
    """An agent's memory, and the notes beside it."""

    def __init__(self, store: AgentStore, folders: tuple[Folder, ...] = ()) -> None:
        self.store = store
        self.folder = store.place.folder / "memory"
        self.folder.mkdir(exist_ok=True)
        self.folders = folders or (Folder("own", self.folder),)

    def write(self, text: str | bytes, name: str = TODAY) -> Path:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    async def take_in(self, days: int = 2, *, dry_run: bool = False, **fields: Any) -> Ingested:
        notes = Ingest(max_note_kb=20, **fields)
        return await ingest(self.work(dry_run=dry_run, notes=notes), days)

    def work(self, **fields: Any) -> Work:
        given = {"mode": "quick", "dry_run": False, "folders": self.folders, "notes": Ingest()}
        return Work(store=self.store, zone=UTC, **(given | fields))

    async def consolidate(self) -> Consolidated:
        work = self.work(mode="daily")
        return await consolidate(work, steps_of("daily"), lambda _event: None)

    async def texts(self) -> list[str]:
        return [memory.text for memory in (await all_memories(self.store)).values()]

    async def add(self, text: str, key: str = "mine", **fields: Any) -> None:
        new = Memory(id=key, text=text, created_at=NOW, updated_at=NOW, **fields)
        await add_memories(self.store, new)

    async def forget(self, *keys: str) -> None:
        for key in keys:
            await self.store.write(
                lambda tx, key=key: memories.delete(tx, memories.find(tx.db, key))
            )


@pytest.fixture
async def notes(open_store) -> Notes:
    return Notes(await open_store(now=lambda: NOW))


def counts(ingested: Ingested) -> tuple[int, int, int]:
    return ingested.facts_found, ingested.facts_stored, ingested.facts_skipped


# What is taken in


async def test_every_fact_of_an_evoclaw_note_survives_its_daily_consolidation(
    open_store, make_place
):
    place = make_place()
    notes = Notes(await open_store(place, now=lambda: NOW))
    notes.write(EVOCLAW)
    assert (await notes.consolidate()).ingested_facts == len(FACTS)
    await notes.store.close()
    after = Notes(await open_store(place, now=lambda: NOW + 3600))
    found = (await all_memories(after.store)).values()
    for part, category, importance in FACTS:
        [one] = [memory for memory in found if part in memory.text]
        assert (one.category, one.importance) == (category, importance)
        assert (one.source, one.data) == ("auto-extraction", {"note": str(TODAY)})
        assert (one.merged_into, one.archived_at) == (None, None)
        request = Request(text=one.text, filters=Filters(), limit=1, now=NOW + 3600)
        answer = await after.store.read(lambda db, request=request: recall(db, request, Tuning()))
        assert [hit.memory.id for hit in answer.hits] == [one.id]
    assert len(found) == len(FACTS)


async def test_the_answer_has_evoclaws_fields_and_references_are_kept(notes):
    notes.write(EVOCLAW)
    ingested = await notes.take_in()
    assert (ingested.files_scanned, ingested.mode, ingested.llm_fallbacks) == (1, "rule", 0)
    assert counts(ingested) == (8, 8, 0)
    first, second = ingested.facts[:2]
    assert first.metadata.urls == ("https://github.com/comfyanonymous/ComfyUI",)
    assert first.metadata.paths == ("/opt/comfyui",)
    assert second.metadata.commands == ("huggingface-cli download Lightricks/LTX-Video",)
    stored = await all_memories(notes.store)
    assert {fact.id for fact in ingested.facts} == set(stored)
    assert stored[str(first.id)].metadata == first.metadata


async def test_why_a_model_read_nothing_is_told(notes):
    away = ScriptedModel({"ingest": [ModelUnavailable("it is away", hint="wake it")]})
    notes.write(EVOCLAW)
    ingested = await ingest(notes.work(model=ModelOrRules(away, read_prompts())), 2)
    assert counts(ingested) == (8, 8, 0)
    assert (ingested.mode, ingested.llm_fallbacks) == ("llm", 1)
    assert ingested.model_error == "it is away; wake it"


async def test_a_dry_run_tells_the_same_and_stores_nothing(notes):
    notes.write(f"{EVOCLAW}\n- [x] INSTALLED the same thing twice over\n")
    notes.write("- [x] installed the same thing twice over\n", "2026-11-20.md")
    dry = await notes.take_in(dry_run=True)
    assert await notes.texts() == []
    real = await notes.take_in()
    assert counts(dry) == counts(real) == (10, 9, 1)
    assert [fact.text for fact in dry.facts] == [fact.text for fact in real.facts]
    assert {fact.id for fact in dry.facts} == {UNSET}


async def test_a_fact_is_of_its_day_and_in_the_category_of_its_heading(notes):
    notes.write("## Boat\n- [x] Ordered the new mainsail\n## Deep\n- [x] Went further than ever\n")
    notes.write("- [x] Did something else yesterday\n", "2026-11-20.md")
    await notes.take_in(categories={"boat": "projects/boat", "deep": "a/b/c/d/e/f"})
    stored = await all_memories(notes.store)
    found = {memory.text.split()[0]: memory for memory in stored.values()}
    assert found["Ordered"].category == "projects/boat"
    assert found["Went"].category == "a/b/c/d"
    assert found["Went"].created_at == found["Did"].updated_at == NOW
    assert found["Did"].created_at == NOW - DAY + 3600


async def test_notes_of_a_pause_are_read_too(notes):
    notes.write("- [x] Did something before the long pause\n", "2026-11-12.md")
    await notes.store.write(lambda tx: meta.write(tx, "notes_read", NOW - 10 * DAY))
    assert (await notes.consolidate()).ingested_facts == 1
    assert await notes.store.read(lambda db: meta.read(db, "notes_read", float)) == NOW


# Each fact once


async def test_a_note_is_read_again_once_it_changed_and_gives_what_is_new_in_it(notes):
    notes.write("- [x] Ordered the new mainsail\n- [x] Painted the hull in green\n")
    await notes.take_in()
    again = await notes.take_in()
    assert counts(again) == (2, 0, 2)
    assert [file.status for file in again.files] == ["unchanged"]
    notes.write("## Boat\n- [x] Painted the hull in green\n- [x] Sold the old outboard motor\n")
    again = await notes.take_in()
    assert [fact.text for fact in again.facts] == ["Sold the old outboard motor"]
    assert len(await notes.texts()) == 3


async def test_words_in_any_script_are_recognised(notes):
    lines = [
        "Die Straße zum Büro ist gesperrt",
        "カルラは毎年春に索具を点検する",
        "L’eau n'est pas bonne ici",
    ]
    for number, line in enumerate(lines):
        await notes.add(line, f"known{number}")
    notes.write("".join(f"- [x] {line}\n" for line in lines))
    assert counts(await notes.take_in()) == (3, 0, 3)


async def test_what_was_forgotten_does_not_come_back_but_may_be_told_again(notes):
    path = notes.write("- [x] Ordered the new mainsail\n")
    [fact] = (await notes.take_in()).facts
    await notes.forget(str(fact.id))
    await notes.take_in()
    path.write_text("- [x] Ordered the new mainsail\n- [x] Painted the hull in green\n")
    await notes.take_in()
    assert await notes.texts() == ["Painted the hull in green"]
    # Nor where all that was noted of the note is lost.
    await notes.store.write(
        lambda tx: tx.db.execute("DELETE FROM meta WHERE key LIKE 'note/%'") and None
    )
    await notes.take_in()
    assert await notes.texts() == ["Painted the hull in green"]
    notes.write("- [x] Ordered the new mainsail\n", "2026-11-20.md")
    assert (await notes.take_in()).facts_stored == 1


async def test_two_devices_give_a_fact_of_a_shared_note_one_id(notes, open_store, make_place):
    notes.write(EVOCLAW)
    other = Notes(await open_store(make_place("other"), now=lambda: NOW + 60))
    other.write(EVOCLAW)
    await notes.take_in()
    await other.take_in()
    assert set(await all_memories(notes.store)) == set(await all_memories(other.store))


async def test_what_breaks_off_in_the_middle_of_a_note_goes_on(notes):
    notes.write("".join(f"- [x] Task number {n} of the long list is done\n" for n in range(100)))
    real, calls = notes.store.write, []

    async def fails_later(operation: Any) -> Any:
        calls.append(operation)
        if len(calls) == 3:
            raise DiskFull("the disk is full")
        return await real(operation)

    notes.store.write = fails_later  # type: ignore[method-assign, assignment]
    with pytest.raises(DiskFull):
        await notes.take_in()
    notes.store.write = real  # type: ignore[method-assign]
    before = await all_memories(notes.store)
    assert 0 < len(before) < 100
    assert counts(await notes.take_in()) == (100, 100 - len(before), len(before))
    assert len(await all_memories(notes.store)) == 100


# Files that should not be there


async def test_a_file_that_could_do_harm_is_named_and_left_alone(notes, tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("- [x] the password of the bank is swordfish\n")
    (notes.folder / "2026-11-21-a.md").symlink_to(secret)
    os.mkfifo(notes.folder / "2026-11-21-b.md")
    (notes.folder / "2026-11-21-c.md").mkdir()
    notes.write(b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe", "2026-11-21-d.md")
    notes.write("- [x] Jürgen was here\n".encode("latin-1"), "2026-11-21-e.md")
    notes.write("- [x] far too much text\n" * 2000, "2026-11-21-f.md")
    notes.write("- [x] Good\0bye to all of that\n", "2026-11-21-g.md")
    notes.write("- [x] The good one is still read\n", "2026-11-21-h.md")
    notes.write("- [x] with a mark at its beginning\n".encode("utf-8-sig"), "2026-11-21-i.md")
    ingested = await notes.take_in()
    assert [(file.file[11], file.status, file.why) for file in ingested.files] == [
        ("a", "refused", "it is a link"),
        ("b", "refused", "it is not a file"),
        ("c", "refused", "it is not a file"),
        ("d", "refused", "it is not UTF-8 text"),
        ("e", "refused", "it is not UTF-8 text"),
        ("f", "refused", "it is larger than 20 KB (ingest.max_note_kb)"),
        ("g", "refused", "it is not text"),
        ("h", "read", UNSET),
        ("i", "read", UNSET),
    ]
    assert sorted(await notes.texts()) == [
        "The good one is still read",
        "with a mark at its beginning",
    ]


async def test_a_folder_that_is_a_link_is_not_followed(notes, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / TODAY).write_text("- [x] Not for this agent at all\n")
    notes.folder.rmdir()
    notes.folder.symlink_to(elsewhere)
    ingested = await notes.take_in()
    assert [(file.file, file.why) for file in ingested.files] == [("memory", "it is a link")]


async def test_a_note_in_the_workspace_and_one_of_the_same_name_are_two(notes, tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / TODAY).write_text("- [x] Told in the workspace alone\n")
    notes.write("- [x] Told in the folder of the agent\n")
    notes.folders = (Folder("own", notes.folder), Folder("workspace", workspace))
    assert counts(await notes.take_in()) == (2, 2, 0)
    assert counts(await notes.take_in()) == (2, 0, 2)
