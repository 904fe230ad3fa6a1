from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.errors import Conflict
from thermocline.daemon.memory.merging import (
    MergeRecord,
    Retirement,
    Unmerged,
    follow,
    merge,
    stranded,
    supersede,
    unmerge,
)
from thermocline.daemon.memory.records import Memory, Metadata

NOW = 1_800_000_000.0
words = st.text(st.sampled_from("abc"), max_size=2)
tags = st.lists(words.filter(bool), max_size=4, unique=True).map(tuple)
times = st.none() | st.floats(0, NOW)


def changed(memory, **fields):
    return msgspec.structs.replace(memory, **fields)


def stored(key="new", **fields):
    return Memory(
        **{"id": key, "text": f"text of {key}", "created_at": NOW, "updated_at": NOW} | fields
    )


@st.composite
def memories(draw, key):
    references = st.builds(Metadata, urls=tags, commands=tags, paths=tags)
    return stored(
        key,
        subject=draw(words),
        outcome=draw(words),
        tags=draw(tags),
        importance=draw(st.floats(0, 1)),
        metadata=draw(references),
        data=draw(st.none() | st.integers() | st.just({"a": [1]})),
        last_accessed_at=draw(times),
        access_count=draw(st.integers(0, 10**6)),
        expires_at=draw(times),
        archived_at=draw(times),
    )


@pytest.mark.parametrize(
    ("newer", "older", "expected"), [(0.6, 0.6, 0.72), (0.5, 0.1, 0.52), (0.95, 0.9, 1.0)]
)
def test_a_merge_adds_a_fifth_of_the_older_importance(newer, older, expected):
    merged = merge(stored("old", importance=older), stored(importance=newer), NOW)
    assert merged.kept.importance == pytest.approx(expected)


def test_a_merge_keeps_the_newer_text_and_what_both_knew():
    older = stored(
        "old",
        created_at=NOW - 9,
        tags=("a", "b"),
        access_count=3,
        last_accessed_at=NOW - 1,
        subject="Ben",
        outcome="done",
        data={"n": 1},
        metadata=Metadata(urls=("u", "v"), paths=("/x/y",)),
    )
    newer = stored(
        tags=("b", "c"),
        access_count=4,
        last_accessed_at=NOW - 5,
        outcome="all done",
        metadata=Metadata(urls=("v", "w"), commands=("ls -l",)),
    )
    merged = merge(older, newer, NOW)
    assert merged.kept == changed(
        newer,
        tags=("b", "c", "a"),
        access_count=7,
        last_accessed_at=NOW - 1,
        subject="Ben",
        data={"n": 1},
        importance=0.6,
        metadata=Metadata(urls=("v", "w", "u"), commands=("ls -l",), paths=("/x/y",)),
    )
    assert merged.retired == changed(older, merged_into="new", archived_at=NOW)


@pytest.mark.parametrize(
    ("one", "other", "expected"), [(None, 5.0, None), (5.0, None, None), (5.0, 9.0, 9.0)]
)
def test_the_later_expiry_holds_and_never_is_the_latest(one, other, expected):
    merged = merge(stored("old", expires_at=one), stored(expires_at=other), NOW)
    assert merged.kept.expires_at == expected


def test_a_merge_stays_within_the_limits_of_tags_and_references():
    many = tuple(f"t{i}" for i in range(30))
    further = tuple(f"u{i}" for i in range(30))
    urls = Metadata(urls=tuple(f"v{i}" for i in range(60)))
    older = stored("old", tags=further, metadata=Metadata(urls=tuple(f"w{i}" for i in range(60))))
    merged = merge(older, stored(tags=many, metadata=urls), NOW)
    assert merged.kept.tags == (*many, "u0", "u1")
    assert len(merged.kept.metadata.urls) == 64


def test_what_is_archived_already_keeps_its_time():
    assert merge(stored("old", archived_at=5.0), stored(), NOW).retired.archived_at == 5.0


@given(memories("old"), memories("new"))
def test_undoing_a_merge_gives_both_memories_back_exactly(older, newer):
    merged = merge(older, newer, NOW)
    assert unmerge(merged.kept, merged.retired, merged.record) == Unmerged(newer, older)


@given(memories("old"), memories("new"))
def test_the_record_of_a_merge_survives_json(older, newer):
    record = merge(older, newer, NOW).record
    assert msgspec.json.decode(msgspec.json.encode(record), type=MergeRecord) == record


@given(memories("a"), memories("b"), memories("new"))
def test_merges_undone_in_reverse_order_give_all_memories_back_exactly(one, other, newer):
    first = merge(one, newer, NOW)
    second = merge(other, first.kept, NOW)
    back = unmerge(second.kept, second.retired, second.record)
    assert back == Unmerged(first.kept, other)
    assert unmerge(back.kept, first.retired, first.record) == Unmerged(newer, one)


