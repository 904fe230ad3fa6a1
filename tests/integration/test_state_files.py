"""The state files: soon, whole, in the shapes that older tools read, and within their caps."""

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

from daemon_process import until

from thermocline.daemon.memory import hot
from thermocline.daemon.store import state_files
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.records import documents, hot_rows, memories, memory_md
from thermocline.daemon.store.records.documents import (
    HOT_FILE,
    MARKDOWN_FILE,
    METRICS_FILE,
    TREE_FILE,
    WARM_FILE,
)


def read(store: AgentStore, name: str) -> Any:
    return json.loads((store.place.folder / name).read_text())


async def test_a_reader_never_meets_half_a_file(open_store, make_memory):
    store = await open_store(delay_seconds=0.0)
    await store.flush_state_files()
    written = threading.Event()
    reading = asyncio.create_task(asyncio.to_thread(_read_until, written, store.place.folder))
    for number in range(150):
        await store.write(lambda tx, n=number: memories.insert(tx, make_memory(n)))
    written.set()
    assert await reading > 0
    await store.close()
    assert not list(store.place.folder.glob(".*.tmp"))


def _read_until(written: threading.Event, folder: Path) -> int:
    reads = 0
    while not written.is_set():
        for name in (HOT_FILE, WARM_FILE, TREE_FILE, METRICS_FILE):
            json.loads((folder / name).read_text())
        reads += 1
    return reads


async def test_every_file_has_the_shape_that_evoclaw_reads(open_store, make_memory):
    store = await open_store()

    def fill(tx: Transaction) -> None:
        memories.insert(tx, make_memory(1, category="work/boat", importance=0.9))
        memories.insert(tx, make_memory(2, category="work"))
        memories.archive(tx, ["m00002"])
        state = hot_rows.load(tx.db)
        for key, value in (
            ("identity", {"agent_name": "Ada"}), ("owner_profile", {"timezone": "UTC"}),
            ("lesson", {"text": "measure twice"}), ("event", {"text": "hull done"}),
            ("task", {"text": "buy paint"}), ("project", {"name": "boat", "status": "active"}),
        ):  # fmt: skip
            state = hot.update(state, key, value, tx.now)
        hot_rows.save(tx, state)

    await store.write(fill)
    await store.flush_state_files()
    [record] = read(store, WARM_FILE)
    assert set(record) >= {
        *("id", "text", "category", "importance", "created_at", "access_count", "score"),
        *("metadata", "tier"),
    }
    assert set(record["metadata"]) == {"urls", "commands", "paths"}
    state = read(store, HOT_FILE)
    assert state["_schema_version"] == "2.0"
    assert state["identity"] == {"agent_name": "Ada"}
    assert state["owner_profile"] == {"timezone": "UTC"}
    assert set(state["critical_lessons"][0]) == {"text", "category", "importance", "timestamp"}
    assert set(state["active_context"]["events"][0]) == {"text", "timestamp"}
    assert set(state["active_context"]["tasks"][0]) == {"text", "status", "timestamp"}
    assert state["active_context"]["projects"] == [{"name": "boat", "status": "active"}]
    tree = read(store, TREE_FILE)
    assert tree["_schema_version"] == "2.0"
    assert tree["root"]["children"] == ["work"]
    assert (tree["root"]["warm_count"], tree["root"]["cold_count"]) == (1, 1)
    assert tree["work"]["children"] == ["work/boat"]
    assert set(tree["work/boat"]) == {
        *("desc", "warm_count", "cold_count", "last_access", "children")
    }
    assert type(tree["work/boat"]["last_access"]) is int
    metrics = read(store, METRICS_FILE)
    assert {*documents.STORED_METRICS, "_schema_version"} <= set(metrics)
    text = (store.place.folder / MARKDOWN_FILE).read_text()
    assert text.startswith(f"{memory_md.BEGIN}\n# MEMORY.md - Long-Term Context\n")
    assert text.endswith(f"{memory_md.END}\n")
    assert "- **Agent Name:** Ada" in text
    assert "### boat" in text


async def test_a_few_changes_are_shown_at_once_and_a_steady_load_every_ten_seconds(
    open_store, make_memory, monkeypatch
):
    monkeypatch.setattr(state_files, "_STEADY_SECONDS", 0.6)
    store = await open_store(delay_seconds=0.01)
    await until(lambda: not store.state_files_pending, "all are written")
    path, begun = store.place.folder / WARM_FILE, time.monotonic()
    shown: set[int] = set()
    while (elapsed := time.monotonic() - begun) < 1.2:
        number = int(elapsed * 1000)
        await store.write(lambda tx, n=number: memories.insert(tx, make_memory(n)))
        shown.add(path.stat().st_ino)
        await asyncio.sleep(0.02)
    # Three at once at most, and one for each 0.6 seconds; an inode may be used again.
    assert len(shown) <= 6
    await until(lambda: not store.state_files_pending, "all are written")
    assert f"word{number}" in path.read_text()
