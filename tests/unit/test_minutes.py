"""The live history: two hours of minutes, whatever the clock does."""

import pytest

from thermocline.daemon.maintenance.minutes import MINUTES, MinuteSeries


@pytest.fixture
def minutes(wall) -> MinuteSeries:
    # A minute begins.
    wall.seconds = 1_800_000_000.0
    return MinuteSeries(wall)


def test_a_number_stays_in_its_minute_and_leaves_after_two_hours(minutes, wall):
    minutes.count_store("a")
    minutes.count_store("a")
    assert [*minutes.of("a", "stores")] == [None] * (MINUTES - 1) + [2]
    assert minutes.first() == wall.seconds - (MINUTES - 1) * 60
    wall.seconds += 60
    minutes.count_store("a")
    assert minutes.of("a", "stores")[-2:] == [2, 1]
    wall.seconds += (MINUTES - 2) * 60
    assert minutes.of("a", "stores")[:2] == [2, 1]
    wall.seconds += 60
    assert minutes.of("a", "stores")[0] == 1
    wall.seconds += 60
    assert set(minutes.of("a", "stores")) == {None}


def test_the_percentiles_of_a_minute_are_right_within_five_percent(minutes, wall):
    for ms in range(1, 101):
        minutes.note_recall("a", float(ms))
    wall.seconds += 60
    minutes.note_recall("a", 7.0)
    assert minutes.of("a", "recalls")[-2:] == [100, 1]
    assert minutes.of("a", "p50_ms")[-2:] == [
        pytest.approx(50, rel=0.05), pytest.approx(7, rel=0.05),
    ]  # fmt: skip
    assert minutes.of("a", "p99_ms")[-2] == pytest.approx(99, rel=0.05)


def test_agents_do_not_see_each_other_and_one_without_numbers_has_none(minutes):
    minutes.note("a", "outbox", 3)
    minutes.note_recall("a", 0.0)
    minutes.note_memory(1_000)
    assert (minutes.of("a", "outbox")[-1], minutes.of("a", "recalls")[-1]) == (3, 1)
    assert {*minutes.of("b", "outbox"), *minutes.of("a", "sync_ms")} == {None}
    assert minutes.memory()[-1] == 1_000


@pytest.mark.parametrize(("seconds", "stores"), [(300, 2), (7 * 86_400, 1)])
def test_a_clock_that_is_set_back_a_little_loses_nothing_and_by_days_begins_again(
    minutes, wall, seconds, stores
):
    minutes.count_store("a")
    wall.seconds -= seconds
    minutes.count_store("a")
    assert [*minutes.of("a", "stores")] == [None] * (MINUTES - 1) + [stores]


def test_an_agent_without_numbers_for_two_hours_costs_nothing(minutes, wall):
    minutes.count_store("a")
    wall.seconds += MINUTES * 60
    minutes.forget_idle()
    assert not minutes._rings
