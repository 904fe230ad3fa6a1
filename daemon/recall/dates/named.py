"""Dates by the names of the calendar: "7 May 2023", "May", "summer 2023", "the 1990s"."""

from __future__ import annotations

from . import days, words
from .days import NamedDay, Period
from .numeric import full_year, numeric, reading_of
from .reading import Reading, Today, Tokens, past_article, word_at
from .tokens import Token


def named(
    tokens: Tokens, at: int, today: Today, cue: str, *, article: bool = False
) -> Reading | None:
    """The date or period of the calendar at `at`.

    Without a year it is the latest that has begun. An ambiguous word ("may", "2000") counts only
    with a `cue`, the preposition of time before it, or with a fitting number. `article` is
    whether "the" precedes it.
    """
    if at >= len(tokens):
        return None
    token, found = tokens[at], None
    match token.kind:
        case "date":
            found = numeric(token, at + 1, today)
        case "number":
            found = _day_first(tokens, at, today, cue) or _year(tokens, at, cue)
        case "decade":
            found = _decade(token, at + 1, today, article=article)
        case "quarter":
            found = _quarter(tokens, at, today)
        case "word":
            found = _word_first(tokens, at, today, cue, article=article)
    return found


def _word_first(
    tokens: Tokens, at: int, today: Today, cue: str, *, article: bool
) -> Reading | None:
    word = tokens[at].text
    if word in words.MONTHS:
        return _month_first(tokens, at, today, cue)
    if word in words.SEASONS and (year := year_at(tokens, at + 1, today)):
        return _season(words.SEASONS[word], year)
    if (
        word in words.WEEKDAYS
        and at + 1 < len(tokens)
        and word_at(tokens, at + 1) not in words.WEEKDAYS
    ):
        # "Friday, 7 May": the weekday adds nothing.
        following = named(tokens, past_article(tokens, at + 1), today, "on")
        joined = tokens[at + 1].joined
        return following if joined and following and _is_day(following) else None
    if word in words.DECADES and article:
        return _latest_decade(words.DECADES[word], at + 1, today)
    return None


def _is_day(reading: Reading) -> bool:
    return all(period.after - period.first == 1 for period in reading.periods)


def year_at(tokens: Tokens, at: int, today: Today) -> tuple[int, int] | None:
    """The year that a phrase goes on with, and the place after it: "2023", "of last year"."""
    if word_at(tokens, at) in words.OF:
        at += 1
    if at >= len(tokens):
        return None
    token = tokens[at]
    if token.joined and token.kind == "number" and len(token.text) == 4 and token.value:
        return token.value, at + 1
    if token.joined and token.kind == "short_year":
        return full_year(token.value, today), at + 1
    if words.UNITS.get(word_at(tokens, at + 1)) == "year":
        steps = (words.LAST, words.THIS, words.NEXT)
        for distance, step in enumerate(steps, -1):
            if word_at(tokens, at) in step:
                return days.year_of(today.day) + distance, at + 2
    return None


def _month_first(tokens: Tokens, at: int, today: Today, cue: str) -> Reading | None:
    month = words.MONTHS[tokens[at].text]
    # An abbreviation may end with a point: "Jan. 5".
    if _day_at(tokens, at + 1, dotted=True) and not year_at(tokens, at + 1, today):
        last, end = _range_end(tokens, at + 1)
        year = year_at(tokens, end, today)
        if year or _is_date(tokens, at, at + 1, end, cue):
            end = year[1] if year else end
            return _days(month, tokens[at + 1].value, last, year, end, today)
    if year := year_at(tokens, at + 1, today):
        return reading_of(NamedDay(year[0], month), year[1], today)
    alone = word_at(tokens, at + 1) in words.OF
    if (cue and not alone) or tokens[at].text in words.SURE_MONTHS:
        return reading_of(NamedDay(None, month), at + 1, today)
    return None


