"""Two or three devices on one remote: whatever happens to them, in the end they hold the same.

The machine does at random what people, agents and networks do to devices: store, change and
delete, lose the answer of the remote, crash, begin anew from nothing, set clocks.
"""

from __future__ import annotations

from typing import Any

import changes
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from worlds import HOUR, START, World

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store.settling import settle_anew

MONTH = 30 * 86_400.0
CATEGORIES = ("general", "a", "a/x", "a/x/deep", "b/y", "c", "d", "root")

whom = st.integers(0, 2)
which = st.integers(0, 7)
words = st.sampled_from(["amber", "brook", "cedar", "delta"])
categories = st.sampled_from(CATEGORIES)
faults = st.lists(st.sampled_from(["", "", "before", "after"]), max_size=8)
of_hot_state = st.one_of(
    st.builds(lambda word: ("lesson", {"text": f"lesson {word}"}), words),
    st.builds(lambda word: ("event", {"text": f"event {word}"}), words),
    st.builds(lambda word, way: ("task", {"text": word, "status": way}), words, words),
    st.builds(lambda word, way: ("project", {"name": word, "note": way * 8}), words, words),
    st.builds(lambda word, way: ("identity", {word: way}), words, words),
)
of_a_memory = st.one_of(
    st.tuples(st.just("edit"), words),
    st.tuples(st.just("move"), categories),
    st.tuples(st.just("reinforce"), st.integers(1, 3)),
    st.tuples(st.sampled_from(["delete", "merge", "unmerge", "supersede"]), st.none()),
)
small = st.one_of(
    st.builds(lambda change: changes.update_hot(*change), of_hot_state),
    st.builds(changes.remove_hot, which),
    st.builds(changes.add_category, categories, words),
    st.builds(changes.remove_category, categories),
    st.builds(changes.put, words, words),
    st.builds(changes.drop, words),
    st.just(settle_anew),
)


