"""When a job is due: cron expressions in the device's time zone, or an interval. Pure.

Expressions have the meaning of Debian's cron: a fixed time that is skipped in spring runs right
after the gap, a repeated time in autumn runs once, and "every n hours" counts elapsed hours.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, TypeAlias

from cronsim import CronSim

# A cron expression, an interval in seconds, or None for never.
When: TypeAlias = str | float | None

# A recorded time further in the future than this is from a wrong clock; smaller corrections are
# normal.
_AHEAD_SECONDS: Final = 3_600.0
_NONE: Final = timedelta(0)


def next_after(when: When, moment: float, zone: tzinfo) -> float | None:
    """The first due time after `moment`, or None."""
    if not isinstance(when, str):
        return None if when is None else moment + when
    for found in CronSim(when, datetime.fromtimestamp(moment, zone)):
        at = found.timestamp()
        # In a repeated hour the library returns times of its first occurrence.
        if at > moment:
            return at
    return None


def interval_of(when: When) -> float | None:
    """The interval in seconds; None if `when` is an expression or None."""
    return None if when is None or isinstance(when, str) else float(when)


def believed(since: float | None, now: float) -> float:
    """The recorded time, or `now` if it is missing or impossible."""
    return since if since is not None and 0 <= since <= now + _AHEAD_SECONDS else now


def spread(seconds: float, *names: str) -> float:
    """A fraction of `seconds` that is constant for the same names."""
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    return seconds * int.from_bytes(digest[:8], "big") / 2**64


class LocalZone(tzinfo):
    """The local time of the C library (`$TZ`, else `/etc/localtime`), at any time.

    Unlike the zone of `datetime.astimezone()` it has no fixed offset, so that midnight next spring
    is correct. For a repeated time `fold` applies; a skipped time has the offset before the gap.
    """

    def utcoffset(self, moment: datetime | None) -> timedelta:
        """The UTC offset at `moment`, a local time."""
        if moment is None:
            return _NONE
        local = moment.replace(tzinfo=None)
        at = datetime.fromtimestamp(local.timestamp(), UTC)
        return local.replace(fold=0) - at.replace(tzinfo=None)

    def dst(self, _moment: datetime | None) -> None:
        """Unknown; only the whole offset is known."""
        return

    def tzname(self, moment: datetime | None) -> str:
        """The abbreviation of the zone at `moment`, such as `CET`."""
        at = (moment or datetime.now(UTC)).replace(tzinfo=None)
        return at.astimezone().tzname() or "local"

    def fromutc(self, moment: datetime) -> datetime:
        """The local time of `moment`, a UTC time labelled with this zone."""
        local = datetime.fromtimestamp(moment.replace(tzinfo=UTC).timestamp())  # noqa: DTZ006
        return local.replace(tzinfo=self)
