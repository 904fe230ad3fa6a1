"""Days, weeks, months and years counted from a day."""

from __future__ import annotations

from typing import Final

from . import days
from .days import Period
from .reading import Reading, Today

_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600}
_DAYS: Final = {"day": 1, "week": 7, "weekend": 7, "fortnight": 14}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


def distant(unit: str, distance: int, day: int) -> Period | None:
    """The calendar unit that is `distance` units from the one that contains `day`.

    None for units below a day.
    """
    if unit in _MONTHS:
        length = _MONTHS[unit]
        return days.months((days.month_index(day) // length + distance) * length, length)
    if unit in {"week", "weekend"}:
        week = days.week(day, distance)
        return week if unit == "week" else Period(week.after - 2, week.after)
    if unit not in _DAYS:
        return None
    first = day + _DAYS[unit] * distance
    return Period(first, first + _DAYS[unit])


def moved(unit: str, distance: int, day: int) -> int | None:
    """The day `distance` units after `day`; None for units below a day."""
    if unit in _MONTHS:
        return days.shifted(day, _MONTHS[unit] * distance)
    return day + _DAYS[unit] * distance if unit in _DAYS else None


# The tolerance of a count of units, in days: "two weeks ago" is not meant exactly.
_SLACK: Final = {"day": 0, "week": 3, "fortnight": 4, "month": 15, "quarter": 45, "decade": 1_826}


def ago(count: int, unit: str, end: int, today: Today, *, vague: bool = False) -> Reading | None:
    """`count` units before now, or after it if the count is below 0.

    For days and smaller units it is that day; for years that calendar year; for weekends that
    weekend; for other units the days around it, within their tolerance. A vague count has a
    larger tolerance.
    """
    if unit in _SECONDS:
        day = today.day + (today.seconds - count * _SECONDS[unit]) // 86_400
        return Reading(end, (days.one_day(day),))
    if unit in {"year", "weekend"}:
        period = distant(unit, -count, today.day)
        if vague and period and unit == "year":
            period = Period(period.first - 365, period.after + 365)
        return Reading(end, (period,), exact=False) if period else None
    day_then = moved(unit, -count, today.day)
    if day_then is None:
        return None
    slack = _SLACK[unit]
    if vague:
        slack = max(2, 3 * slack)
    return Reading(end, (days.around(day_then, slack),), exact=not slack)
