"""A hybrid logical clock: stamps that never run backwards, whatever the wall clock does.

The scheme is that of Kulkarni et al., "Logical Physical Clocks" (2014): a stamp is the largest
wall time seen so far, in milliseconds, with a counter for what happens within one of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

COUNTER_BITS: Final = 16
# The year 2200. Later stamps are damage: they are refused, and never issued.
TOO_HIGH: Final = 7_258_118_400_000 << COUNTER_BITS
_DAY: Final = 86_400_000 << COUNTER_BITS


def stamp_at(seconds: float) -> int:
    """The first stamp of a moment in seconds since the epoch, bounded by 1970 and 2200."""
    return max(0, min(int(seconds * 1000) << COUNTER_BITS, TOO_HIGH - 1))


def moment_of(stamp: int) -> float:
    """The moment of a stamp, in seconds since the epoch."""
    return (stamp >> COUNTER_BITS) / 1000


class HybridClock:
    """Issues strictly increasing stamps. Safe to use from several threads.

    A stamp is `milliseconds << 16 | counter`. If the wall clock is set back, by any amount, the
    milliseconds stop advancing, and the counter continues.

    `now` is the wall clock, in seconds since the epoch; `last` the highest stamp issued or seen
    before, from which a restart continues, and `issued` the highest issued.
    """

    def __init__(self, now: Callable[[], float], last: int = 0, issued: int = 0) -> None:
        self._now = now
        self.issued = issued
        self.last = last if last < TOO_HIGH else 0  # the highest stamp issued or accepted
        self._lock = threading.Lock()

    def tick(self, above: int = 0) -> int:
        """A stamp above all stamps that this clock has issued or accepted.

        `above` is the youngest stamp of the changed row, even if `observe` did not accept it. It
        raises only this stamp, not the following ones.
        """
        with self._lock:
            wall = stamp_at(self._now())
            # A wall clock beyond the year 2200 is wrong, and would leave no further stamps.
            wall = wall if wall < TOO_HIGH - 1 else 0
            self.last = min(max(wall, self.last + 1), TOO_HIGH - 1)
            stamp = min(max(self.last, above + 1), TOO_HIGH - 1)
            self.issued = max(self.issued, stamp)
            return stamp

    def observe(self, stamp: int) -> bool:
        """Accept another device's stamp: all following stamps here are above it.

        False: it is more than a day ahead of the wall clock, and was not accepted.
        """
        with self._lock:
            if stamp > self.last and stamp - stamp_at(self._now()) > _DAY:
                return False
            self.last = max(self.last, stamp)
            return True
