"""A hybrid logical clock: versions that never run backwards, whatever the wall clock does.

The scheme is that of Kulkarni et al., "Logical Physical Clocks" (2014): a version is the largest
wall time seen so far, in milliseconds, with a counter for what happens within one of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

COUNTER_BITS: Final = 16
# Above the version of any moment that a Linux clock can be set to: a higher one is damage.
TOO_HIGH: Final = 1 << 60


class HybridClock:
    """Hands out strictly increasing versions. Safe to use from several threads.

    A version is `milliseconds << 16 | counter` and fits into a signed 64-bit integer until the
    year 6429. A wall clock that is set back, by any amount, only stops the milliseconds from
    advancing; the counter goes on.

    Args:
        now: the wall clock, in seconds since the epoch.
        last: the highest version handed out or seen before, so that a restart goes on from it.
    """

    def __init__(self, now: Callable[[], float], last: int = 0) -> None:
        self._now = now
        self._last = last
        self._lock = threading.Lock()

    @property
    def last(self) -> int:
        """The highest version handed out or seen so far."""
        return self._last

    def tick(self) -> int:
        """A version above every other that this clock has handed out or seen."""
        with self._lock:
            wall = int(self._now() * 1000) << COUNTER_BITS
            self._last = max(wall, self._last + 1)
            return self._last

    def observe(self, version: int) -> None:
        """Take note of another device's version: all that follow here are above it."""
        with self._lock:
            self._last = max(self._last, version)
