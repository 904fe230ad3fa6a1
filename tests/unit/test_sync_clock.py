"""Stamps that only grow, and never so far that others refuse them."""

from thermocline.sync import TOO_HIGH, HybridClock, stamp_at

NOW = 1_700_000_000.0
DAY = 86_400.0


def test_a_clock_that_runs_gives_versions_that_show_its_milliseconds():
    assert HybridClock(lambda: 1.5).tick() == 1500 << 16


def test_a_stamp_more_than_a_day_ahead_does_not_push_the_clock(wall):
    for ahead in [2 * DAY, 100 * 365 * DAY]:
        clock = HybridClock(wall)
        before = clock.tick()
        assert not clock.observe(stamp_at(NOW + ahead))
        assert before < clock.tick() < stamp_at(NOW + 1)


def test_a_change_of_what_is_ahead_is_younger_and_the_next_one_is_not(wall):
    clock = HybridClock(wall)
    theirs = stamp_at(NOW + 365 * DAY)
    clock.observe(theirs)
    assert clock.tick(above=theirs) == theirs + 1
    assert clock.issued == theirs + 1
    assert clock.tick() < stamp_at(NOW + 1)


def test_a_clock_that_lags_is_not_held_back_by_its_own_past(wall):
    wall.seconds = NOW + 10 * DAY
    clock = HybridClock(wall)
    last = clock.tick()
    wall.seconds = NOW
    assert clock.observe(last - 1)
    assert clock.tick() > last


def test_nothing_is_issued_that_others_would_refuse():
    for seconds in [-5.0, 7_258_118_400.0, 1e12]:
        clock = HybridClock(lambda seconds=seconds: seconds)
        assert 0 <= clock.tick() < TOO_HIGH
        assert 0 <= clock.tick(above=TOO_HIGH - 1) < TOO_HIGH


def test_damage_in_what_was_noted_does_not_last(wall):
    for last in [TOO_HIGH, (1 << 60) - 1, 1 << 62]:
        assert HybridClock(wall, last).tick() < stamp_at(NOW + 1)


def test_a_wall_clock_beyond_the_year_2200_leaves_stamps_to_go_on_with(wall):
    clock = HybridClock(wall)
    before = clock.tick()
    wall.seconds = 7_258_118_400.0
    ahead = [clock.tick() for _ in range(3)]
    wall.seconds = NOW + 1
    assert before < ahead[0] < ahead[1] < ahead[2] < clock.tick() < stamp_at(NOW + 2)
