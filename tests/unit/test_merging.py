from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.store.records.merging import stranded


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
