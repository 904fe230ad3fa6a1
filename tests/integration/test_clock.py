"""A wall clock that jumps by years, forward and back, loses nothing and disorders nothing."""

from __future__ import annotations

from thermocline.sync import HybridClock


def test_a_clock_that_runs_gives_versions_that_show_its_milliseconds():
    assert HybridClock(lambda: 1.5).tick() == 1500 << 16
