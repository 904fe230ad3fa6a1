import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.errors import Conflict
from thermocline.daemon.memory.records import Memory, Metadata
from thermocline.daemon.store.merging import check_apart, merged_fields, stranded

NOW = 1_800_000_000.0


def changed(memory, **fields):
    return msgspec.structs.replace(memory, **fields)


def stored(key="new", **fields):
    return Memory(
        **{"id": key, "text": f"text of {key}", "created_at": NOW, "updated_at": NOW} | fields
    )


def test_a_merge_adds_a_fifth_of_the_older_importance():
    for newer, older, expected in [(0.6, 0.6, 0.72), (0.5, 0.1, 0.52), (0.95, 0.9, 1.0)]:
        merged = merged_fields(stored("old", importance=older), stored(importance=newer))
        assert merged.importance == pytest.approx(expected)


def test_a_merge_keeps_the_newer_text_and_what_both_knew():
    older = stored(
        "old",
        created_at=NOW - 9,
        tags=("a", "b"),
        access_count=3,
        subject="Ben",
        outcome="done",
        data={"n": 1},
        metadata=Metadata(urls=("u", "v"), paths=("/x/y",)),
    )
    newer = stored(
        tags=("b", "c"),
        access_count=4,
        outcome="all done",
        metadata=Metadata(urls=("v", "w"), commands=("ls -l",)),
    )
    assert merged_fields(older, newer) == changed(
        newer,
        tags=("b", "c", "a"),
        subject="Ben",
        data={"n": 1},
        importance=0.6,
        metadata=Metadata(urls=("v", "w", "u"), commands=("ls -l",), paths=("/x/y",)),
    )


def test_the_later_expiry_holds_and_never_is_the_latest():
    for one, other, expected in [(None, 5.0, None), (5.0, None, None), (5.0, 9.0, 9.0)]:
        assert (
            merged_fields(stored("old", expires_at=one), stored(expires_at=other)).expires_at
            == expected
        )


def test_a_merge_stays_within_the_limits_of_tags_and_references():
    many = tuple(f"t{i}" for i in range(30))
    further = tuple(f"u{i}" for i in range(30))
    urls = Metadata(urls=tuple(f"v{i}" for i in range(60)))
    older = stored("old", tags=further, metadata=Metadata(urls=tuple(f"w{i}" for i in range(60))))
    merged = merged_fields(older, stored(tags=many, metadata=urls))
    assert merged.tags == (*many, "u0", "u1")
    assert len(merged.metadata.urls) == 64


def test_a_memory_is_neither_joined_with_itself_nor_with_a_retired_one():
    for operation in [merged_fields, lambda older, newer: check_apart(older, newer, "supersede")]:
        retired = stored("old", merged_into="third")
        with pytest.raises(Conflict, match="give two memories"):
            operation(stored(), stored())
        with pytest.raises(Conflict, match="'old': it is merged into 'third'"):
            operation(retired, stored())
        with pytest.raises(Conflict, match="'old': it is merged into 'third'"):
            operation(stored(), retired)


def test_what_leads_to_no_memory_that_stays_is_freed_at_its_end():
    for merged, living, free in [
        ({}, "", []), ({"a": "b", "b": "c"}, "c", []), ({"a": "b", "b": "c"}, "", ["b"]),
        ({"a": "b", "x": "b"}, "", ["a", "x"]), ({"a": "a"}, "", ["a"]),
        ({"a": "b", "b": "c", "c": "a", "x": "b"}, "", ["a"]),
        ({"x": "b", "b": "c", "c": "b"}, "", ["b"]),
    ]:  # fmt: skip
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
