from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import (
    DAY,
    Scoring,
    default_importance,
    score,
    score_of,
    tier_of,
)

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
EVOCLAW = json.loads((VECTORS / "evoclaw_scoring.json").read_text())["cases"]
IMPORTANCES = json.loads((VECTORS / "tinyclaw_scoring.json").read_text())["default_importance"]
NOW = 1_800_000_000.0


@pytest.mark.parametrize("case", EVOCLAW, ids=lambda case: "-".join(map(str, case.values())))
def test_scores_and_tiers_are_those_of_evoclaw(case):
    created_at = NOW - case["age_days"] * DAY
    value = score(case["importance"], created_at, case["access_count"], NOW, Scoring())
    assert value == pytest.approx(case["score"], abs=1e-9)
    assert tier_of(value) == case["tier"]


@pytest.mark.parametrize(("event", "importance"), IMPORTANCES.items())
def test_an_event_has_the_importance_that_tiny_claw_gives_it(event, importance):
    assert default_importance(event) == importance


def test_an_unknown_event_has_the_middle_importance():
    assert default_importance("moon_landing") == 0.5


def test_a_memory_from_the_future_is_as_good_as_new():
    assert score(0.8, NOW + 90 * DAY, 0, NOW, Scoring()) == 0.8


def test_the_constants_can_be_changed():
    value = score(1.0, NOW - 10 * DAY, 2, NOW, Scoring(half_life_days=10, reinforcement_boost=0.5))
    assert value == pytest.approx(2 * 0.36787944)


def test_the_score_of_a_memory_is_that_of_its_parts():
    memory = Memory(
        id="a", text="x", importance=0.9, created_at=NOW - DAY, updated_at=NOW, access_count=3
    )
    assert score_of(memory, NOW, Scoring()) == score(0.9, NOW - DAY, 3, NOW, Scoring())


@pytest.mark.parametrize(
    ("value", "tier"),
    [
        (0.7, "hot"),
        (0.6999, "warm"),
        (0.3, "warm"),
        (0.2999, "cold"),
        (0.05, "cold"),
        (0, "frozen"),
    ],
)
def test_a_tier_begins_at_its_threshold(value, tier):
    assert tier_of(value) == tier


@given(st.floats(0, 1), st.floats(0, 1e11), st.integers(0, 10**6), st.floats(0, 1e11))
def test_age_never_raises_a_score_and_use_never_lowers_it(importance, created_at, uses, now):
    value = score(importance, created_at, uses, now, Scoring())
    assert value >= score(importance, created_at, uses, now + DAY, Scoring()) >= 0
    assert value <= score(importance, created_at, uses + 1, now, Scoring())