def test_of_two_merges_the_first_can_be_undone_first():
    newer = stored(tags=("n",), access_count=1, importance=0.5)
    first = merge(stored("a", tags=("a",), access_count=10, importance=0.5), newer, NOW)
    second = merge(stored("b", tags=("b",), access_count=100, importance=0.25), first.kept, NOW)
    back = unmerge(second.kept, first.retired, first.record).kept
    assert back.tags == ("n", "b")
    assert back.access_count == 101
    assert back.importance == pytest.approx(0.55)


def test_what_happened_since_a_merge_outlives_its_undoing():
    merged = merge(stored("old", access_count=10, tags=("a",)), stored(access_count=1), NOW)
    used = changed(
        merged.kept,
        text="edited",
        access_count=14,
        tags=("a", "z"),
        last_accessed_at=NOW + 5,
        expires_at=NOW + 9,
    )
    back = unmerge(used, merged.retired, merged.record).kept
    assert (back.text, back.access_count, back.tags) == ("edited", 4, ("z",))
    assert (back.last_accessed_at, back.expires_at) == (NOW + 5, NOW + 9)


def test_a_merge_is_undone_only_by_its_own_record():
    merged = merge(stored("old"), stored(), NOW)
    other = merge(stored("other"), stored(), NOW)
    for kept, retired, record in (
        (merged.kept, merged.retired, other.record),
        (merged.kept, stored("old"), merged.record),
        (stored("third"), merged.retired, merged.record),
    ):
        with pytest.raises(Conflict, match="cannot undo the merge of 'old' into"):
            unmerge(kept, retired, record)


@pytest.mark.parametrize("operation", [lambda a, b: merge(a, b, NOW), supersede])
def test_a_memory_is_neither_joined_with_itself_nor_with_a_retired_one(operation):
    retired = stored("old", merged_into="third")
    with pytest.raises(Conflict, match="give two memories"):
        operation(stored(), stored())
    with pytest.raises(Conflict, match="'old': it is merged into 'third'"):
        operation(retired, stored())
    with pytest.raises(Conflict, match="'old': it is merged into 'third'"):
        operation(stored(), retired)


def test_a_supersession_names_both_and_changes_neither():
    link = supersede(stored("old"), stored())
    assert (link.older, link.newer) == ("old", "new")


@given(memories("a"), memories("b"), memories("new"))
def test_a_merge_undone_under_a_later_one_leaves_both_as_if_it_had_never_been(one, other, newer):
    first = merge(one, newer, NOW)
    second = merge(other, first.kept, NOW)
    later = [Retirement(second.retired, second.record)]
    back = unmerge(second.kept, first.retired, first.record, later)
    alone = merge(other, newer, NOW)
    assert (back.kept, back.retired, back.later) == (alone.kept, one, (alone.record,))
    assert unmerge(back.kept, second.retired, back.later[0]) == Unmerged(newer, other)


@given(memories("a"), memories("b"), memories("new"))
def test_what_a_retired_memory_loses_is_lost_by_the_one_that_took_it_up(one, other, newer):
    first = merge(one, other, NOW)
    second = merge(first.kept, newer, NOW)
    parted = unmerge(second.retired, first.retired, first.record)
    followed = follow(second.kept, parted.kept, second.record)
    alone = merge(other, newer, NOW)
    assert (followed.kept, followed.record) == (alone.kept, alone.record)
    assert unmerge(followed.kept, parted.kept, followed.record).kept == newer


@pytest.mark.parametrize(
    ("merged", "living", "free"),
    [
        ({}, "", []),
        ({"a": "b", "b": "c"}, "c", []),
        ({"a": "b", "b": "c"}, "", ["b"]),
        ({"a": "b", "x": "b"}, "", ["a", "x"]),
        ({"a": "a"}, "", ["a"]),
        ({"a": "b", "b": "c", "c": "a", "x": "b"}, "", ["a"]),
        ({"x": "b", "b": "c", "c": "b"}, "", ["b"]),
    ],
    ids=str,
)
def test_what_leads_to_no_memory_that_stays_is_freed_at_its_end(merged, living, free):
    assert stranded(merged, living) == free


names = st.sampled_from("abcdef")


@given(st.dictionaries(names, names), st.sets(names))
def test_once_freed_every_merge_ends_at_a_memory_that_stays(merged, present):
    living = present - merged.keys()
    freed = stranded(merged, living)
    left = {key: into for key, into in merged.items() if key not in freed}
    for start in left:
        passed, key = [], start
        while key in left:
            assert key not in passed
            passed.append(key)
            key = left[key]
        assert key in living | set(freed)
