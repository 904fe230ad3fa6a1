"""The hot state as entries: nothing lost, keys stable, changes small, merging alike everywhere."""

import msgspec
from hot_states import hot_states
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.hot import (
    HotState,
    diff,
    entries,
    from_entries,
)

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.none() | st.booleans() | st.integers(0, 9) | words | st.lists(words, max_size=2)
objects = st.dictionaries(words, values, max_size=4)
items = st.dictionaries(st.sampled_from(["text", "name", "timestamp", "status"]), values)
lists = st.lists(items, max_size=5).map(tuple)
states = hot_states(objects, lists)


def encoded(state):
    return msgspec.json.encode(state)


@given(states)
def test_taking_a_state_apart_and_together_gives_it_back_in_order(state):
    assert encoded(from_entries(entries(state))) == encoded(state)


@given(states, st.randoms())
def test_the_order_of_rows_does_not_matter(state, random):
    rows = list(entries(state).items())
    random.shuffle(rows)
    assert encoded(from_entries(dict(rows))) == encoded(state)


@given(states, states)
def test_applying_a_diff_to_the_old_gives_the_new(old_state, new_state):
    old, new = entries(old_state), entries(new_state)
    changes = diff(old, new)
    applied = {key: entry for key, entry in old.items() if key not in changes.removed}
    applied |= changes.changed
    assert encoded(from_entries(applied)) == encoded(new_state)
    assert not set(changes.removed) & set(new)
    again = diff(applied, new)
    assert (again.changed, again.removed) == ({}, ())


def test_keys_are_those_of_the_format():
    state = HotState(
        identity={"agent_name": 1},
        projects=({"name": "boat"},),
        lessons=({"text": "x", "importance": 0.5},),
        events=({"text": "x", "timestamp": 1.0}, {"text": "x", "timestamp": 2.0}),
    )
    keys = list(entries(state))
    assert keys[:2] == [("identity", "agent_name"), ("project", "boat")]
    hashes = [key for section, key in keys if section in {"lesson", "event"}]
    assert len(set(hashes)) == 3
    assert all(len(key) == 16 for key in hashes)


def test_a_key_does_not_depend_on_what_may_change():
    one = {"text": "x", "importance": 0.5, "timestamp": 1.0}
    other = {"text": "x", "importance": 0.9, "timestamp": 2.0, "category": "a"}
    assert set(entries(HotState(lessons=(one,)))) == set(entries(HotState(lessons=(other,))))
    # Nor on whether a time is whole.
    whole, decimal = ({"text": "x", "timestamp": time} for time in (5, 5.0))
    assert set(entries(HotState(events=(whole,)))) == set(entries(HotState(events=(decimal,))))
