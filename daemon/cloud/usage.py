"""What each database in the cloud was used for by this device, day by day, and its daily budget."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from thermocline.sync import Usage

from ..config.settings import Prices
from ..errors import ThermoclineError
from ..schemas.sync import CloudUsage, UsageTotals

FILE: Final = "cloud-usage.json"
_MOST_DAYS: Final = 62
# The shortest time between two writes of the file.
_SAVE_SECONDS: Final = 600.0
_DAY_SECONDS: Final = 86_400.0
# What a day may use at any time; beyond this share of the budget the rest is spread over the day.
_FREE_SHARE: Final = 0.5
_log = logging.getLogger(__name__)

Write = Callable[[Path, bytes], object]
# By database and day.
Counts: TypeAlias = dict[str, dict[str, Usage]]


class UsageLog:
    """Counts by database and day. Days and months are those of UTC, as providers count them.

    They are read when it is made; without a readable file they begin at zero. Blocking.

    After a crash the counts of the last ten minutes may be missing; `save` writes all of them, and
    adds them to what another process has written there, such as a restore without a daemon. `write`
    replaces a file durably; `now` returns seconds since the epoch.
    """

    def __init__(self, path: Path, write: Write, now: Callable[[], float]) -> None:
        self._path = path
        self._write = write
        self._now = now
        self._days = self._read()
        # What the file lacks.
        self._unsaved: Counts = {}
        self._saved_at = now()

    def count(self, url: str, usage: Usage) -> None:
        counted = {url: {self._day(): usage}}
        _add(self._days, counted)
        _add(self._unsaved, counted)

    def of(self, url: str, prices: Prices, budget: int) -> CloudUsage:
        """What a database was used for, today and this month."""
        days, today = self._days.get(url, {}), self._day()
        month = sum((used for day, used in days.items() if day[:7] == today[:7]), start=Usage())
        return CloudUsage(_totals(days.get(today, Usage()), prices), _totals(month, prices), budget)

    def hold_seconds(self, url: str, budget: int) -> float:
        """How long background calls must wait so that the budget of rows lasts for the day.

        Half of it may be used at any time; the rest evenly until midnight.
        """
        used = self._days.get(url, {}).get(self._day(), Usage())
        share = (used.rows_read + used.rows_written) / budget if budget else 0.0
        if share <= _FREE_SHARE:
            return 0.0
        return max(0.0, min(share, 1.0) * _DAY_SECONDS - self._now() % _DAY_SECONDS)

    async def save(self, *, at_once: bool = False) -> None:
        """Write the counts, if there are new ones and the last write was long ago.

        After a failure they are written later.
        """
        is_due = at_once or not 0 <= self._now() - self._saved_at < _SAVE_SECONDS
        if not (self._unsaved and is_due):
            return
        self._saved_at, unsaved, self._unsaved = self._now(), self._unsaved, {}

        def write() -> Counts:
            days = self._read()
            _add(days, unsaved)
            self._write(self._path, msgspec.json.encode(days))
            return days

        try:
            self._days = await asyncio.to_thread(write)
        except (OSError, ThermoclineError) as error:
            _add(self._unsaved, unsaved)
            _log.warning("cannot save the use of the cloud: %s", error)
        else:
            # Counted while it was written.
            _add(self._days, self._unsaved)

    def _read(self) -> Counts:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Counts)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, RecursionError) as error:
            _log.warning("counting the use of the cloud from zero: %s", error)
            return {}

    def _day(self) -> str:
        return time.strftime("%Y-%m-%d", time.gmtime(self._now()))


def _add(counts: Counts, more: Counts) -> None:
    for url, used in more.items():
        days = counts.setdefault(url, {})
        for day, usage in used.items():
            days[day] = days.get(day, Usage()) + usage
        for old in sorted(days)[:-_MOST_DAYS]:
            del days[old]


def _totals(used: Usage, prices: Prices) -> UsageTotals:
    cost = (
        used.rows_read * prices.billion_reads / 1e9
        + used.rows_written * prices.million_writes / 1e6
        + (used.bytes_sent + used.bytes_received) * prices.gigabyte / 1e9
    )
    return UsageTotals(
        used.rows_read, used.rows_written, used.bytes_sent, used.bytes_received, round(cost, 6)
    )
