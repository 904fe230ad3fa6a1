"""How the days of an agent compare."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.maintenance.history import trend
from thermocline.daemon.schemas.stats import Compared, Day

FIRST = date(2026, 11, 1)


def day(number: int, **fields: Any) -> Day:
    zero = dict.fromkeys((name for name in Day.__struct_fields__ if name != "day"), 0)
    return Day(**(zero | {"day": FIRST + timedelta(days=number)} | fields))


def test_nothing_recorded_is_no_trend():
    assert trend([]) is None


def test_a_first_day_has_nothing_to_be_compared_with():
    found = trend([day(0, warm_count=5, stored=9)])
    assert found is not None
    assert (found.until, found.days) == ("2026-11-01", 1)
    assert found.numbers["warm_count"] == Compared(5.0, None, None)
    # What was stored before counting began is no growth.
    assert "stored" not in found.numbers


def test_a_week_is_held_against_the_one_before():
    days = [day(n, warm_count=n, stored=10 * n) for n in range(15)]
    found = trend(days)
    assert found is not None
    assert found.days == 7
    assert found.numbers["warm_count"] == Compared(11.0, 4.0, 7.0)
    assert found.numbers["stored"] == Compared(10.0, 10.0, 0.0)


def test_days_that_were_left_out_are_not_counted_as_empty():
    found = trend([day(0, warm_count=1, stored=0), day(9, warm_count=10), day(13, stored=40)])
    assert found is not None
    assert found.days == 2
    assert found.numbers["warm_count"] == Compared(5.0, 1.0, 4.0)
    assert found.numbers["stored"].average == 10.0


def test_a_counter_that_begins_anew_has_not_gone_back():
    found = trend([day(0, stored=500), day(3, stored=2)])
    assert found is not None
    assert found.numbers["stored"].average == 0.0


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10**9)), max_size=30))
def test_any_days_can_be_compared(given_days):
    days = [day(n, warm_bytes=size, retrieved=size) for n, size in sorted(dict(given_days).items())]
    found = trend(days)
    assert (found is None) == (not days)
    if found is not None:
        assert 1 <= found.days <= 7
        sizes = [one.warm_bytes for one in days]
        assert min(sizes) <= found.numbers["warm_bytes"].average <= max(sizes)
