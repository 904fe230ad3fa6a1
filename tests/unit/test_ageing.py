from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.ageing import (
    HOUR,
    Ageing,
    aged,
    aged_importance,
    decayed_weight,
    fit_for_archive,
    last_used,
)
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import DAY

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
DECAY = json.loads((VECTORS / "profclaw_numbers.json").read_text())["cases"]
NOW = 1_800_000_000.0
MEMORY = Memory(id="a", text="x", importance=0.5, created_at=NOW, updated_at=NOW)

spans = st.floats(0, 400 * DAY)
shares = st.floats(0, 1)


@pytest.mark.parametrize("case", DECAY, ids=lambda case: f"{case['w0']}-{case['days']}")
def test_weights_decay_as_profclaw_documents(case):
    left = decayed_weight(case["w0"], NOW, NOW + case["days"] * DAY, case["half_life"])
    assert left == pytest.approx(case["weight"], abs=1e-12)


@given(shares, spans, spans, st.floats(1, 365))
def test_decay_in_two_steps_is_decay_in_one(weight, first, second, half_life):
    between, end = NOW + first, NOW + first + second
    stepwise = decayed_weight(
        decayed_weight(weight, NOW, between, half_life), between, end, half_life
    )
    assert stepwise == pytest.approx(decayed_weight(weight, NOW, end, half_life), abs=1e-9)


@given(shares, spans, spans, st.floats(-60 * DAY, 60 * DAY))
def test_ageing_in_two_steps_is_ageing_in_one(importance, first, second, idle):
    idle_since, between, end = NOW + idle, NOW + first, NOW + first + second
    stepwise = aged(aged(importance, idle_since, NOW, between), idle_since, between, end)
    assert stepwise == pytest.approx(aged(importance, idle_since, NOW, end), abs=1e-9)


@given(shares, st.lists(spans, max_size=12), st.floats(-60 * DAY, 60 * DAY))
def test_how_often_ageing_runs_changes_nothing(importance, times, idle):
    ends = sorted(times)
    value, before = importance, NOW
    for end in ends:
        value = aged(value, NOW + idle, before, NOW + end)
        before = NOW + end
    once = aged(importance, NOW + idle, NOW, NOW + (ends[-1] if ends else 0.0))
    assert value == pytest.approx(once, abs=1e-9)


@pytest.mark.parametrize("runs", [0, 1, 2, 10, 28])
def test_the_law_meets_tiny_claw_at_each_of_its_runs(runs):
    expected = 0.8
    for _ in range(runs):
        expected *= 0.95
    end = NOW + 7 * DAY + runs * 6 * HOUR
    assert aged(0.8, NOW, NOW, end) == pytest.approx(expected)


def test_nothing_fades_in_the_week_after_a_use():
    assert aged(0.8, NOW, NOW - 30 * DAY, NOW + 7 * DAY) == 0.8


def test_importance_fades_to_the_floor_and_no_lower():
    assert aged(0.9, NOW, NOW, NOW + 10_000 * DAY) == 0.05


@given(st.floats(0, 0.05), spans)
def test_what_was_given_less_than_the_floor_stays_as_it_is(importance, span):
    assert aged(importance, NOW, NOW, NOW + span) == importance


def test_a_clock_set_back_changes_nothing():
    assert aged(0.8, NOW - 30 * DAY, NOW, NOW - 9 * DAY) == 0.8


def test_a_use_restores_all_of_the_importance():
    idle = NOW + 12 * DAY
    assert aged_importance(MEMORY, idle) < 0.25
    used = msgspec.structs.replace(MEMORY, last_accessed_at=idle - DAY, access_count=1)
    assert aged_importance(used, idle) == 0.5


def test_the_constants_can_be_changed():
    ageing = Ageing(grace_days=1, step_hours=24, step_factor=0.5)
    assert aged_importance(MEMORY, NOW + 3 * DAY, ageing) == pytest.approx(0.125)


def test_the_last_use_is_never_before_the_creation():
    assert last_used(MEMORY) == NOW
    assert last_used(msgspec.structs.replace(MEMORY, last_accessed_at=NOW - DAY)) == NOW
    assert last_used(msgspec.structs.replace(MEMORY, last_accessed_at=NOW + DAY)) == NOW + DAY


def test_what_was_never_used_in_a_month_is_fit_for_the_archive():
    assert fit_for_archive(MEMORY, NOW + 31 * DAY)


@pytest.mark.parametrize(
    ("changes", "days"),
    [
        ({}, 30),
        ({"access_count": 1}, 400),
        ({"archived_at": NOW}, 400),
        ({"created_at": NOW + 20 * DAY}, 31),
    ],
    ids=["a month old at most", "used once", "archived already", "too young"],
)
def test_other_memories_stay(changes, days):
    assert not fit_for_archive(msgspec.structs.replace(MEMORY, **changes), NOW + days * DAY)


def test_an_important_memory_takes_longer_to_be_fit_for_the_archive():
    slow = Ageing(step_factor=0.99)
    important = msgspec.structs.replace(MEMORY, importance=1.0)
    ordinary = msgspec.structs.replace(MEMORY, importance=0.2)
    moment = NOW + 40 * DAY
    assert fit_for_archive(ordinary, moment, slow)
    assert not fit_for_archive(important, moment, slow)
