"""The loop that replicates: what goes first, what is too large, and what is complained of."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from world import World

# TURSO.md's answer to an account whose plan is used up.
QUOTA = '{"message": "Operation was blocked", "code": "BLOCKED"}'


@pytest.fixture
def world(sqld_binary: Path) -> Iterator[World]:
    """Two devices that send their critical state soon, and all else when they are asked to."""
    with World(sqld_binary, 2, "sync.critical_seconds=0.1", "limits.max_text_bytes=900000") as made:
        for device in made.devices:
            device.store("a memory of its own")
        made.heal()
        yield made


def test_a_quota_that_is_spent_is_a_problem_until_it_is_raised(world, eventually):
    here, _ = world.devices
    network = world.network(here)
    network.faults(status=403, body=QUOTA, content_type="application/json")
    assert not here.try_sync()
    status = here.memory.sync_status()
    assert status.hint
    problems: list[Any] = [one.message for one in here.memory.status().problems]
    assert any("quota" in message for message in problems)
    network.heal()
    here.sync()
    eventually(lambda: here.memory.status().problems == [], "nothing is complained of")


@pytest.mark.crash
def test_more_than_a_batch_or_an_answer_takes_arrives_in_any_script(world):
    """Together they have more than the 10 MB that one answer may have."""
    here, _ = world.devices
    texts = ('"quoted\\" \n' * 4000, "記憶は層になる" * 2300)
    for first in range(0, 220, 10):
        here.memory.batch([{"text": f"{n} {texts[n % 2]}"} for n in range(first, first + 10)])
    assert len(world.heal().memories) == 222


def test_one_memory_as_large_as_a_batch_travels_with_the_small_ones(world):
    here, _ = world.devices
    for text in ("before", "x" * 890_000, "after"):
        here.store(text)
    assert len(world.heal().memories) == 5
