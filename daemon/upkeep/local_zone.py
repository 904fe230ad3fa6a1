"""The device's time zone, with its changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

_NONE: Final = timedelta(0)


class LocalZone(tzinfo):
    """What the C library takes for local time (`$TZ`, else `/etc/localtime`), at any moment.

    Unlike the zone of `datetime.astimezone()` it is not fixed to one offset, so that midnight
    next spring is right. Of a time that the clock shows twice, `fold` says which is meant; one
    that it leaves out is read by the offset from before.
    """

    def utcoffset(self, moment: datetime | None) -> timedelta:
        """How far local time is ahead of UTC at `moment`, a local time."""
        if moment is None:
            return _NONE
        local = moment.replace(tzinfo=None)
        at = datetime.fromtimestamp(local.timestamp(), UTC)
        return local.replace(fold=0) - at.replace(tzinfo=None)

    def dst(self, _moment: datetime | None) -> None:
        """Not known: only the whole offset is."""
        return

    def tzname(self, moment: datetime | None) -> str:
        """Its abbreviation at `moment`, such as `CET`."""
        at = (moment or datetime.now(UTC)).replace(tzinfo=None)
        return at.astimezone().tzname() or "local"

    def fromutc(self, moment: datetime) -> datetime:
        """The local time of `moment`, a time of UTC in this zone's name."""
        local = datetime.fromtimestamp(moment.replace(tzinfo=UTC).timestamp())  # noqa: DTZ006
        return local.replace(tzinfo=self)
