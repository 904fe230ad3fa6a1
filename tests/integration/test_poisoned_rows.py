"""Rows on the remote that make no sense: passed over and counted, and nothing else suffers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import changes
import pytest
from devices import AGENT, Device, meet

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.tree import TreeLimits
from thermocline.daemon.store import key_values
from thermocline.daemon.store.transaction import Rules
from thermocline.sync import Link, Row, View

VIEW = View(text="bad", category="a", importance=0.5, created_at=1, access_count=0)
CLOCK = 1_700_000_000_000 << 16
SAID = {"id": "bad", "text": "bad", "created_at": 1.0, "updated_at": 1.0}
RECORD = {
    "kept": "m00001",
    "retired": "bad",
    "merged_at": 1.0,
    "archived_at": None,
    "before": {},
    "after": {},
}
DEEP = "[" * 4000 + "]" * 4000


def row(kind: str, key: str, data: Any, **more: Any) -> Row:
    """A row of any kind; `data` is JSON already if it is a text."""
    text = data if isinstance(data, str) else json.dumps(data)
    return Row(**{"kind": kind, "id": key, "data": text, "clock": CLOCK, "device": "x", **more})


def said(place: Any = None, **fields: Any) -> Row:
    where = place if isinstance(place, str) else json.dumps(place or {"category": "a"})
    return row("memory", "bad", SAID | fields, place=where, place_clock=CLOCK, view=VIEW)


POISON = {
    "a kind of a later release": row("dream", "bad", {}),
    "no JSON": row("kv", "bad", "{"),
    "no value": row("kv", "bad", "null"),
    "a version that no clock gives": row("kv", "bad", {}, clock=1 << 61),
    "a version of a place that no clock gives": row(
        "memory", "bad", SAID, place_clock=1 << 62, view=VIEW
    ),
    "a memory that is a list": row("memory", "bad", [], view=VIEW),
    "a memory without a text": row("memory", "bad", {"id": "bad"}, view=VIEW),
    "a type of a later release": said(type="dreamt"),
    "a number beyond 64 bits": said(access_count=1 << 70),
    "a position beyond 64 bits": said(position=-(1 << 70)),
    "data without a bottom": row(
        "memory", "bad", json.dumps(SAID)[:-1] + f',"data":{DEEP}}}', view=VIEW
    ),
    "an importance that is none": said(importance=1e300),
    "a time that is none": said(created_at=1e300),
    "a negative expiry": said(expires_at=-1e300),
    "an archive time that is none": said({"category": "a", "archived_at": 1e300}),
    "a NUL in the text": said(text="a\0b"),
    "no text": said(text=" "),
    "a category that leads elsewhere": said({"category": "../../etc"}),
    "a category without a name": said({"category": ""}),
    "a place that is a list": said("[]"),
    "an entry of an unknown section": row("hot", "dreams/x", {"value": {}, "position": 0}),
    "an entry of no section": row("hot", "x", {"value": {}, "position": 0}),
    "a lesson that is a number": row("hot", "lesson/x", {"value": 7, "position": 0}),
    "a lesson without a text": row("hot", "lesson/x", {"value": {}, "position": 0}),
    "an entry at a place beyond 64 bits": row("hot", "event/x", {"value": {}, "position": 1 << 70}),
    "an entry without a bottom": row("hot", "extra/x", f'{{"value":{DEEP},"position":0}}'),
    "an entry that is deep": row(
        "hot", "extra/x", f'{{"value":{"[" * 99}{"]" * 99},"position":0}}'
    ),
    "a task with a NUL": row("hot", "task/x", {"value": {"text": "a\0b"}, "position": 0}),
    "a category that is no path": row("tree", "a//b", {"desc": "", "last_access": 0}),
    "a category of no name": row("tree", "", {"desc": "", "last_access": 0}),
    "the root as a category": row("tree", "root", {"desc": "", "last_access": 0}),
    "a category used at no time": row("tree", "a", {"desc": "", "last_access": 1e300}),
    "a merge without a record": row("merge", "bad", {"kept": "m00001", "record": {}}),
    "a merge of others": row("merge", "bad", {"kept": "m00002", "record": RECORD}),
    "a count that is negative": row("use", "m00001/x", {"count": -9, "last_at": 1.0}),
    "a count beyond 64 bits": row("use", "m00001/x", {"count": 1 << 70, "last_at": 1.0}),
    "a count at no time": row("use", "m00001/x", {"count": 1, "last_at": 1e300}),
    "a count of nothing": row("use", "x", {"count": 1, "last_at": 1.0}),
    "a counter that is a text": row("metric", "total/x", '"many"'),
    "a counter of a day": row("metric", "x_today@2024-01-01/x", "7"),
    "a counter without a device": row("metric", "total", "7"),
    "a pair at no time": row("kv", "bad", {"value": "1", "created_at": 1e300, "updated_at": 1e300}),
    "a pair without a key": row("kv", "", {"value": "1", "created_at": 1, "updated_at": 1}),
}


@pytest.mark.parametrize("name", POISON)
async def test_a_row_that_makes_no_sense_is_passed_over(
    make_device: Callable[..., Device], make_memory: Callable[..., Memory], name: str
) -> None:
    one = make_device("one")
    await one.write(changes.store(make_memory(1)))
    before = await one.contents()
    good = row("kv", "good", {"value": "1", "created_at": 1.0, "updated_at": 1.0})
    merged = await one.local.merge([POISON[name], good], Link())
    assert (merged.changed, merged.refused) == (1, 1)
    await one.local.merge([], Link())
    after = await one.contents()
    assert after.live == before.live | {("kv", "good"): ((CLOCK, "x"), ("1", 1.0, 1.0))}
    assert after.counts == before.counts


async def test_a_remote_full_of_nonsense_stops_nothing(
    make_device: Callable[..., Device], make_memory: Callable[..., Memory]
) -> None:
    one, two = make_device("one"), make_device("two")
    await one.changed(changes.store(make_memory(1)))
    for poison in POISON.values():
        await one.replica.push([poison])
    await two.write(changes.put("key", "value"))
    found = await meet(one, two)
    assert {key for kind, key in found.live if kind == "memory"} == {"m00001"}
    for device in (one, two):
        async with device.agents.use(AGENT, create=False) as store:
            assert await store.flush_faces()
            assert not store.faces_pending
        await device.stop()
        device.start()
        pair = await device.read(lambda db: key_values.get(db, "key"))
        assert pair.value == "value"


async def test_a_category_deeper_than_this_device_allows_is_filed_as_deep_as_it_does(
    make_device: Callable[..., Device], make_memory: Callable[..., Memory]
) -> None:
    one = make_device("one", rules=Rules(tree=TreeLimits(max_depth=6)))
    two = make_device("two")
    await one.changed(changes.store(make_memory(1, category="a/b/c/d/e/f")))
    assert (await two.sync()).refused == 0
    await meet(one, two)
    assert (await two.contents()).live["place", "m00001"][1][:2] == ("a/b/c/d", "a/b/c/d/e/f")
