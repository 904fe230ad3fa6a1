import math

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.importers.state_files import parse_metrics as parse

NOW = 1_800_000_000.0


def test_the_counters_of_evoclaw_are_read_and_what_is_computed_is_not():
    document = {
        "retrieval_count": 17,
        "evictions_today": 0,
        "consolidation_count": 3.0,
        "last_consolidation": 1_770_000_000.5,
        "context_tokens_saved": 0,
        "tree_node_count": 12,
        "warm_memory_size_kb": 3.1,
        "timestamp": "2026-02-11T08:00:00",
        "_schema_version": "2.0",
    }
    parsed = parse(document, NOW)
    assert parsed.faults == ()
    assert parsed.content == {
        "retrieval_count": 17,
        "evictions_today": 0,
        "consolidation_count": 3,
        "last_consolidation": 1_770_000_000.5,
        "context_tokens_saved": 0,
    }


def test_a_sum_of_times_is_left_out():
    parsed = parse({"last_consolidation": 2 * NOW, "retrieval_count": 1}, NOW)
    assert parsed.content == {"retrieval_count": 1}
    assert parsed.faults == ("last_consolidation: 3600000000.0 lies in the future",)


def test_what_is_no_count_is_named():
    for value in [-1, "3", None, True, [], {}, math.nan, math.inf, 10**400]:
        parsed = parse({"retrieval_count": value, "evictions_today": 2}, NOW)
        assert parsed.content == {"evictions_today": 2}
        assert len(parsed.faults) == 1
        assert parsed.faults[0].startswith("retrieval_count: expected a number from 0, got ")


def test_further_counters_are_read_and_other_fields_named():
    parsed = parse({"total_stored": 5, "agent": "default", "Odd Name": 1}, NOW)
    assert parsed.content == {"total_stored": 5}
    assert parsed.faults == ("unknown key 'Odd Name'", "unknown key 'agent'")


@given(
    st.dictionaries(
        st.sampled_from(["retrieval_count", "last_consolidation", "Bad Name"]) | st.text(),
        st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=6),
    )
)
def test_no_json_can_make_it_fail(document):
    parsed = parse(document, NOW)
    assert all(math.isfinite(value) and value >= 0 for value in parsed.content.values())
    "\n".join(parsed.faults).encode()
