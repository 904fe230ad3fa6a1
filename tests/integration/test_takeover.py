"""Folders that older tools left: everything in them is taken over, and nothing in them is lost."""

import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest
from agent_files import set_aside

from thermocline.daemon.config.settings import Rules
from thermocline.daemon.errors import ThermoclineError
from thermocline.daemon.memory.hot import HotState
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.records import hot_rows, memories
from thermocline.daemon.store.records.documents import HOT_FILE, METRICS_FILE, TREE_FILE, WARM_FILE
from thermocline.daemon.store.records.memory_rows import SELECT, from_row

SAMPLES = Path(__file__).parents[1] / "fixtures" / "imports"


def sample(name: str) -> dict[str, Any]:
    """The state files of an older tool, by name."""
    return {path.name: json.loads(path.read_text()) for path in (SAMPLES / name).iterdir()}


# What else they wrote is in `tests/data/state_files.jsonl`.
VARIANTS = {"skill": sample("evoclaw-skill"), "go": sample("evoclaw-go")}
SKILL_HOT, SKILL_TREE = VARIANTS["skill"][HOT_FILE], VARIANTS["skill"][TREE_FILE]
[FACT] = VARIANTS["skill"][WARM_FILE]


def leave(folder: Path, files: dict[str, Any]) -> None:
    """Write files as an older tool does."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in files.items():
        (folder / name).write_text(json.dumps(document, indent=2))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


async def remembered(store: AgentStore) -> list[Memory]:
    return await store.read(lambda db: [from_row(row) for row in db.execute(SELECT)])


async def hot_state(store: AgentStore) -> HotState:
    return await store.read(hot_rows.load)


async def assert_taken_over(store: AgentStore) -> None:
    """The one fact, lesson, project and category that every variant has."""
    [memory] = await remembered(store)
    assert (memory.id, memory.text) == (FACT["id"], FACT["text"])
    assert memory.category == "technical/server"
    assert 1_700_000_000 < memory.created_at < 1_800_000_000
    state = await hot_state(store)
    assert [lesson["text"] for lesson in state.lessons] == ["measure twice"]
    assert [project["name"] for project in state.projects] == ["boat"]
    assert "Ada" in state.identity.values()
    tree = await store.read(lambda db: dict(db.execute("SELECT path, desc FROM tree").fetchall()))
    assert tree["technical/server"] == "Servers"
    found = await store.read(
        lambda db: db.execute(
            "SELECT count(*) FROM memory_fts WHERE memory_fts MATCH 'garage'"
        ).fetchone()
    )
    assert found == (1,)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("below", [".", "memory", "memory/default"])
async def test_a_folder_dropped_in_as_an_agents_is_taken_over(
    open_store, make_place, problems, variant, below
):
    place = make_place()
    leave(place.folder / below, VARIANTS[variant])
    store = await open_store(place)
    await assert_taken_over(store)
    await store.flush_state_files()
    assert problems.current() == []
    assert set_aside(place.folder) == []


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("agent", "below"),
    [("default", "memory"), ("default", "memory/default"), ("ada", "memory/ada")],
)
async def test_a_configured_workspace_is_taken_over_and_left_as_it_is(
    open_store, make_place, problems, tmp_path, variant, agent, below
):
    workspace = tmp_path / "workspace"
    leave(workspace / below, VARIANTS[variant])
    (workspace / "memory" / "2026-02-11.md").write_text("# A day\n")
    before = snapshot(workspace)
    store = await open_store(make_place(agent, workspace=workspace))
    await assert_taken_over(store)
    await store.close()
    after = snapshot(workspace)
    markdown = "MEMORY.md" if agent == "default" else f"MEMORY-{agent}.md"
    assert "measure twice" in after.pop(markdown).decode()
    assert after == before
    assert problems.current() == []


async def test_another_agents_memory_in_the_workspace_is_not_taken_over(
    open_store, make_place, tmp_path
):
    workspace = tmp_path / "workspace"
    leave(workspace / "memory", VARIANTS["skill"])
    store = await open_store(make_place("ada", workspace=workspace))
    assert await remembered(store) == []


async def test_the_originals_are_kept_and_the_report_says_what_was_read(open_store, make_place):
    place = make_place()
    leave(place.folder, VARIANTS["skill"])
    (place.folder / "MEMORY.md").write_text("# Old\n")
    (place.folder / METRICS_FILE).write_text("{broken")
    originals = snapshot(place.folder)
    await (await open_store(place)).close()
    report = json.loads((place.folder / "takeover-report.json").read_text())
    kept = place.folder / report["originals_kept_in"]
    assert kept.name.startswith("before-takeover-")
    assert snapshot(kept) == originals
    assert report["stored"] == {"memory": 1, "hot": 8, "category": 3}
    assert {Path(entry["file"]).name for entry in report["read"]} == {
        WARM_FILE,
        HOT_FILE,
        TREE_FILE,
    }
    [fault] = report["left_out"]
    assert METRICS_FILE in fault


async def test_a_replaced_memory_md_of_the_workspace_is_kept(open_store, make_place, tmp_path):
    workspace = tmp_path / "workspace"
    leave(workspace / "memory", VARIANTS["skill"])
    (workspace / "MEMORY.md").write_text("# Written by somebody\n")
    place = make_place(workspace=workspace)
    await (await open_store(place)).close()
    kept = [path.read_text() for path in place.folder.glob("before-takeover-*/MEMORY.md")]
    assert kept == ["# Written by somebody\n"]
    assert {path.name for path in workspace.iterdir()} == {"memory", "MEMORY.md"}


async def test_a_thousand_facts_above_the_cap_are_all_there(open_store, make_place):
    facts = [
        {
            "id": f"{number:012x}",
            "text": f"fact number {number} " + "padding " * 20,
            "category": f"area{number % 70}/part{number % 11}",
            "importance": (number % 100) / 100,
            "created_at": time.time() - number,
        }
        for number in range(1000)
    ]
    place = make_place()
    leave(place.folder, {WARM_FILE: facts})
    store = await open_store(place)
    found = {memory.id: memory for memory in await remembered(store)}
    assert {key: memory.text for key, memory in found.items()} == {
        fact["id"]: fact["text"] for fact in facts
    }
    for fact in facts:
        memory = found[str(fact["id"])]
        assert fact["category"] in {memory.category, memory.original_category}
    await store.close()
    warm = (place.folder / WARM_FILE).read_text()
    assert len(warm.encode()) <= Rules().warm.max_bytes
    assert 0 < len(json.loads(warm)) < 1000


async def test_a_second_start_does_not_take_over_again(open_store, make_place, tmp_path):
    workspace = tmp_path / "workspace"
    leave(workspace / "memory", VARIANTS["skill"])
    place = make_place(workspace=workspace)
    store = await open_store(place)
    await store.write(lambda tx: memories.delete(tx, memories.find(tx.db, str(FACT["id"]))))
    await store.close()
    report = (place.folder / "takeover-report.json").stat().st_mtime_ns
    store = await open_store(place)
    assert await remembered(store) == []
    assert (place.folder / "takeover-report.json").stat().st_mtime_ns == report


async def test_a_workspace_named_later_is_taken_over_beside_what_there_is(
    open_store, make_place, make_memory, tmp_path
):
    await (await open_store(make_place())).close()
    store = await open_store(make_place())
    await store.write(lambda tx: memories.insert(tx, make_memory(1)))
    await store.close()
    workspace = tmp_path / "workspace"
    leave(workspace / "memory", VARIANTS["skill"])
    store = await open_store(make_place(workspace=workspace))
    assert {memory.id for memory in await remembered(store)} == {"m00001", FACT["id"]}


async def test_an_interrupted_take_over_begins_again(open_store, make_place):
    place = make_place()
    leave(place.folder, VARIANTS["skill"])
    for name in ("memory.db.building", "memory.db.building-wal"):
        (place.folder / name).write_bytes(b"half of a database")
    store = await open_store(place)
    await assert_taken_over(store)
    assert not list(place.folder.glob("*.building*"))


async def test_a_complete_database_that_was_not_moved_in_is_moved_in_at_the_next_opening(
    open_store, make_place, make_memory
):
    place = make_place()
    store = await open_store(place)
    await store.write(lambda tx: memories.insert(tx, make_memory(1)))
    await store.close()
    place.database.rename(place.folder / "memory.db.rebuilt")
    place.database.write_bytes(b"what was set aside too late")
    store = await open_store(place)
    assert [memory.id for memory in await remembered(store)] == ["m00001"]
    [aside] = place.folder.glob("memory.db.corrupt-*")
    assert aside.read_bytes() == b"what was set aside too late"


async def test_files_that_are_read_only_or_have_other_names_too_are_taken_over(
    open_store, make_place, tmp_path
):
    elsewhere = tmp_path / "elsewhere"
    leave(elsewhere, VARIANTS["skill"])
    place = make_place()
    place.folder.mkdir(parents=True)
    for name in VARIANTS["skill"]:
        (elsewhere / name).chmod(0o400)
        os.link(elsewhere / name, place.folder / name)
    before = snapshot(elsewhere)
    store = await open_store(place)
    await assert_taken_over(store)
    await store.flush_state_files()
    assert snapshot(elsewhere) == before


@pytest.mark.parametrize("what", ["file", "folder", "memory"])
async def test_a_link_in_a_workspace_to_another_agents_file_is_not_read(
    open_store, make_place, tmp_path, what
):
    private = tmp_path / "agents" / "bob"
    leave(private, {WARM_FILE: [FACT]})
    workspace = tmp_path / "workspace"
    folder = workspace / "memory" / "ada"
    if what == "file":
        folder.mkdir(parents=True)
        (folder / WARM_FILE).symlink_to(private / WARM_FILE)
    elif what == "folder":
        folder.parent.mkdir(parents=True)
        folder.symlink_to(private)
    else:
        workspace.mkdir()
        (tmp_path / "agents" / "ada").symlink_to(private)
        (workspace / "memory").symlink_to(tmp_path / "agents")
    place = make_place("ada", folder=tmp_path / "state" / "ada", workspace=workspace)
    store = await open_store(place)
    assert await remembered(store) == []
    report = json.loads((place.folder / "takeover-report.json").read_text())
    assert [line for line in report["left_out"] if "link" in line]


async def test_a_pipe_in_place_of_a_state_file_holds_nobody_up(open_store, make_place, tmp_path):
    workspace = tmp_path / "workspace"
    leave(workspace / "memory", {TREE_FILE: SKILL_TREE})
    os.mkfifo(workspace / "memory" / WARM_FILE)
    place = make_place(workspace=workspace)
    store = await open_store(place)
    tree = await store.read(lambda db: dict(db.execute("SELECT path, desc FROM tree").fetchall()))
    assert tree["technical/server"] == "Servers"
    report = json.loads((place.folder / "takeover-report.json").read_text())
    [line] = report["left_out"]
    assert "is not a file" in line


async def test_a_state_file_of_a_gigabyte_is_set_aside_unread(open_store, make_place, tmp_path):
    workspace = tmp_path / "workspace"
    place = make_place(workspace=workspace)
    leave(place.folder, {HOT_FILE: SKILL_HOT})
    leave(workspace / "memory", {})
    for folder in (place.folder, workspace / "memory"):
        with (folder / WARM_FILE).open("wb") as file:
            file.truncate(1 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    store = await open_store(place)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000
    assert (await hot_state(store)).identity["agent_name"] == "Ada"
    [aside] = place.folder.glob(f"{WARM_FILE}.too-large-*")
    assert aside.stat().st_size == 1 << 30
    report = json.loads((place.folder / "takeover-report.json").read_text())
    assert len([line for line in report["left_out"] if "more than" in line]) == 2
    # The workspace is somebody else's.
    assert (workspace / "memory" / WARM_FILE).stat().st_size == 1 << 30


async def test_the_report_and_the_log_name_what_was_left_out(
    open_store, make_place, tmp_path, caplog
):
    workspace = tmp_path / "workspace"
    leave(workspace / "memory", {WARM_FILE: [FACT | {"mood": "x"}, FACT | {"id": "2", "mood": 1}]})
    leave(workspace / "memory" / "ada", {HOT_FILE: SKILL_HOT})
    leave(workspace / "memory" / "not an agent", {HOT_FILE: SKILL_HOT})
    place = make_place(workspace=workspace)
    await open_store(place)
    report = json.loads((place.folder / "takeover-report.json").read_text())
    keys, agent = report["left_out"]
    assert "unknown key 'mood' (2 times)" in keys
    assert str(workspace / "memory" / "ada") in agent
    assert "--agent-id ada" in agent
    assert "'mood'" in caplog.text
    assert "--agent-id ada" in caplog.text


async def test_records_that_cannot_be_read_are_named_and_the_others_taken(open_store, make_place):
    place = make_place()
    facts = [FACT, 5, {"id": "x"}, FACT | {"id": "high", "text": "other"}]
    leave(place.folder, {WARM_FILE: facts})
    store = await open_store(place)
    assert {memory.id for memory in await remembered(store)} == {FACT["id"], "high"}
    report = json.loads((place.folder / "takeover-report.json").read_text())
    assert len(report["left_out"]) == 2


async def test_a_take_over_that_the_disk_refuses_leaves_everything_for_the_next(
    open_store, make_place
):
    place = make_place()
    leave(place.folder, VARIANTS["skill"])
    before = snapshot(place.folder)
    # Stands in the way of the new database, as a full disk would.
    (place.folder / "memory.db.building").mkdir()
    with pytest.raises((OSError, ThermoclineError), match="directory"):
        await open_store(place)
    (place.folder / "memory.db.building").rmdir()
    assert {name: snapshot(place.folder)[name] for name in before} == before
    await assert_taken_over(await open_store(place))
