import json
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import (
    DAY,
    Scoring,
    WarmEntry,
    expired_from_warm,
    overflow,
    record,
    record_size,
    score,
)

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
EVICTION = json.loads((VECTORS / "evoclaw_eviction.json").read_text())["cases"]
NOW = 1_800_000_000.0
SCORING = Scoring()


def memory(**fields):
    return Memory(
        **{"id": "0123456789ab", "text": "x", "created_at": NOW, "updated_at": NOW} | fields
    )


def entry(key, size=100, importance=0.5, age_days=0.0, access_count=0):
    return WarmEntry(key, size, importance, NOW - age_days * DAY, access_count)


MEMORIES = st.builds(
    memory,
    text=st.text(min_size=1, alphabet=st.characters(exclude_categories=("Cs",))),
    importance=st.floats(0, 1),
    created_at=st.floats(0, 2.5e11),
    access_count=st.integers(0, 99_999),
    last_accessed_at=st.none() | st.floats(1e9, 2.5e11),
    tags=st.lists(st.text("ab"), max_size=3).map(tuple),
    data=st.none() | st.dictionaries(st.text("xy"), st.integers(0, 9)),
)


@given(MEMORIES, st.floats(0, 2.5e11), st.floats(0, 10), st.floats(0.001, 1e4))
def test_the_size_is_an_upper_bound_for_every_moment(fact, now, boost, half_life):
    scoring = Scoring(half_life_days=half_life, reinforcement_boost=boost)
    actual = len(msgspec.json.encode(record(fact, now, scoring)))
    assert actual <= record_size(fact) <= actual + 80


ENTRIES = st.lists(
    st.tuples(st.integers(2, 500), st.floats(0, 1), st.floats(-5, 400), st.integers(0, 50)),
    max_size=40,
).map(lambda rows: [entry(f"m{i}", *row) for i, row in enumerate(rows)])


def list_size(entries):
    return sum(one.size for one in entries) + max(0, len(entries) - 1) + 2


@given(ENTRIES, st.integers(2, 5_000))
def test_what_stays_fits_and_not_one_too_many_leaves(entries, cap):
    leaving = overflow(entries, cap, NOW, SCORING)
    staying = [one for one in entries if one.id not in leaving]
    assert list_size(staying) <= cap
    assert len(set(leaving)) == len(leaving)
    if leaving:
        by_id = {one.id: one for one in entries}
        last = by_id[leaving[-1]]
        assert last.size + 2 > cap or list_size([*staying, last]) > cap


@given(ENTRIES, st.integers(502, 5_000))
def test_nothing_that_stays_scores_below_what_leaves(entries, cap):
    leaving = set(overflow(entries, cap, NOW, SCORING))
    worth = {
        one.id: score(one.importance, one.created_at, one.access_count, NOW, SCORING)
        for one in entries
    }
    gone = [worth[key] for key in leaving]
    stays = [value for key, value in worth.items() if key not in leaving]
    assert max(gone, default=0.0) <= min(stays, default=10.0**9)


def test_expiry_needs_age_and_a_low_score_as_in_the_skill():
    for case in EVICTION:
        one = entry("m", 100, case["importance"], case["age_days"], case["access_count"])
        assert expired_from_warm([one], NOW, SCORING) == (["m"] if case["evict_skill"] else [])