class Devices(RuleBasedStateMachine):
    """What may happen, one thing after the other; afterwards all must be well."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World | None = None

    def teardown(self) -> None:
        if self.world is not None:
            try:
                self.world.heal()
            finally:
                self.world.close()

    @initialize(
        skews=st.lists(st.integers(-5, 5), min_size=2, max_size=3),
        at_once=st.sampled_from([2, 500]),
    )
    def begin(self, skews: list[float], at_once: int) -> None:
        self.world = World(skews, at_once)

    def pick(self, who: int, number: int) -> str | None:
        """One of the memories that the device knows."""
        known = self.here.ids(who)
        return known[number % len(known)] if known else None

    @property
    def here(self) -> World:
        assert self.world is not None
        return self.world

    # What people and agents do.

    @rule(who=whom, word=words, category=categories, hours=st.integers(0, 9))
    def store(self, who: int, word: str, category: str, hours: int) -> None:
        key = f"m{len(self.here.stored):03d}"
        at = START - hours * 200 * HOUR
        text = f"{key} says {word}"
        memory = Memory(id=key, text=text, category=category, created_at=at, updated_at=at)
        self.here.stored.add(key)
        self.here.write(who, changes.store(memory))

    @rule(who=whom, hours=st.integers(-2, 6))
    def store_for_a_while(self, who: int, hours: int) -> None:
        key = f"m{len(self.here.stored):03d}"
        at = START + hours * HOUR
        memory = Memory(id=key, text=key, created_at=START, updated_at=START, expires_at=at)
        self.here.stored.add(key)
        self.here.deleted.add(key)
        self.here.write(who, changes.store(memory))

    @rule(who=whom, number=which, other=which, how=of_a_memory)
    def change_a_memory(self, who: int, number: int, other: int, how: tuple[str, Any]) -> None:
        if key := self.pick(who, number):
            self._change(who, key, self.pick(who, other) or key, how)

    @rule(who=whom, number=which, other=which, hows=st.tuples(of_a_memory, of_a_memory))
    def change_a_memory_on_two_devices(
        self, who: int, number: int, other: int, hows: tuple[tuple[str, Any], ...]
    ) -> None:
        if key := self.pick(who, number):
            second = self.pick(who, other) or key
            for place, how in enumerate(hows):
                if {key, second} <= {*self.here.ids(who + place)}:
                    self._change(who + place, key, second, how)

    def _change(self, who: int, key: str, other: str, how: tuple[str, Any]) -> None:
        verb, value = how
        match verb:
            case "edit":
                self.here.write(who, changes.change(key, text=f"{key} now says {value}"))
            case "move":
                self.here.write(who, changes.change(key, category=value))
            case "delete":
                self.here.deleted.add(key)
                self.here.write(who, changes.delete(key))
            case "reinforce":
                self.here.used[key] += value
                self.here.write(who, changes.reinforce(key, value))
            case "merge":
                self.here.merged |= {key, other}
                self.here.write(who, changes.merge(key, other))
            case "unmerge":
                self.here.write(who, changes.unmerge(key))
            case "supersede" if key != other:
                self.here.write(who, changes.supersede(key, other))

    @rule(who=whom, change=small)
    def change_something_small(self, who: int, change: changes.Change) -> None:
        self.here.write(who, change)

    # What networks, batteries and thieves do.

    @rule(who=whom)
    def sync(self, who: int) -> None:
        self.here.sync(who)

    @rule(who=whom, faults=faults, urgent_only=st.booleans())
    def sync_over_a_bad_network(self, who: int, faults: list[Any], urgent_only: bool) -> None:
        self.here.sync(who, faults, urgent_only=urgent_only)

    @rule(who=whom, other=st.integers(1, 2), batches=st.integers(0, 10))
    def sync_while_another_does(self, who: int, other: int, batches: int) -> None:
        if len({who % self.here.number, (who + other) % self.here.number}) == 2:
            self.here.sync_while(who, batches, self.here.another_syncs(who + other))

    @rule(who=whom, batches=st.integers(0, 10), number=which, word=words)
    def sync_while_something_changes(self, who: int, batches: int, number: int, word: str) -> None:
        change = changes.put(word, word)
        if key := self.pick(who, number):
            change = changes.edit_if_there(key, f"{key} then says {word}")
        self.here.sync_while(who, batches, self.here.something_changes(who, change))

    @rule(word=words)
    def another_tool_archives(self, word: str) -> None:
        key = f"e{len(self.here.stored):03d}"
        self.here.stored.add(key)
        self.here.archive_elsewhere(key, word)

    @precondition(lambda self: self.here.stored)
    @rule(number=which)
    def another_tool_overwrites(self, number: int) -> None:
        known = sorted(self.here.stored)
        key = known[number % len(known)]
        self.here.overwritten.add(key)
        self.here.archive_elsewhere(key, "what it thinks")

    @rule(who=whom)
    def crash(self, who: int) -> None:
        self.here.crash(who)

    @rule(who=whom)
    def lose_the_device(self, who: int) -> None:
        self.here.lose(who)

    @rule(who=whom, seconds=st.sampled_from([HOUR, -HOUR, MONTH, -MONTH]))
    def set_the_clock(self, who: int, seconds: float) -> None:
        self.here.set_clock(who, seconds)

    @rule()
    def heal(self) -> None:
        self.here.heal()


QUICK = settings(
    max_examples=30,
    stateful_step_count=60,
    deadline=None,
    derandomize=True,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)


def test_devices_hold_the_same_whatever_happened_to_them() -> None:
    run_state_machine_as_test(Devices, settings=QUICK)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_devices_hold_the_same_after_very_much_has_happened_to_them() -> None:
    run_state_machine_as_test(
        Devices,
        settings=settings(
            QUICK, max_examples=2000, stateful_step_count=120, derandomize=False, database=None
        ),
    )