def _day_first(tokens: Tokens, at: int, today: Today, cue: str) -> Reading | None:
    """A day before its month: "7 May 2023", "7. Mai", "7th of May", "7–9 May", "7 de mayo"."""
    if not _day_at(tokens, at):
        return None
    last, after = _range_end(tokens, at)
    month_at = after
    while word_at(tokens, month_at) in words.OF and month_at < after + 2:
        month_at += 1
    if month_at >= len(tokens) or tokens[month_at].text not in words.MONTHS:
        return None
    if tokens[month_at].gap not in {"", ","} and not (
        tokens[month_at].gap == "." and month_at == after
    ):
        return None
    end = month_at + 1
    year = year_at(tokens, end, today)
    if not year and not _is_date(tokens, month_at, at, end, cue):
        return None
    month = words.MONTHS[tokens[month_at].text]
    return _days(month, tokens[at].value, last, year, year[1] if year else end, today)


def _day_at(tokens: Tokens, at: int, *, dotted: bool = False) -> bool:
    if at >= len(tokens) or tokens[at].kind != "number" or not 1 <= tokens[at].value <= 31:
        return False
    if at and not (tokens[at].joined or (dotted and tokens[at].gap == ".")):
        return False
    return len(tokens[at].text) <= 2 and word_at(tokens, at + 1) not in words.COUNTED


def _range_end(tokens: Tokens, at: int) -> tuple[int, int]:
    """The last day of "7–9" or "7 to 9", or the day itself, and the place after it."""
    dash = at + 1 < len(tokens) and tokens[at + 1].kind == "dash" and tokens[at + 1].joined
    if (dash or word_at(tokens, at + 1) in words.TO) and _day_at(tokens, at + 2):
        return tokens[at + 2].value, at + 3
    return tokens[at].value, at + 1


def _is_date(tokens: Tokens, month_at: int, day_at: int, end: int, cue: str) -> bool:
    """Whether a month that may be a verb and a number are indeed a date."""
    month = tokens[month_at]
    if month.text not in words.VERB_MONTHS or cue or tokens[day_at].ordinal:
        return True
    if month.capital and month.start > 0:
        return True
    ended = end >= len(tokens) or not tokens[end].joined or tokens[end].kind != "word"
    return ended or tokens[end].text in words.AFTER_A_DATE


def _days(
    month: int, first: int, last: int, year: tuple[int, int] | None, end: int, today: Today
) -> Reading | None:
    start = NamedDay(year[0] if year else None, month, day=first)
    period = days.choose(start, today.day, "latest")
    if period is None:
        return None
    if last > first:
        until = days.day_in(days.year_of(period.first), month, last)
        if until is None:
            return None
        return Reading(end, (Period(period.first, until.after),), bool(year), start)
    return Reading(end, (period,), bool(year), start)


def _season(month: int, year: tuple[int, int]) -> Reading | None:
    """A winter belongs to two years, so "winter 2023" may be either."""
    which = NamedDay(year[0], month, 3)
    starts = [year[0], year[0] - 1] if month == 12 else [year[0]]
    periods = tuple(period for start in starts if (period := which.in_year(start)))
    return Reading(year[1], periods, exact=False, named=which) if periods else None


def _quarter(tokens: Tokens, at: int, today: Today) -> Reading | None:
    year = year_at(tokens, at + 1, today)
    which = NamedDay(year[0] if year else None, 3 * tokens[at].value - 2, 3)
    return reading_of(which, year[1] if year else at + 1, today)


def _decade(token: Token, end: int, today: Today, *, article: bool) -> Reading | None:
    if len(token.text) == 4:
        return reading_of(NamedDay(token.value, 1, 120), end, today) if token.value else None
    return _latest_decade(token.value, end, today) if article else None


def _latest_decade(value: int, end: int, today: Today) -> Reading | None:
    """The last such decade that has begun. Only "the 90s": "in his 30s" is an age."""
    this = days.year_of(today.day)
    return reading_of(NamedDay(this - (this - value) % 100, 1, 120), end, today)


def _year(tokens: Tokens, at: int, cue: str) -> Reading | None:
    token = tokens[at]
    if len(token.text) != 4 or not 1900 <= token.value <= 2099:
        return None
    if at + 1 < len(tokens) and tokens[at + 1].kind == "quarter" and tokens[at + 1].joined:
        quarter = NamedDay(token.value, 3 * tokens[at + 1].value - 2, 3)
        return reading_of(quarter, at + 2, Today(1))
    if not cue or word_at(tokens, at + 1) in words.COUNTED:
        return None
    return reading_of(NamedDay(token.value, 1, 12), at + 1, Today(1))
