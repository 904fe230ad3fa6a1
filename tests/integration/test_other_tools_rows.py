"""What EvoClaw writes into the tables that it shares with us, and what it finds there."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import changes
import pytest
from devices import AGENT, Clock, Device, meet

from thermocline.daemon.memory.records import Memory
from thermocline.sync import TryLater
from thermocline.sync.faulty import Fault

MakeDevice = Callable[..., Device]
AT = 1_600_000_000


@pytest.fixture
def one(make_device: MakeDevice) -> Device:
    return make_device("one")


@pytest.fixture
def two(make_device: MakeDevice) -> Device:
    return make_device("two")


class EvoClaw:
    """Its own statements, on the file that stands for the server."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)

    def close(self) -> None:
        self._db.close()

    def archive(self, key: str, text: Any, category: str = "work", **more: Any) -> None:
        fields = {"importance": 0.5, "created_at": AT, "access_count": 0} | more
        self._db.execute(
            "INSERT OR REPLACE INTO cold_memories"
            " (id, agent_id, text, category, importance, created_at, access_count)"
            " VALUES (:id, :agent, :text, :category, :importance, :created_at, :access_count)",
            {"id": key, "agent": AGENT, "text": text, "category": category, **fields},
        )

    def publish(self, data: str) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO critical_state (agent_id, data, updated_at) VALUES (?, ?, ?)",
            (AGENT, data, AT),
        )

    def statements(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT id, text FROM cold_memories"))

    def critical(self) -> tuple[dict[str, Any], int | None]:
        data, version = self._db.execute("SELECT data, version FROM critical_state").fetchone()
        return json.loads(data), version


@pytest.fixture
def evoclaw(tmp_path: Path) -> Iterator[EvoClaw]:
    tool = EvoClaw(tmp_path / "remote.db")
    yield tool
    tool.close()


async def test_what_it_archives_every_device_takes_over_once(
    one: Device, two: Device, evoclaw: EvoClaw
) -> None:
    await meet(one, two)
    evoclaw.archive("e1", "see https://example.org", importance=0.8, access_count=3)
    found = await meet(one, two)
    [memory] = [value for (kind, _), (_, value) in found.live.items() if kind == "memory"]
    assert (memory["text"], memory["importance"]) == ("see https://example.org", 0.8)
    assert memory["metadata"].urls == ("https://example.org",)
    assert found.counts["e1"][0] == 3
    category, _, archived_at = found.live["place", "e1"][1]
    assert (category, archived_at) == ("work", one.now())
    assert evoclaw.statements() == {"e1": "see https://example.org"}


@pytest.mark.parametrize(
    "fields",
    [
        {"created_at": 1_600_000_000_123},
        {"created_at": -5},
        {"created_at": 1 << 62},
        {"importance": None},
        {"importance": 7.5},
        {"importance": "high"},
        {"access_count": -3},
        {"access_count": None},
        {"category": "../../etc"},
        {"category": ""},
        {"category": "a/b/c/d/e/f/g"},
        {"text": "x" * 200_000},
    ],
)
async def test_odd_values_of_its_rows_are_made_the_best_of(
    one: Device, two: Device, evoclaw: EvoClaw, fields: dict[str, Any]
) -> None:
    await meet(one, two)
    evoclaw.archive("e1", **{"text": "odd", **fields})
    found = await meet(one, two)
    assert ("memory", "e1") in found.live
    for device in (one, two):
        async with device.agents.use(AGENT, create=False) as store:
            assert await store.flush_faces()


@pytest.mark.parametrize("text", ["", "  \n", "a\0b"])
async def test_a_row_of_its_own_without_a_text_is_left_alone(
    one: Device, evoclaw: EvoClaw, text: str
) -> None:
    await one.sync()
    evoclaw.archive("e1", text)
    evoclaw.archive("e2", "sound")
    assert (await one.sync(look=True)).refused == 1
    assert await one.ids() == {"e2"}


async def test_a_row_that_it_wrote_over_is_sent_again_by_whoever_has_all_of_it(
    one: Device, two: Device, make_memory: Callable[..., Memory], evoclaw: EvoClaw
) -> None:
    await one.sync()
    await two.changed(changes.store(make_memory(1, subject="ours")))
    # The other device has never seen it, and finds it as the tool has left it.
    evoclaw.archive("m00001", "what it knows")
    found = await meet(one, two)
    assert found.live["memory", "m00001"][1]["subject"] == "ours"
    assert evoclaw.statements() == {"m00001": make_memory(1).text}


async def test_the_latest_version_of_what_it_wrote_over_comes_back_though_an_older_one_was_sent(
    one: Device, two: Device, make_memory: Callable[..., Memory], evoclaw: EvoClaw
) -> None:
    await one.write(changes.store(make_memory(1)))
    await meet(one, two)
    await two.changed(changes.change("m00001", text="the latest"))
    evoclaw.archive("m00001", "what it knows")
    await one.sync(look=True)
    found = await meet(one, two)
    assert found.live["memory", "m00001"][1]["text"] == "the latest"


async def test_what_it_writes_again_stays_deleted(
    one: Device, two: Device, make_memory: Callable[..., Memory], evoclaw: EvoClaw
) -> None:
    await one.write(changes.store(make_memory(1)))
    await meet(one, two)
    await one.changed(changes.delete("m00001"))
    evoclaw.archive("m00001", "what it knows")
    await two.sync(look=True)
    found = await meet(one, two)
    assert not found.counts
    assert evoclaw.statements() == {}
    # It is kept as long as one that was just made, though it was made anew on the remote.
    rows = (await one.replica.objects((0, "", ""), 500)).rows
    [trace] = [row for row in rows if row.deleted]
    for device in (one, two):
        assert await device.read(_places_of_traces) == [(trace.seq,)]


async def test_an_edit_newer_than_a_deletion_survives_that_it_wrote_over_both(
    one: Device,
    two: Device,
    make_memory: Callable[..., Memory],
    evoclaw: EvoClaw,
    wall: Clock,
    make_device: MakeDevice,
) -> None:
    away = make_device("away")
    await one.write(changes.store(make_memory(1)))
    await meet(one, two, away)
    await one.write(changes.delete("m00001"))
    wall.seconds += 1
    await two.changed(changes.change("m00001", text="still wanted"))
    for device in (one, two):
        await device.sync()
    evoclaw.archive("m00001", "what it knows")
    # This one knows of the deletion alone.
    await away.sync(look=True)
    found = await meet(away, one, two)
    assert found.live["memory", "m00001"][1]["text"] == "still wanted"


async def test_the_critical_state_shows_what_all_devices_have_sent(
    one: Device, two: Device, evoclaw: EvoClaw
) -> None:
    await meet(one, two)
    await one.changed(changes.update_hot("identity", {"name": "Ada"}))
    await two.changed(changes.update_hot("lesson", {"text": "look twice"}))
    await one.changed(changes.add_category("house", "where we live"))
    data, version = evoclaw.critical()
    assert version is not None
    assert data["hot_state"]["identity"] == {"name": "Ada"}
    assert data["hot_state"]["critical_lessons"][0]["text"] == "look twice"
    assert data["tree_nodes"]["house"]["desc"] == "where we live"


async def test_a_critical_state_that_it_replaced_is_merged_and_published_again(
    one: Device, two: Device, evoclaw: EvoClaw
) -> None:
    await one.changed(changes.update_hot("identity", {"name": "Ada"}))
    evoclaw.publish('{"hot_state": {"identity": {"role": "host"}}, "tree_nodes": {}}')
    await two.changed(changes.update_hot("lesson", {"text": "look twice"}))
    await meet(one, two)
    data, version = evoclaw.critical()
    assert version is not None
    assert data["hot_state"]["identity"] == {"name": "Ada", "role": "host"}
    assert data["hot_state"]["critical_lessons"]


def _places_of_traces(db: sqlite3.Connection) -> list[tuple[int]]:
    return db.execute("SELECT seq FROM tombstones").fetchall()


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        ("{", 1),
        ("[]", 1),
        ("null", 1),
        ("[" * 9000 + "]" * 9000, 1),
        ('{"hot_state": ' + "[" * 9000 + "]" * 9000 + "}", 1),
        ('{"hot_state": [7], "tree_nodes": 3}', 0),
        ('{"hot_state": {"identity": [1], "active_context": "x"}, "tree_nodes": [[]]}', 0),
        ('{"tree_nodes": {"../x": {"desc": 7}, "a/b/c/d/e/f/g": {}}}', 0),
        ("{}", 0),
    ],
)
async def test_one_that_makes_no_sense_is_replaced(
    one: Device, evoclaw: EvoClaw, data: str, refused: int
) -> None:
    await one.changed(changes.update_hot("identity", {"name": "Ada"}))
    evoclaw.publish(data)
    assert (await one.sync(look=True)).refused == refused
    assert evoclaw.critical()[0]["hot_state"]["identity"] == {"name": "Ada"}
    assert (await one.sync(look=True)).refused == 0


@pytest.mark.parametrize("batch", range(1, 9))
async def test_it_is_published_though_the_round_that_sent_its_rows_was_cut_off(
    make_device: MakeDevice, evoclaw: EvoClaw, batch: int
) -> None:
    first = make_device("one")
    await first.sync()
    await first.write(changes.update_hot("identity", {"name": "Ada"}))
    await first.stop()
    again = make_device("one", plan=[*[Fault()] * batch, Fault("before")])
    while again.remote.batches <= batch:  # type: ignore[attr-defined]
        with contextlib.suppress(TryLater):
            await again.sync()
    await again.stop()
    again.start()
    await again.sync()
    assert evoclaw.critical()[0]["hot_state"]["identity"] == {"name": "Ada"}
