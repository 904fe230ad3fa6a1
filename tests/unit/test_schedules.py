"""When upkeep is due, in zones that change their clocks and on devices that sleep."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thermocline.daemon.upkeep.plan import jobs_of
from thermocline.daemon.upkeep.schedules import Due, Job, due, next_after, spread
from thermocline.daemon.upkeep.steps import STEPS, steps_of

BERLIN = ZoneInfo("Europe/Berlin")
JOBS = jobs_of(
    {"quick": "0 */3 * * *", "daily": "0 0 * * *", "monthly": "0 0 1 * *", "merging": "0 3 * * *"}
)


def at(text: str, zone: tzinfo = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


def local(moment: float | None, zone: tzinfo = BERLIN) -> str:
    assert moment is not None
    return f"{datetime.fromtimestamp(moment, zone):%Y-%m-%dT%H:%M%z}"


def at_once(_job: str) -> float:
    return 0.0


# One expression


@pytest.mark.parametrize(
    ("cron", "after", "then"),
    [
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
    ],
)
def test_the_next_time_of_an_expression(cron: str, after: str, then: str) -> None:
    assert local(next_after(cron, at(after), BERLIN)) == then


def test_a_fixed_time_that_the_clock_shows_twice_comes_once() -> None:
    first = next_after("30 2 * * *", at("2026-10-24T12:00"), BERLIN)
    assert first == at("2026-10-25T02:30")
    assert local(next_after("30 2 * * *", first, BERLIN)) == "2026-10-26T02:30+0100"
    # Asked between the two.
    between = at("2026-10-25T02:15", fold=1)
    assert local(next_after("30 2 * * *", between, BERLIN)) == "2026-10-26T02:30+0100"


def test_midnight_is_there_even_where_the_clock_leaves_it_out() -> None:
    cairo = ZoneInfo("Africa/Cairo")
    # 24 April 2026 begins at one o'clock there.
    found = next_after("0 0 * * *", at("2026-04-23T12:00", cairo), cairo)
    assert local(found, cairo) == "2026-04-24T01:00+0300"


# What is due


def test_what_was_missed_is_done_once_however_long_the_device_was_off() -> None:
    begun = at("2026-09-20T12:00")
    done = dict.fromkeys((job.name for job in JOBS), begun)
    now = at("2026-11-21T12:00")
    found = due(JOBS, done, now, BERLIN, at_once)
    assert found == Due("monthly", tuple(job.name for job in JOBS), steps_of("monthly"))
    assert due(JOBS, dict.fromkeys(done, now), now + 60, BERLIN, at_once) is None


@pytest.mark.parametrize(
    ("now", "mode", "jobs"),
    [
        ("2026-11-21T11:59", None, ()),
        ("2026-11-21T12:00", "quick", ("quick",)),
        ("2026-11-22T00:00", "daily", ("quick", "daily")),
        ("2026-11-22T03:01", "daily", ("merging", "quick", "daily")),
        ("2026-12-01T00:00", "monthly", ("merging", "quick", "daily", "monthly")),
    ],
)
def test_of_what_is_due_together_the_largest_gives_the_name(
    now: str, mode: str | None, jobs: tuple[str, ...]
) -> None:
    done = dict.fromkeys((job.name for job in JOBS), at("2026-11-21T11:00"))
    found = due(JOBS, done, at(now), BERLIN, at_once)
    assert (found and found.mode, found.jobs if found else ()) == (mode, jobs)


def test_a_job_waits_for_its_share_of_the_jitter() -> None:
    done = dict.fromkeys((job.name for job in JOBS), at("2026-11-21T11:00"))
    late = {"quick": 90.0}
    noon = at("2026-11-21T12:00")
    delay = lambda job: late.get(job, 0.0)  # noqa: E731
    assert due(JOBS, done, noon + 89, BERLIN, delay) is None
    found = due(JOBS, done, noon + 90, BERLIN, delay)
    assert found is not None
    # Done after its delay, it is not due again before the next time.
    assert due(JOBS, done | {"quick": noon + 90}, noon + 200, BERLIN, delay) is None


def test_a_time_on_record_that_lies_in_the_future_is_not_believed() -> None:
    now = at("2026-11-21T12:00:01")
    next_month = dict.fromkeys((job.name for job in JOBS), now + 30 * 86_400)
    assert due(JOBS, next_month, now, BERLIN, at_once) is None
    tomorrow = at("2026-11-22T00:00")
    kept = dict.fromkeys(next_month, now)
    assert due(JOBS, kept, tomorrow, BERLIN, at_once) is not None
    # A clock that was set back a little does not make it due twice.
    soon = {"quick": now}
    quick = tuple(job for job in JOBS if job.name == "quick")
    assert due(quick, soon, now - 2, BERLIN, at_once) is None
    assert due(quick, soon, now + 1, BERLIN, at_once) is None


def test_an_expression_that_names_no_time_is_never_due() -> None:
    rare = next_after("0 0 29 2 *", at("2026-11-21T12:00"), BERLIN)
    assert local(rare) == "2028-02-29T00:00+0100"
    never = (Job("never", "0 0 */30 2 7#5", ("hot",)),)
    assert next_after(never[0].cron, at("2026-11-21T12:00"), BERLIN) is None
    assert due(never, {"never": 0.0}, at("2026-11-21T12:00"), BERLIN, at_once) is None


def test_agents_are_spread_and_each_keeps_its_place() -> None:
    places = [spread(120.0, "device", f"agent{n}", "quick") for n in range(200)]
    assert places == [spread(120.0, "device", f"agent{n}", "quick") for n in range(200)]
    assert all(0 <= place < 120 for place in places)
    assert len({int(place / 12) for place in places}) == 10


# The plan


def test_the_modes_contain_each_other() -> None:
    assert set(steps_of("quick")) < set(steps_of("daily")) < set(steps_of("monthly"))
    assert steps_of("full") == STEPS
    assert steps_of("daily")[0] == "ingest"


def test_a_step_with_a_rhythm_of_its_own_leaves_the_runs() -> None:
    crons = {"quick": "0 */3 * * *", "daily": "0 0 * * *", "monthly": "0 0 1 * *", "merging": None}
    rhythms = {"warm_eviction": "hourly", "tree_prune": "never", "tree_rebuild": None}
    jobs = {job.name: job for job in jobs_of(crons, rhythms)}
    assert jobs["warm_eviction"] == Job("warm_eviction", "0 * * * *", ("evict",))
    assert jobs["quick"].steps == ("hot",)
    assert "tree_prune" not in jobs
    assert jobs["daily"].steps == ("ingest", "merge", "hot")
    assert "rebuild" in jobs["monthly"].steps
    assert set(jobs) == {"warm_eviction", "quick", "daily", "monthly"}


# The device's own zone


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "UTC"])
def test_local_time_is_that_of_the_system_at_every_moment(name: str) -> None:
    code = """
from datetime import datetime, UTC
from thermocline.daemon.upkeep.local_zone import LocalZone
from thermocline.daemon.upkeep.schedules import next_after
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


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["0 0 * * *", "0 */3 * * *", "30 2 * * *", "15 1-4 * * *", "*/20 * * * *"]),
    st.integers(0, 700_000).map(lambda m: DAY + timedelta(minutes=m)) | NEAR_CHANGES,
    st.sampled_from(["Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "UTC"]),
)
def test_time_goes_on_and_no_time_comes_twice(cron: str, start: datetime, name: str) -> None:
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
