import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.scoring import (
    AGED_FLOOR,
    DAY,
    GRACE_DAYS,
    Scoring,
    aged,
    default_importance,
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


def test_the_constants_can_be_changed():
    value = score(1.0, NOW - 10 * DAY, 2, NOW, Scoring(half_life_days=10, reinforcement_boost=0.5))
    assert value == pytest.approx(2 * 0.36787944)


def test_a_tier_begins_at_its_threshold():
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
