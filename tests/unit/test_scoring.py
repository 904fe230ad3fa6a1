"""Scores, tiers, and what leaves the warm memories."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import (
    AGED_FLOOR,
    DAY,
    GRACE_DAYS,
    Scoring,
    WarmEntry,
    aged,
    default_importance,
    expired_from_warm,
    overflow,
    record,
    record_size,
    score,
    tier_of,
)

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
EVOCLAW = json.loads((VECTORS / "evoclaw_scoring.json").read_text())["cases"]
IMPORTANCES = json.loads((VECTORS / "tinyclaw_scoring.json").read_text())["default_importance"]
NOW = 1_800_000_000.0


def test_scores_and_tiers_are_those_of_evoclaw():
    for case in EVOCLAW:
        created_at = NOW - case["age_days"] * DAY
        value = score(case["importance"], created_at, case["access_count"], NOW, Scoring())
        assert value == pytest.approx(case["score"], abs=1e-9)
        assert tier_of(value) == case["tier"]


def test_an_event_has_the_importance_that_tiny_claw_gives_it():
    for event, importance in IMPORTANCES.items():
        assert default_importance(event) == importance


def test_the_constants_can_be_changed_and_a_tier_begins_at_its_threshold():
    value = score(1.0, NOW - 10 * DAY, 2, NOW, Scoring(half_life_days=10, reinforcement_boost=0.5))
    assert value == pytest.approx(2 * 0.36787944)
    for value, tier in [
        (0.7, "hot"), (0.6999, "warm"), (0.3, "warm"), (0.2999, "cold"), (0.05, "cold"),
        (0, "frozen"),
    ]:  # fmt: skip
        assert tier_of(value) == tier


@given(st.floats(0, 1), st.floats(0, 1e11), st.integers(0, 10**6), st.floats(0, 1e11))
def test_age_never_raises_a_score_and_use_never_lowers_it(importance, created_at, uses, now):
    value = score(importance, created_at, uses, now, Scoring())
    assert value >= score(importance, created_at, uses, now + DAY, Scoring()) >= 0
    assert value <= score(importance, created_at, uses + 1, now, Scoring())


# Tiny Claw's importance, which fades by elapsed time and nothing else

shares = st.floats(0, 1)
days = st.floats(0, 400)


@given(shares, days, days)
def test_the_longer_unused_the_less_and_never_below_the_floor(importance, first, more):
    before, after = aged(importance, first), aged(importance, first + more)
    assert after <= before <= importance
    assert after >= min(importance, AGED_FLOOR)


@given(shares, st.floats(-400, GRACE_DAYS))
def test_within_the_grace_and_with_a_clock_set_back_nothing_fades(importance, idle):
    assert aged(importance, idle) == importance


def test_it_meets_tiny_claws_steps_wherever_its_runs_fall():
    for runs in [1, 2, 7, 28]:
        expected = 0.9
        for _ in range(runs):
            expected *= 0.95
        assert aged(0.9, GRACE_DAYS + runs * 0.25) == pytest.approx(expected)


EVICTION = json.loads((VECTORS / "evoclaw_eviction.json").read_text())["cases"]
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
