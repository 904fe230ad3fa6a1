"""`sync-critical` with a database of its own: what is there is added to, and not followed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from device import Device
from world import World


@pytest.fixture
def world(sqld_binary: Path) -> Iterator[World]:
    """Two devices with a replica that neither speaks to here."""
    with World(sqld_binary, 2) as world:
        for device in world.devices:
            device.agent = "nova"
        yield world


def send_critical(device: Device, there: Any, *, url: str = "", code: int = 0) -> Any:
    words = ("sync-critical", "--db-url", url or there.url, "--auth-token", there.token())
    return json.loads(device.command(*words, code=code))


def lessons(device: Device) -> set[str]:
    return {lesson["text"] for lesson in device.list_all().hot["critical_lessons"]}


def critical(there: Any) -> Any:
    [[data]] = there.query("SELECT data FROM critical_state WHERE agent_id = 'nova'")
    return json.loads(data)


def test_the_critical_state_of_two_devices_is_joined_there_and_what_one_removes_is_gone(
    world, make_sqld
):
    there = make_sqld(auth=True).start()
    one, two = world.devices
    one.put_hot("lesson", {"text": "measure twice", "importance": 0.9})
    two.put_hot("lesson", {"text": "cut once", "importance": 0.9})
    two.add_category("wood/oak")
    for device in (one, two, one):
        assert send_critical(device, there)["synced"] is True
    assert "measure twice" in lessons(one)
    assert "cut once" in lessons(two)
    found = critical(there)
    texts = {lesson["text"] for lesson in found["hot_state"]["critical_lessons"]}
    assert texts == {"measure twice", "cut once"}
    assert "wood/oak" in found["tree_nodes"]
    one.put_hot("identity", {"agent_name": "Nova", "mood": "calm"})
    send_critical(one, there)
    send_critical(two, there)
    one.memory.hot_remove("identity", "mood")
    send_critical(one, there)
    send_critical(two, there)
    assert critical(there)["hot_state"]["identity"] == {"agent_name": "Nova"}


def test_a_lost_answer_is_an_error_and_asking_again_is_safe(world, make_sqld, make_fault_proxy):
    there = make_sqld(auth=True).start()
    network = make_fault_proxy(there.port)
    one, _ = world.devices
    one.put_hot("lesson", {"text": "measure twice"})
    network.faults(reset_after_answered=0)
    assert "error" in send_critical(one, there, url=network.url, code=1)
    network.heal()
    assert send_critical(one, there, url=network.url)["synced"] is True
    assert len(critical(there)["hot_state"]["critical_lessons"]) == 1
