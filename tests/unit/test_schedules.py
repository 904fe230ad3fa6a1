"""When upkeep is due, in zones that change their clocks and on devices that sleep."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.maintenance.schedule import believed, next_after, spread

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: tzinfo = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


def local(moment: float | None, zone: tzinfo = BERLIN) -> str:
    assert moment is not None
    return f"{datetime.fromtimestamp(moment, zone):%Y-%m-%dT%H:%M%z}"


# One expression


def test_the_next_time_of_an_expression():
    for cron, after, then in [
        ("0 0 * * *", "2026-11-21T05:00", "2026-11-22T00:00+0100"),
        ("0 0 * * *", "2026-11-22T00:00", "2026-11-23T00:00+0100"),
        ("0 */3 * * *", "2026-11-21T05:00", "2026-11-21T06:00+0100"),
        ("0 0 1 * *", "2026-11-21T05:00", "2026-12-01T00:00+0100"),
        ("30 4 * * MON", "2026-11-21T05:00", "2026-11-23T04:30+0100"),
        # The clock leaves out 02:00 to 03:00 on 29 March 2026.
        ("30 2 * * *", "2026-03-28T12:00", "2026-03-29T03:00+0200"),
        ("0 */3 * * *", "2026-03-29T00:30", "2026-03-29T03:00+0200"),
        ("0 3 * * *", "2026-03-28T12:00", "2026-03-29T03:00+0200"),
        # It shows 02:00 to 03:00 twice on 25 October 2026.
        ("30 2 * * *", "2026-10-24T12:00", "2026-10-25T02:30+0200"),
        ("0 3 * * *", "2026-10-24T12:00", "2026-10-25T03:00+0100"),
    ]:
        assert local(next_after(cron, at(after), BERLIN)) == then


def test_a_fixed_time_that_the_clock_shows_twice_comes_once():
    first = next_after("30 2 * * *", at("2026-10-24T12:00"), BERLIN)
    assert first == at("2026-10-25T02:30")
    assert local(next_after("30 2 * * *", first, BERLIN)) == "2026-10-26T02:30+0100"
    # Asked between the two.
    between = at("2026-10-25T02:15", fold=1)
    assert local(next_after("30 2 * * *", between, BERLIN)) == "2026-10-26T02:30+0100"


def test_midnight_is_there_even_where_the_clock_leaves_it_out():
    cairo = ZoneInfo("Africa/Cairo")
    # 24 April 2026 begins at one o'clock there.
    found = next_after("0 0 * * *", at("2026-04-23T12:00", cairo), cairo)
    assert local(found, cairo) == "2026-04-24T01:00+0300"


# What is due


def test_an_interval_needs_no_expression():
    assert next_after(90.0, 1000.0, BERLIN) == 1090.0
    assert next_after(None, 1000.0, BERLIN) is None


def test_a_time_on_record_that_lies_in_the_future_is_not_believed():
    now = at("2026-11-21T12:00:01")
    assert believed(now + 30 * 86_400, now) == now
    assert believed(-1.0, now) == now
    assert believed(None, now) == now
    # A clock that was set back a little does not make a job due twice.
    assert believed(now + 2, now) == now + 2


def test_an_expression_that_names_no_time_is_never_due():
    rare = next_after("0 0 29 2 *", at("2026-11-21T12:00"), BERLIN)
    assert local(rare) == "2028-02-29T00:00+0100"
    assert next_after("0 0 */30 2 7#5", at("2026-11-21T12:00"), BERLIN) is None


def test_agents_are_spread_and_each_keeps_its_place():
    places = [spread(120.0, "device", f"agent{n}", "quick") for n in range(200)]
    assert places == [spread(120.0, "device", f"agent{n}", "quick") for n in range(200)]
    assert all(0 <= place < 120 for place in places)
    assert len({int(place / 12) for place in places}) == 10


# The plan


# The device's own zone


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "UTC"])
def test_local_time_is_that_of_the_system_at_every_moment(name):
    code = """
from datetime import datetime, UTC
from thermocline.daemon.maintenance.schedule import LocalZone, next_after
for moment in range(1_761_000_000, 1_793_000_000, 1_234_567):
    local = datetime.fromtimestamp(moment, LocalZone())
    assert local.timestamp() == moment
    print(local.isoformat(), local.tzname(), next_after("30 2 * * *", moment, LocalZone()))
"""
    output = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TZ": name},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    zone = ZoneInfo(name)
    expected = []
    for moment in range(1_761_000_000, 1_793_000_000, 1_234_567):
        then = datetime.fromtimestamp(moment, zone)
        later = next_after("30 2 * * *", moment, zone)
        expected.append(f"{then.isoformat()} {then.tzname()} {later}")
    assert output.splitlines() == expected


DAY = datetime(2026, 1, 24, 22, tzinfo=UTC)
# Of each of these zones a change of the clock is among them.
NEAR_CHANGES = st.builds(
    lambda day, minutes: day + timedelta(minutes=minutes),
    st.sampled_from([DAY.replace(month=3, day=28), DAY.replace(month=10), DAY.replace(month=4)]),
    st.integers(0, 720) | st.integers(11_000, 17_000),
)


@given(
    st.sampled_from(["0 0 * * *", "0 */3 * * *", "30 2 * * *", "15 1-4 * * *", "*/20 * * * *"]),
    st.integers(0, 700_000).map(lambda m: DAY + timedelta(minutes=m)) | NEAR_CHANGES,
    st.sampled_from(["Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "UTC"]),
)
def test_time_goes_on_and_no_time_comes_twice(cron, start, name):
    zone = ZoneInfo(name)
    moment = start.timestamp()
    seen = []
    for _ in range(12):
        following = next_after(cron, moment, zone)
        assert following is not None
        assert following > moment
        assert following - moment <= timedelta(days=1, hours=2).total_seconds()
        moment = following
        seen.append(moment)
    assert len(set(seen)) == len(seen)
