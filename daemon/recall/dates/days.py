"""Spans of days, as numbers of the calendar: day 1 is 1 January of the year 1.

Plain numbers, so that arithmetic cannot overflow; days outside the years 1 to 9999 are clamped
when they are converted to times.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import msgspec

LAST_DAY: Final = dt.date.max.toordinal()
FIRST_DAY: Final = 1

# Which of the periods of one name: the latest that has begun, the latest that is over, the one
# that is running, or the first to come.
Lean: TypeAlias = Literal["latest", "last", "this", "next"]


class Period(msgspec.Struct, frozen=True, gc=False):
    """The days from `first` up to, but without, `after`."""

    first: int
    after: int

    def third(self, which: int) -> Period:
        """The first, second or third part of it, counted from 0."""
        length = self.after - self.first
        return Period(self.first + length * which // 3, self.first + length * (which + 1) // 3)


class NamedDay(msgspec.Struct, frozen=True, gc=False):
    """`months` months from a named one, or a day of it; no year was named when it is None."""

    year: int | None
    month: int
    months: int = 1
    day: int | None = None

    def in_year(self, year: int) -> Period | None:
        """Its days in `year`, or None where that year has no such day."""
        if not 1 <= year <= dt.MAXYEAR:
            return None
        if self.day is None:
            return months(year * 12 + self.month - 1, self.months)
        return day_in(year, self.month, self.day)


def one_day(day: int) -> Period:
    """The period of one day."""
    return Period(day, day + 1)


def day_in(year: int, month: int, day: int) -> Period | None:
    """The day, or None if the calendar has none such."""
    try:
        return one_day(dt.date(year, month, day).toordinal())
    except ValueError:
        return None


def months(index: int, count: int = 1) -> Period:
    """`count` months; `index` counts months from the year 0."""
    return Period(_month_start(index), _month_start(index + count))


def _month_start(index: int) -> int:
    year, month = divmod(index, 12)
    if year < 1:
        return FIRST_DAY
    if year > dt.MAXYEAR:
        return LAST_DAY + 1
    return dt.date(year, month + 1, 1).toordinal()


def month_index(day: int) -> int:
    """The month of `day`, counted from the year 0."""
    date = _date(day)
    return date.year * 12 + date.month - 1


def year_of(day: int) -> int:
    """The year of `day`."""
    return _date(day).year


def shifted(day: int, by_months: int) -> int:
    """The same day `by_months` months later, or the last day of that month."""
    month = months(month_index(day) + by_months)
    return min(month.first + _date(day).day - 1, max(month.first, month.after - 1))


def weekday(day: int) -> int:
    """Monday is 0."""
    return (day + 6) % 7


def week(day: int, on: int = 0) -> Period:
    """The week, Monday to Sunday, of `day`, or `on` weeks later."""
    monday = day - weekday(day) + 7 * on
    return Period(monday, monday + 7)


def weekend(day: int, on: int = 0) -> Period:
    """Saturday and Sunday of `week(day, on)`."""
    after = week(day, on).after
    return Period(after - 2, after)


def around(day: int, reach: int) -> Period:
    """`day` and `reach` days on both sides."""
    return Period(day - reach, day + reach + 1)


def choose(named: NamedDay, today: int, lean: Lean) -> Period | None:
    """The days that are meant; the year is found from `today` where none was named."""
    if named.year is not None:
        return named.in_year(named.year)
    years = list(_occurrences(named, year_of(today)))
    if lean == "next":
        return next((period for period in years if period.first > today), None)
    newest_first = years[::-1]
    if lean == "last":
        return next((period for period in newest_first if period.after <= today), None)
    if lean == "this":
        return _running(named, newest_first, today)
    return next((period for period in newest_first if period.first <= today), None)


def _running(named: NamedDay, periods: list[Period], today: int) -> Period | None:
    for period in periods:
        if period.first <= today < period.after:
            return period
    return named.in_year(year_of(today))


def _occurrences(named: NamedDay, year: int) -> Iterator[Period]:
    # Nine years contain a 29 February even across a century that skips one.
    for candidate in range(year - 9, year + 10):
        if period := named.in_year(candidate):
            yield period


def _date(day: int) -> dt.date:
    return dt.date.fromordinal(min(max(day, FIRST_DAY), LAST_DAY))
