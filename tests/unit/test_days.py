"""How the days of an agent compare."""

from datetime import date, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.maintenance.days import trend
from thermocline.daemon.schemas.stats import Day

FIRST = date(2026, 11, 1)


def day(number: int, **fields: Any) -> Day:
    zero = dict.fromkeys((name for name in Day.__struct_fields__ if name != "day"), 0)
    return Day(**(zero | {"day": FIRST + timedelta(days=number)} | fields))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10**9)), max_size=30))
def test_any_days_can_be_compared(given_days):
    days = [day(n, warm_bytes=size, retrieved=size) for n, size in sorted(dict(given_days).items())]
    found = trend(days)
    assert (found is None) == (not days)
    if found is not None:
        assert 1 <= found.days <= 7
        sizes = [one.warm_bytes for one in days]
        assert min(sizes) <= found.numbers["warm_bytes"].average <= max(sizes)
