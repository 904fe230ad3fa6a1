"""Real devices on one replica: whatever happens to them, nothing is lost, and all end alike.

A history is random and follows from its number, which stands in the name of the test. With
THERMOCLINE_HISTORIES=N, `-m soak` runs N of them with everything in them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from histories import (
    DELETING,
    DISASTERS,
    EVERYDAY,
    EVERYTHING,
    KILLING,
    MERGING,
    SMALL,
    TAGGING,
    UNDOING,
    USING,
    WRITING,
    History,
)
from world import World

from thermocline.daemon.client import ClientError

# Read here: the variables of ours are taken away before a test begins.
HISTORIES = int(os.environ.get("THERMOCLINE_HISTORIES", "1000"))
FIRST = int(os.environ.get("THERMOCLINE_SEED", "1"))
# Servers and devices are made anew after so many: what they keep of past histories slows them.
AT_ONCE = 50
PARTS = {
    "memories": {"store": 3, "sync": 4, "sync_badly": 2} | SMALL,
    "fields": EVERYDAY,
    "forgotten": {"store": 4, "sync": 4} | DELETING,
    "merged": {"store": 4, "sync": 4} | MERGING,
    "used": {"store": 2, "sync": 4} | USING,
    "notes": {"sync": 4, "sync_badly": 2} | WRITING,
}
SOME = range(FIRST, FIRST + 1)


@pytest.fixture(scope="module")
def world(sqld_binary: Path) -> Iterator[World]:
    """Three devices that serve all tests of this module, each with an agent of its own."""
    with World(sqld_binary) as world:
        yield world


@pytest.mark.parametrize("seed", SOME)
def test_devices_that_change_different_memories_and_fields_keep_all(
    world: World, seed: int
) -> None:
    History(world, seed, EVERYDAY).run()


@pytest.mark.parametrize("seed", SOME)
def test_pairs_and_hot_entries_and_categories_are_kept(world: World, seed: int) -> None:
    History(world, seed, {"sync": 3, "sync_badly": 2} | SMALL).run()


@pytest.mark.parametrize("seed", SOME)
def test_what_is_forgotten_stays_forgotten(world: World, seed: int) -> None:
    History(world, seed, {"store": 4, "sync": 4, "sync_badly": 2} | DELETING).run()


@pytest.mark.parametrize("seed", SOME)
def test_a_forgotten_memory_outlives_that_only_by_a_later_text(world: World, seed: int) -> None:
    History(world, seed, EVERYDAY | DELETING).run()


@pytest.mark.parametrize("seed", SOME)
def test_merges_and_their_undoing_agree(world: World, seed: int) -> None:
    History(world, seed, {"store": 4, "sync": 4, "sync_badly": 2} | MERGING).run()


@pytest.mark.parametrize("seed", SOME)
def test_edits_of_merged_memories_are_kept(world: World, seed: int) -> None:
    History(world, seed, EVERYDAY | MERGING).run()


@pytest.mark.parametrize("seed", SOME)
def test_what_is_undone_is_undone_everywhere(world: World, seed: int) -> None:
    History(world, seed, EVERYDAY | UNDOING).run()


@pytest.mark.parametrize("seed", SOME)
def test_tags_of_several_devices_are_joined(world: World, seed: int) -> None:
    History(world, seed, {"store": 2, "sync": 4, "sync_badly": 2} | TAGGING).run()


@pytest.mark.parametrize("seed", SOME)
def test_uses_add_up(world: World, seed: int) -> None:
    History(world, seed, {"store": 2, "sync": 4, "sync_badly": 2} | USING).run()


@pytest.mark.parametrize("seed", SOME)
def test_uses_of_merged_memories_add_up(world: World, seed: int) -> None:
    steps = {"store": 2, "sync": 4, "sync_badly": 2} | USING
    History(world, seed, steps | {"merge": 2}).run()


@pytest.mark.parametrize("seed", SOME)
def test_every_line_of_a_note_is_kept(world: World, seed: int) -> None:
    History(world, seed, {"sync": 4, "sync_badly": 2} | WRITING).run()


@pytest.mark.parametrize("disaster", DISASTERS)
def test_nothing_is_lost_whatever_happens_to_devices_and_servers(
    world: World, disaster: str
) -> None:
    History(world, FIRST, EVERYTHING, disaster).run()


# What is in the one before, each alone: it shows at once which of it is lost.
@pytest.mark.crash
@pytest.mark.parametrize("disaster", DISASTERS)
@pytest.mark.parametrize("steps", PARTS.values(), ids=PARTS)
def test_no_part_is_lost_whatever_happens_to_devices_and_servers(
    world: World, steps: dict[str, int], disaster: str
) -> None:
    History(world, FIRST, steps, disaster).run()


def test_a_kill_in_the_middle_of_replication_loses_nothing(world: World) -> None:
    steps = {"store": 3, "sync": 2} | SMALL | KILLING
    History(world, FIRST, steps).run(20)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_nothing_is_lost_in_very_many_histories_of_everything(sqld_binary: Path) -> None:
    failed: dict[str, str] = {}
    for first in range(FIRST, FIRST + HISTORIES, AT_ONCE):
        with World(sqld_binary) as world:
            for seed in range(first, min(first + AT_ONCE, FIRST + HISTORIES)):
                # Every third has a disaster; those with kills have no uses, which are no facts.
                disaster = DISASTERS[seed // 3 % len(DISASTERS)] if seed % 3 == 0 else ""
                steps = EVERYTHING | (KILLING if seed % 10 == 1 else USING)
                try:
                    History(world, seed, steps, disaster).run(40)
                except (AssertionError, ClientError) as error:
                    failed[f"{seed} {disaster}"] = str(error)
    print(f"\n{HISTORIES} histories, {len(failed)} of them bad")
    assert not failed, "\n\n".join(f"{name}: {what}" for name, what in failed.items())
