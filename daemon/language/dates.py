"""Stand-in until the module is merged."""

from __future__ import annotations
import datetime as dt
import msgspec


class DateMention(msgspec.Struct, frozen=True):
    text: str
    start: int
    end: int
    periods: tuple[tuple[int, int], ...]
    kind: str = ""
    codes: str = ""


def find_dates(text: str, told_at: float | None, zone: dt.tzinfo) -> tuple[DateMention, ...]:
    return ()


def date_codes(text: str, told_at: float | None, zone: dt.tzinfo) -> str:
    return ""


def sought_codes(mention: DateMention) -> dict[str, float]:
    return {}


def seconds_of(period: tuple[int, int], local: dt.tzinfo) -> tuple[float, float]:
    start, end = (
        dt.datetime.combine(dt.date.fromordinal(day), dt.time(), local).timestamp()
        for day in period
    )
    return start, end
