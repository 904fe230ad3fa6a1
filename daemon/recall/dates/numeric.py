"""Dates in digits, and those of Chinese, Japanese and Korean."""

from __future__ import annotations

import re
from typing import Final

from . import days
from .days import NamedDay
from .reading import Reading, Today
from .tokens import Token
from .units import ago, distant

_DIGITS: Final = re.compile(r"[0-9]+")
_NUMERALS: Final = {numeral: value for value, numeral in enumerate("一二三四五六七八九", 1)} | {
    "两": 2
}
_UNITS: Final = {
    "天": "day", "日": "day", "周": "week", "週": "week", "星": "week", "月": "month", "年": "year",
}  # fmt: skip
# Days, weeks, months and years from now.
_NEAR: Final = {
    "day": {
        "昨天": -1, "今天": 0, "明天": 1, "前天": -2, "后天": 2, "昨日": -1, "今日": 0, "明日": 1,
        "一昨日": -2, "어제": -1, "오늘": 0, "내일": 1,
    },
    "week": {
        "上周": -1, "上星期": -1, "这周": 0, "下周": 1, "先週": -1, "今週": 0, "来週": 1,
        "지난주": -1,
    },
    "month": {
        "上月": -1, "上个月": -1, "上個月": -1, "这月": 0, "这个月": 0, "下月": 1, "下个月": 1,
        "先月": -1, "今月": 0, "来月": 1, "지난달": -1,
    },
    "year": {"去年": -1, "今年": 0, "明年": 1, "来年": 1, "작년": -1, "올해": 0},
}  # fmt: skip


def numeric(token: Token, end: int, today: Today) -> Reading | None:
    """The reading of a token of kind `date`; None if the calendar has no such day."""
    figures = [int(run) for run in _DIGITS.findall(token.text)[:3]]
    match token.form:
        case "iso" | "ymd":
            return reading_of(_date(*figures), end, today)
        case "dmy":
            return _day_and_month(token.text, figures, end, today)
        case "years":
            return _years(figures[0], figures[1], end)
        case "han" | "dm" as form:
            named = _date(None, *figures[::-1]) if form == "dm" else _han(token.text, figures)
            return reading_of(named, end, today)
        case "ago":
            count, unit = _counted(token.text, figures)
            return ago(count, unit, end, today)
        case _:
            return _near(token.text, end, today.day)


def _date(year: int | None, month: int, day: int | None = None) -> NamedDay | None:
    return NamedDay(year, month, day=day) if 1 <= month <= 12 else None


def reading_of(named: NamedDay | None, end: int, today: Today) -> Reading | None:
    """The latest such time that has begun; None if the calendar has none."""
    period = days.choose(named, today.day, "latest") if named else None
    if named is None or period is None:
        return None
    return Reading(end, (period,), named.year is not None, named)


def _day_and_month(text: str, figures: list[int], end: int, today: Today) -> Reading | None:
    """With points the day comes first; otherwise both orders count if both are valid."""
    first, second, year = figures
    if year < 100 and len(text.rpartition("/")[2]) == 2:
        year = full_year(year, today)
    orders = [(first, second)] if "." in text else [(first, second), (second, first)]
    found = (days.day_in(year, month, day) for day, month in dict.fromkeys(orders) if year)
    periods = tuple(dict.fromkeys(period for period in found if period))
    return Reading(end, periods, len(periods) == 1) if periods else None


def full_year(short: int, today: Today) -> int:
    """The year that two digits stand for: at most ten years ahead of `today`."""
    limit = days.year_of(today.day) + 10
    return max(1, limit - (limit - short) % 100)


def _years(first: int, last: int, end: int) -> Reading | None:
    if not (1900 <= first <= last <= 2099):
        return None
    return Reading(end, (days.months(first * 12, (last - first + 1) * 12),))


def _han(text: str, figures: list[int]) -> NamedDay | None:
    if "年" not in text and "년" not in text:
        return _date(None, *figures)
    if len(figures) == 1:
        return NamedDay(figures[0], 1, 12)
    return _date(*figures)


def _counted(text: str, figures: list[int]) -> tuple[int, str]:
    unit = next((unit for char, unit in _UNITS.items() if char in text), "day")
    return (figures[0] if figures else _numeral(text)), unit


def _numeral(text: str) -> int:
    total = 0
    for char in text:
        if char == "十":
            total = max(total, 1) * 10
        total += _NUMERALS.get(char, 0)
    return total


def _near(text: str, end: int, today: int) -> Reading | None:
    unit = next(unit for unit, distances in _NEAR.items() if text in distances)
    period = distant(unit, _NEAR[unit][text], today)
    return Reading(end, (period,)) if period else None
