from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from thermocline.sync import (
    ABSENT,
    Row,
    changed,
    decode_row,
    deletion,
    lives,
    merge,
    outlived,
    patched,
    version_of,
)

KEY = ("memory", "m1")
SETS = frozenset({"tags"})
VITAL = ("text",)

clocks = st.integers(1, 12)
devices = st.sampled_from(["a", "b", "c"])
stamps = st.tuples(clocks, devices)
contents = st.fixed_dictionaries(
    {},
    optional={
        "text": st.sampled_from(["one", "two"]),
        "importance": st.sampled_from([0, 0.5, 1]),
        "tags": st.lists(st.sampled_from("xyz"), max_size=3, unique=True),
        "later release": st.sampled_from([None, {"a": [1]}]),
    },
)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """A version as a few changes and deletions on some devices leave it."""
    row = changed(None, KEY, draw(contents), draw(stamps), SETS)
    for _ in range(draw(st.integers(0, 3))):
        clock, device = row.clocks.latest
        row = changed(row, KEY, draw(contents), (clock + draw(clocks), device), SETS)
    if draw(st.booleans()):
        stamp = draw(stamps)
        row = merge(row, deletion(KEY, stamp, max(stamp, draw(stamps))), SETS)
    return row


@given(rows(), rows(), rows())
def test_the_order_of_merging_makes_no_difference(one, two, three):
    assert merge(one, two, SETS) == merge(two, one, SETS)
    left = merge(merge(one, two, SETS), three, SETS)
    assert left == merge(one, merge(two, three, SETS), SETS)
    assert version_of(left) == version_of(merge(three, merge(two, one, SETS), SETS))


@given(rows(), rows())
def test_merging_again_changes_nothing(one, two):
    both = merge(one, two, SETS)
    assert merge(both, one, SETS) == both
    assert merge(both, both, SETS) == both


@given(rows())
def test_a_row_is_read_as_it_was_written(row):
    again = decode_row(*KEY, *row.encoded())
    assert again == row
    assert version_of(again) == version_of(row)


def first(**data: Any) -> Row:
    return changed(None, KEY, data, (1, "a"), SETS)


def test_tags_added_on_two_devices_are_all_there_and_a_removed_one_is_gone():
    row = first(text="t", tags=["kept", "removed"])
    one = changed(row, KEY, {"text": "t", "tags": ["kept", "one"]}, (2, "a"), SETS)
    two = changed(row, KEY, {"text": "t", "tags": ["kept", "removed", "two"]}, (3, "b"), SETS)
    assert merge(one, two, SETS).data["tags"] == ["kept", "one", "two"]


def test_a_deletion_leaves_nothing_of_what_was_said():
    gone = merge(first(text="secret", tags=["secret"]), deletion(KEY, (2, "b")), SETS)
    assert gone.data == {}
    assert gone.encoded()[0] is None
    assert not lives(gone, VITAL)


def test_a_text_changed_after_the_deletion_brings_the_rest_of_the_row_back():
    row = first(text="old", importance=0.9)
    edited = changed(row, KEY, row.data | {"text": "new"}, (3, "b"), SETS)
    gone = deletion(KEY, (2, "a"))
    both = merge(gone, edited, SETS)
    assert lives(both, VITAL)
    assert outlived(both, gone, edited) == {"importance": 0.9}


def test_what_was_changed_before_a_deletion_that_gives_way_outlives_it_and_its_time_is_kept():
    row = first(text="old")
    gone = deletion(KEY, (2, "a"), (9, "a"))
    assert merge(row, gone, SETS) == gone
    edited = changed(row, KEY, {"text": "new"}, (5, "b"), SETS)
    assert merge(merge(row, gone, SETS), edited, SETS).data == {"text": "new"}


def test_a_side_matter_changed_after_the_deletion_does_not():
    for field in ["importance", "tags"]:
        row = first(text="old", importance=0.9, tags=["a"])
        data = row.data | {"importance": 0.1, "tags": ["a", "b"]}
        edited = changed(row, KEY, {**row.data, field: data[field]}, (3, "b"), SETS)
        assert not lives(merge(deletion(KEY, (2, "a")), edited, SETS), VITAL)


def test_single_cells_are_put_back():
    data = {"text": "t", "tags": ["a", "b"], "importance": 1.0}
    cells = {"tags:a": ABSENT, "importance": 0.5}
    assert patched(data, cells, SETS) == {"text": "t", "tags": ["b"], "importance": 0.5}
