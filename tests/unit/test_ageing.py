"""Tiny Claw's importance fades by elapsed time, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.ageing import FLOOR, GRACE_DAYS, aged

shares = st.floats(0, 1)
days = st.floats(0, 400)


@given(shares, days, days)
def test_the_longer_unused_the_less_and_never_below_the_floor(importance, first, more):
    before, after = aged(importance, first), aged(importance, first + more)
    assert after <= before <= importance
    assert after >= min(importance, FLOOR)


@given(shares, st.floats(-400, GRACE_DAYS))
def test_within_the_grace_and_with_a_clock_set_back_nothing_fades(importance, idle):
    assert aged(importance, idle) == importance


@pytest.mark.parametrize("runs", [1, 2, 7, 28])
def test_it_meets_tiny_claws_steps_wherever_its_runs_fall(runs):
    expected = 0.9
    for _ in range(runs):
        expected *= 0.95
    assert aged(0.9, GRACE_DAYS + runs * 0.25) == pytest.approx(expected)


def test_what_has_faded_stays_at_the_floor():
    assert aged(0.5, 300) == FLOOR
    assert aged(0.03, 300) == 0.03
