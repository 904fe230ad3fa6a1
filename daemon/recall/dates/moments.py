"""One time in words, with a qualifier: "early May", "the week before 9 June"."""

from __future__ import annotations

from . import days, words
from .days import Period
from .named import named
from .reading import Reading, Today, Tokens, word_at
from .relative import count_at, relative, weekday
from .units import distant, moved


def moment(tokens: Tokens, at: int, today: Today, cue: str = "") -> Reading | None:
    """The time at `at`, including its own preposition and article.

    `cue` is the preposition before `at`, when the caller has read one.
    """
    if word_at(tokens, at) in words.PREPOSITIONS:
        cue = tokens[at].text
        at += 1
    article = word_at(tokens, at) in words.ARTICLES
    if article:
        at += 1
    return (
        _beside(tokens, at, today)
        or _part(tokens, at, today)
        or _nth(tokens, at, today)
        or _unit_of(tokens, at, today)
        or relative(tokens, at, today, article=article)
        or named(tokens, at, today, cue, article=article)
        or weekday(tokens, at, today)
    )


def _anchor(tokens: Tokens, at: int, today: Today) -> Reading | None:
    """The time that another time is relative to."""
    article = word_at(tokens, at) in words.ARTICLES
    at += article
    return (
        relative(tokens, at, today, article=article)
        or named(tokens, at, today, "of", article=article)
        or weekday(tokens, at, today)
    )


def _beside(tokens: Tokens, at: int, today: Today) -> Reading | None:
    """A unit next to a time: "week before 9 June 2023", "two days after last Friday"."""
    count, vague, unit_at = count_at(tokens, at) or (0, False, at)
    word = word_at(tokens, unit_at)
    side = word_at(tokens, unit_at + 1)
    if (
        word not in words.UNITS and (count or word not in words.WEEKDAYS)
    ) or side not in words.BEFORE | words.AFTER:
        return None
    anchor = _anchor(tokens, unit_at + 2, today)
    if anchor is None:
        return None
    direction = -1 if side in words.BEFORE else 1
    found = tuple(
        period
        for beside in anchor.periods
        if (period := _next_to(beside, word, count * direction, direction))
    )
    exact = anchor.exact and not vague and (count == 0 or words.UNITS.get(word) == "day")
    return Reading(anchor.end, found, exact) if found else None


def _next_to(period: Period, word: str, count: int, direction: int) -> Period | None:
    edge = period.first if direction < 0 else period.after - 1
    if word in words.WEEKDAYS:
        ahead = (words.WEEKDAYS[word] - days.weekday(edge)) % 7
        return days.one_day(edge + (ahead - 7 if direction < 0 else ahead or 7))
    unit = words.UNITS[word]
    if unit == "weekend":
        return _weekend_beside(period, direction)
    then = moved(unit, count or direction, edge)
    if then is None:
        return None
    if count:
        slack = {"day": 0, "week": 3, "fortnight": 4, "month": 15, "quarter": 45}.get(unit, 183)
        return days.around(then, slack)
    if unit == "day":
        return days.one_day(then)
    return Period(then, period.first) if direction < 0 else _following(period, unit)


def _following(period: Period, unit: str) -> Period:
    then = moved(unit, 1, period.after)
    return Period(period.after, period.after if then is None else then)


def _weekend_beside(period: Period, direction: int) -> Period:
    if direction > 0:
        weekend = days.weekend(period.after)
        return weekend if weekend.first >= period.after else days.weekend(period.after, 1)
    weekend = days.weekend(period.first)
    return weekend if weekend.after <= period.first else days.weekend(period.first, -1)


def _part(tokens: Tokens, at: int, today: Today) -> Reading | None:
    """A third of a longer time: "early May", "mid-2022", "the end of last year"."""
    word = word_at(tokens, at)
    which = next(
        (i for i, part in enumerate((words.EARLY, words.MIDDLE, words.LATE)) if word in part), None
    )
    if which is None:
        return None
    at += 1
    if (at < len(tokens) and tokens[at].kind == "dash") or word_at(tokens, at) in words.OF:
        at += 1
    whole = _anchor(tokens, at, today)
    if whole is None or any(period.after - period.first < 7 for period in whole.periods):
        return None
    return Reading(whole.end, tuple(period.third(which) for period in whole.periods), exact=False)


def _nth(tokens: Tokens, at: int, today: Today) -> Reading | None:
    """One of several units: "first week of May", "last Friday of June 2023"."""
    number = words.NTH.get(word_at(tokens, at))
    word = word_at(tokens, at + 1)
    known = words.UNITS.get(word) in {"day", "week", "weekend"} or word in words.WEEKDAYS
    if number is None or not known or word_at(tokens, at + 2) not in words.OF | {"in"}:
        return None
    whole = _anchor(tokens, at + 3, today)
    if whole is None:
        return None
    found = tuple(_nth_in(period, number, word) for period in whole.periods)
    return Reading(whole.end, found, whole.exact)


def _nth_in(period: Period, number: int, word: str) -> Period:
    unit = words.UNITS.get(word, "")
    if unit in {"day", "week"}:
        length = 1 if unit == "day" else 7
        first = period.first + length * (number - 1) if number > 0 else period.after - length
        return Period(first, first + length)
    weekday, length = (5, 2) if unit == "weekend" else (words.WEEKDAYS[word], 1)
    first = period.first + (weekday - days.weekday(period.first)) % 7 + 7 * (number - 1)
    if number < 0:
        end = period.after - length
        first = end - (days.weekday(end) - weekday) % 7
    return Period(first, first + length)


def _unit_of(tokens: Tokens, at: int, today: Today) -> Reading | None:
    """The unit of the calendar that a day is in: "the week of 9 June 2023"."""
    unit = words.UNITS.get(word_at(tokens, at))
    if unit not in {"week", "weekend", "month"} or word_at(tokens, at + 1) not in words.OF:
        return None
    anchor = _anchor(tokens, at + 2, today)
    if anchor is None:
        return None
    if unit == "month" and anchor.named and anchor.named.day is None:
        return anchor
    found = (distant(unit, 0, period.first) for period in anchor.periods)
    return Reading(anchor.end, tuple(period for period in found if period), anchor.exact)
