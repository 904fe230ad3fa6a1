"""State files that somebody edits: merged, or set aside and said so; never a silent loss."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from thermocline.daemon.errors import InvalidInput
from thermocline.daemon.memory import hot
from thermocline.daemon.memory.hot import HotLimits
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.problems import Problems
from thermocline.daemon.store import edits, face_files, faces, hot_rows, key_values, memories
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.faces import HOT_FILE, KV_FILE, MARKDOWN_FILE, TREE_FILE, WARM_FILE
from thermocline.daemon.store.opening import Place
from thermocline.daemon.store.rows import SELECT, from_row
from thermocline.daemon.store.transaction import Rules, Transaction

OpenStore: TypeAlias = Callable[..., Awaitable[AgentStore]]
MakePlace: TypeAlias = Callable[..., Place]
MakeMemory: TypeAlias = Callable[..., Memory]
Edit: TypeAlias = Callable[[Any], Any]
NAMES = (HOT_FILE, WARM_FILE, TREE_FILE, KV_FILE)


async def fill(store: AgentStore, make_memory: MakeMemory) -> None:
    """Something of every kind, and the files that show it."""

    def write(tx: Transaction) -> None:
        for number in range(4):
            memories.insert(tx, make_memory(number, category="work/boat"))
            key_values.put(tx, f"key{number}", f"value {number}")
        state = hot_rows.load(tx.db)
        for key, value in (
            ("identity", {"agent_name": "Ada", "owner_name": "Bo"}),
            ("lesson", {"text": "measure twice", "importance": 0.9}),
            ("task", {"text": "paint the hull"}),
        ):
            state = hot.update(state, key, value, tx.now)
        hot_rows.save(tx, state)

    await store.write(write)
    assert await store.flush_faces()


def edit(path: Path, change: Edit) -> None:
    """Rewrite a JSON file as an editor would."""
    document = json.loads(path.read_text())
    changed = change(document)
    path.write_text(json.dumps(document if changed is None else changed, indent=1))


def put(path: Path, content: bytes) -> None:
    """Write a file that has stood there for a while."""
    new = path.with_name("new")
    new.write_bytes(content)
    os.utime(new, (1_700_000_000, 1_700_000_000))
    new.replace(path)


async def texts(store: AgentStore) -> dict[str, str]:
    return await store.read(
        lambda db: {memory.id: memory.text for memory in map(from_row, db.execute(SELECT))}
    )


async def pairs(store: AgentStore) -> dict[str, str]:
    return await store.read(lambda db: dict(db.execute("SELECT key, value FROM kv").fetchall()))


async def paths(store: AgentStore) -> dict[str, str]:
    return await store.read(lambda db: dict(db.execute("SELECT path, desc FROM tree").fetchall()))


async def state(store: AgentStore) -> hot.HotState:
    return await store.read(hot_rows.load)


@pytest.fixture(params=["running", "stopped"])
async def edited(
    request: pytest.FixtureRequest,
    open_store: OpenStore,
    make_place: MakePlace,
    make_memory: MakeMemory,
) -> Callable[[str, Edit], Awaitable[AgentStore]]:
    """`await edited(name, change)` edits a file of a filled memory and lets the daemon see it."""

    async def make(name: str, change: Edit) -> AgentStore:
        place = make_place()
        store = await open_store(place)
        await fill(store, make_memory)
        if request.param == "stopped":
            await store.close()
        edit(place.folder / name, change)
        if request.param == "stopped":
            store = await open_store(place)
            assert await store.flush_faces()
        else:
            await store.look()
        return store

    return make


async def test_a_text_changed_in_the_warm_file_is_the_memorys_new_text(
    edited: Callable[[str, Edit], Awaitable[AgentStore]],
) -> None:
    store = await edited(WARM_FILE, lambda document: document[0].update(text="now it is zebra"))
    found = await texts(store)
    assert max(found.values()) == "now it is zebra"
    row = await store.read(
        lambda db: db.execute(
            "SELECT count(*) FROM memory_fts WHERE memory_fts MATCH 'zebra'"
        ).fetchone()
    )
    assert row == (1,)


async def test_a_record_added_to_the_warm_file_is_remembered(
    edited: Callable[[str, Edit], Awaitable[AgentStore]],
) -> None:
    added = {"id": "byhand", "text": "written by hand", "importance": 0.8}
    store = await edited(WARM_FILE, lambda document: document.append(added))
    assert (await texts(store))["byhand"] == "written by hand"


async def test_a_record_taken_out_of_the_warm_file_is_archived_and_not_forgotten(
    edited: Callable[[str, Edit], Awaitable[AgentStore]],
) -> None:
    store = await edited(WARM_FILE, lambda document: document[1:])
    assert len(await texts(store)) == 4
    archived = await store.read(
        lambda db: db.execute(f"{SELECT} WHERE archived_at IS NOT NULL").fetchall()
    )
    assert len(archived) == 1


async def test_the_hot_file_takes_changes_additions_and_removals(
    edited: Callable[[str, Edit], Awaitable[AgentStore]],
) -> None:
    def change(document: Any) -> None:
        document["identity"]["agent_name"] = "Grace"
        del document["identity"]["owner_name"]
        document["critical_lessons"].append("cut once")
        document["active_context"]["tasks"] = []

    found = await state(await edited(HOT_FILE, change))
    assert found.identity == {"agent_name": "Grace"}
    assert [lesson["text"] for lesson in found.lessons] == ["measure twice", "cut once"]
    assert found.tasks == ()


async def test_the_tree_file_takes_changes_additions_and_removals_of_empty_categories(
    edited: Callable[[str, Edit], Awaitable[AgentStore]],
) -> None:
    def change(document: Any) -> None:
        document["work"]["desc"] = "What is done for money"
        del document["work/boat"]
        document["play/chess"] = "Openings"

    found = await paths(await edited(TREE_FILE, change))
    assert found["work"] == "What is done for money"
    assert found["play/chess"] == "Openings"
    assert "work/boat" in found  # It has memories.


async def test_the_key_value_file_takes_changes_additions_and_removals(
    edited: Callable[[str, Edit], Awaitable[AgentStore]],
) -> None:
    def change(document: Any) -> None:
        document["key0"]["value"] = "changed"
        del document["key1"]
        document["new"] = "plain"

    found = await pairs(await edited(KV_FILE, change))
    assert found == {"key0": "changed", "key2": "value 2", "key3": "value 3", "new": "plain"}


async def test_what_an_edit_changed_is_kept_as_it_was_before(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory, problems: Problems
) -> None:
    place = make_place()
    store = await open_store(place)
    await fill(store, make_memory)
    path = place.folder / KV_FILE
    for value in ("first", "second"):
        edit(path, lambda document, value=value: document["key0"].update(value=value))
        await store.look()
    kept = sorted(place.folder.glob(f"{KV_FILE}.before-*"))
    shown = {json.loads(file.read_text())["key0"]["value"] for file in kept}
    assert shown == {"value 0", "first"}
    assert "state_file_edited" in {problem.code for problem in problems.standing()}


async def test_an_untouched_file_leaves_nothing_behind(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory, problems: Problems
) -> None:
    place = make_place()
    store = await open_store(place)
    await fill(store, make_memory)
    path = place.folder / KV_FILE
    path.write_text(path.read_text() + "\n")  # Saved by an editor, and nothing changed.
    await store.look()
    await store.close()
    store = await open_store(place)
    await store.look()
    await store.flush_faces()
    assert not [file.name for file in place.folder.iterdir() if "before-" in file.name]
    assert problems.standing() == []


async def test_what_the_database_has_changed_since_wins_over_the_file(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory
) -> None:
    place = make_place()
    store = await open_store(place, delay_seconds=600.0)
    await fill(store, make_memory)

    def newer(tx: Transaction) -> None:
        key_values.put(tx, "key0", "newer")
        key_values.delete(tx, "key1")
        key_values.put(tx, "key9", "added")
        memory = memories.find(tx.db, "m00000")
        memories.replace(tx, memory, make_memory(0, text="newer text", category="work/boat"))
        memories.delete(tx, memories.find(tx.db, "m00001"))
        memories.insert(tx, make_memory(9))

    await store.write(newer)
    edit(place.folder / KV_FILE, lambda document: document.update(key0="older", key2="edited"))
    edit(place.folder / WARM_FILE, lambda document: [r | {"text": "by hand"} for r in document])
    await store.look()
    found = await pairs(store)
    assert found == {"key0": "newer", "key2": "edited", "key3": "value 3", "key9": "added"}
    remembered = await texts(store)
    assert remembered["m00000"] == "newer text"
    assert "m00001" not in remembered
    assert remembered["m00002"] == "by hand"
    assert remembered["m00009"] == make_memory(9).text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "content",
    [b"{", b"", b"\xff\xfe", b"[" * 100_000, b"5", b"null", b'{"key0": 1e999}'],
    ids=["cut", "empty", "no text", "deep", "number", "null", "infinite"],
)
async def test_a_broken_file_is_set_aside_and_written_anew(
    open_store: OpenStore,
    make_place: MakePlace,
    make_memory: MakeMemory,
    problems: Problems,
    name: str,
    content: bytes,
) -> None:
    place = make_place()
    store = await open_store(place)
    await fill(store, make_memory)
    before = await texts(store), await pairs(store), await paths(store), await state(store)
    put(place.folder / name, content)
    await store.look()
    assert before == (
        await texts(store),
        await pairs(store),
        await paths(store),
        await state(store),
    )
    [aside] = place.folder.glob(f"{name}.corrupt-*")
    assert aside.read_bytes() == content
    assert json.loads((place.folder / name).read_text())
    [problem] = [p for p in problems.standing() if p.code == "state_file_set_aside"]
    assert aside.name in problem.message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (KV_FILE, '{"key0": "\\ud800"}'),
        (KV_FILE, '{"\\u0000": "nul", "key0": "x"}'),
        (WARM_FILE, '[{"id": "m00000", "text": "\\ud800"}]'),
        (WARM_FILE, '[{"id": "m00000", "text": "x", "data": {"\\ud800": 1}}]'),
        (WARM_FILE, '[{"id": "m00000", "text": "x", "data": 123456789012345678901234567890}]'),
        (WARM_FILE, '[{"id": "m00000", "text": "x", "position": 9223372036854775808}]'),
        (WARM_FILE, '[{"id": "m00000", "text": "x", "expires_at": "in a while"}]'),
        (HOT_FILE, '{"identity": {"\\ud800": "x"}}'),
        (HOT_FILE, '{"identity": {"n": 1e400}}'),
        (TREE_FILE, '{"root": {}, "a\\u0000b": "x"}'),
    ],
)
async def test_no_content_stops_the_daemon_from_writing_its_files(
    open_store: OpenStore,
    make_place: MakePlace,
    make_memory: MakeMemory,
    name: str,
    content: str,
) -> None:
    place = make_place()
    store = await open_store(place)
    await fill(store, make_memory)
    put(place.folder / name, content.encode())
    await store.look()
    await store.write(lambda tx: key_values.put(tx, "later", "still written"))
    assert await store.flush_faces()
    assert json.loads((place.folder / KV_FILE).read_text())["later"]["value"] == "still written"
    assert json.loads((place.folder / name).read_bytes())


async def test_a_file_that_is_still_being_written_is_neither_set_aside_nor_written_over(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory, problems: Problems
) -> None:
    place = make_place()
    store = await open_store(place)
    await fill(store, make_memory)
    path = place.folder / KV_FILE
    document = json.loads(path.read_text())
    document["key0"]["value"] = "by hand"
    whole = json.dumps(document)
    with path.open("w") as file:
        file.write(whole[:20])
        file.flush()
        await store.write(lambda tx: key_values.put(tx, "key1", "meanwhile"))
        await store.flush_faces()
        file.write(whole[20:])
    await store.look()
    found = await pairs(store)
    assert (found["key0"], found["key1"]) == ("by hand", "meanwhile")
    assert {problem.code for problem in problems.standing()} == {"state_file_edited"}


@pytest.mark.parametrize(
    ("name", "content"), [(HOT_FILE, "{}"), (WARM_FILE, "[]"), (TREE_FILE, "{}"), (KV_FILE, "{}")]
)
async def test_an_emptied_file_is_refused(
    open_store: OpenStore,
    make_place: MakePlace,
    make_memory: MakeMemory,
    name: str,
    content: str,
) -> None:
    place = make_place()
    store = await open_store(place)
    await fill(store, make_memory)
    put(place.folder / name, content.encode())
    await store.look()
    assert list(place.folder.glob(f"{name}.corrupt-*"))
    assert len(await texts(store)) == 4
    archived = await store.read(
        lambda db: db.execute("SELECT count(*) FROM memories WHERE archived_at > 0").fetchone()
    )
    assert archived == (0,)
    assert len(await pairs(store)) == 4
    assert (await state(store)).identity


async def test_an_edited_memory_md_is_set_aside_and_written_anew(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory
) -> None:
    place = make_place()
    store = await open_store(place)
    await fill(store, make_memory)
    path = place.folder / MARKDOWN_FILE
    written = path.read_text()
    path.write_text("# Mine\n")
    await store.look()
    [aside] = place.folder.glob(f"{MARKDOWN_FILE}.edited-*")
    assert aside.read_text() == "# Mine\n"
    assert path.read_text().splitlines()[0] == written.splitlines()[0]


@pytest.mark.parametrize("name", [*NAMES, faces.METRICS_FILE, MARKDOWN_FILE])
async def test_a_state_file_that_was_deleted_comes_back(
    open_store: OpenStore,
    make_place: MakePlace,
    make_memory: MakeMemory,
    problems: Problems,
    name: str,
) -> None:
    place = make_place()
    store = await open_store(place)
    await fill(store, make_memory)
    before = await texts(store), await pairs(store), await state(store)
    (place.folder / name).unlink()
    await store.look()
    assert (place.folder / name).stat().st_size > 2
    assert before == (await texts(store), await pairs(store), await state(store))
    assert problems.standing() == []


async def test_narrower_limits_do_not_make_a_hand_edit_remove_what_the_file_no_longer_shows(
    open_store: OpenStore, make_place: MakePlace
) -> None:
    place = make_place()
    store = await open_store(place)

    def learn(tx: Transaction) -> None:
        found = hot_rows.load(tx.db)
        for number in range(8):
            lesson = {"text": f"lesson {number}", "importance": 0.1 * number}
            found = hot.update(found, "lesson", lesson, tx.now)
        hot_rows.save(tx, found)

    await store.write(learn)
    await store.close()
    store = await open_store(place, rules=Rules(hot=HotLimits(max_lessons=2)))
    await store.flush_faces()
    edit(place.folder / HOT_FILE, lambda document: document["identity"].update(name="Ada"))
    await store.look()
    found = {lesson["text"] for lesson in (await state(store)).lessons}
    kept = found | {text.rpartition(": ")[2] for text in (await texts(store)).values()}
    assert {f"lesson {number}" for number in range(8)} <= kept


async def test_an_edit_made_while_the_daemon_writes_is_not_overwritten(tmp_path: Path) -> None:
    files = face_files.FaceFiles(tmp_path, {}, {}, {})
    files.write([faces.Rendered(KV_FILE, b"ours")])
    assert files.foreign([KV_FILE]) == {}
    (tmp_path / KV_FILE).write_bytes(b"by hand, just now")
    written = files.write([faces.Rendered(KV_FILE, b"newer")])
    assert written.digests == {}
    assert files.foreign([KV_FILE]) == {KV_FILE: b"by hand, just now"}


async def test_what_was_written_before_several_kills_is_no_edit(tmp_path: Path) -> None:
    """Killed after a write that was not noted, and again before the next one."""
    files = face_files.FaceFiles(tmp_path, {}, {}, {})
    announced = files.announcement([faces.Rendered(KV_FILE, b"first")])
    files.write([faces.Rendered(KV_FILE, b"first")])
    for text in (b"second", b"third"):
        again = face_files.FaceFiles(tmp_path, {}, {}, announced)
        assert again.foreign([KV_FILE]) == {}
        announced = again.announcement([faces.Rendered(KV_FILE, text)])
    last = face_files.FaceFiles(tmp_path, {}, {}, announced)
    assert last.foreign([KV_FILE]) == {}
    assert last.write([faces.Rendered(KV_FILE, b"fourth")]).digests.keys() == {KV_FILE}
    later = last.announcement([faces.Rendered(KV_FILE, b"fifth")])
    assert len(later[KV_FILE]) == 2
    (tmp_path / KV_FILE).write_bytes(b"by hand")
    assert last.foreign([KV_FILE]) == {KV_FILE: b"by hand"}


async def test_a_file_that_cannot_be_written_does_not_keep_the_others_from_it(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory, problems: Problems
) -> None:
    place = make_place()
    store = await open_store(place)
    (place.folder / HOT_FILE).unlink(missing_ok=True)
    await store.flush_faces()
    (place.folder / HOT_FILE).unlink()
    (place.folder / HOT_FILE).mkdir()
    await store.write(lambda tx: memories.insert(tx, make_memory(1)))
    assert not await store.flush_faces()
    assert "word1" in (place.folder / WARM_FILE).read_text()
    assert "state_files_behind" in {problem.code for problem in problems.standing()}
    (place.folder / HOT_FILE).rmdir()
    assert await store.flush_faces()
    assert problems.standing() == []


async def test_closing_in_the_midst_of_writing_leaves_the_newest_state_in_the_files(
    open_store: OpenStore, make_place: MakePlace, problems: Problems
) -> None:
    place = make_place()
    for attempt in range(15):
        store = await open_store(place, delay_seconds=0.0)
        for number in range(3):
            key = f"k{attempt}-{number}"
            await store.write(lambda tx, key=key: key_values.put(tx, key, "v"))
            await asyncio.sleep(attempt / 3000)
        await store.close()
        assert f"k{attempt}-2" in json.loads((place.folder / KV_FILE).read_text())
    store = await open_store(place)
    assert len(await pairs(store)) == 45
    assert problems.standing() == []


def merge_at_function_level(
    open_copy: sqlite3.Connection, name: str, content: bytes, clock: int
) -> None:
    """Merge as the daemon does, in one transaction that an error undoes."""
    ticks = iter(range(clock + 1, clock + 1_000_000))
    open_copy.execute("BEGIN IMMEDIATE")
    tx = Transaction(
        open_copy, now=time.time(), device="d", rules=Rules(), tick=lambda: next(ticks)
    )
    try:
        edits.merge(tx, name, content, clock)
    except InvalidInput:
        open_copy.execute("ROLLBACK")
    else:
        open_copy.execute("COMMIT")


def damaged_contents(content: bytes, step: int) -> list[bytes]:
    """`content` cut at each length, and with a bit of each byte turned over, every `step` bytes."""
    cut = [content[:length] for length in range(0, len(content), step)]
    flips = (0x01, 0x04, 0x20, 0x80)
    turned = [
        content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :]
        for at in range(0, len(content), step)
        for flip in flips
    ]
    return cut + turned


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.crash), pytest.param(17, id="sampled")]
)
async def test_no_damage_to_a_file_loses_a_text_without_a_copy_of_it(
    open_store: OpenStore, make_place: MakePlace, make_memory: MakeMemory, name: str, step: int
) -> None:
    place = make_place()
    store = await open_store(place)
    await fill(store, make_memory)
    await store.close()
    content = (place.folder / name).read_bytes()
    source = sqlite3.connect(place.database)
    clock = faces.version(source)
    count = source.execute("SELECT count(*) FROM memories").fetchone()
    db = sqlite3.connect(":memory:", isolation_level=None)
    for damaged in damaged_contents(content, step):
        source.backup(db)
        merge_at_function_level(db, name, damaged, clock)
        # The daemon keeps what the file said before an edit; what no file shows must be there.
        assert db.execute("SELECT count(*) FROM memories").fetchone() >= count, damaged
        if name != WARM_FILE:
            assert {m.text for m in map(from_row, db.execute(SELECT))} >= {
                make_memory(number).text for number in range(4)
            }
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    source.close()
    db.close()
