"""Times relative to today: "yesterday", "last May", "the past 3 weeks", "two days ago"."""

from __future__ import annotations

from typing import Final

from . import days, words
from .days import Lean, NamedDay, Period
from .named import year_at
from .reading import Reading, Today, Tokens, number_at, word_at
from .units import ago, distant, moved

_PARTS_OF_TODAY: Final = frozenset({"morning", "afternoon", "evening", "night"})


def relative(tokens: Tokens, at: int, today: Today, *, article: bool = False) -> Reading | None:
    """The time relative to today at `at`; `article` is whether "the" precedes it."""
    word = word_at(tokens, at)
    if word in words.DAYS_FROM_TODAY:
        return Reading(at + 1, (days.one_day(today.day + words.DAYS_FROM_TODAY[word]),))
    if lean := _lean(word):
        return _leaning(tokens, at + 1, today, lean, rolling=word in words.ROLLING or article)
    return (
        _beside_today(tokens, at, today)
        or _counted(tokens, at, today)
        or _trailing(tokens, at, today)
    )


def _lean(word: str) -> Lean | None:
    if word in words.LAST or word in words.ROLLING:
        return "last"
    if word in words.THIS:
        return "this"
    return "next" if word in words.NEXT else None


_STEPS: Final[dict[Lean, int]] = {"latest": 0, "last": -1, "this": 0, "next": 1}


def _leaning(tokens: Tokens, at: int, today: Today, lean: Lean, *, rolling: bool) -> Reading | None:
    """The unit or day after "last", "past", "this" or "next"."""
    if many := count_at(tokens, at):
        return _span_of(tokens, many, today, lean)
    word = word_at(tokens, at)
    if word in words.UNITS:
        return _leaning_unit(words.UNITS[word], at + 1, today.day, lean, rolling=rolling)
    if word in words.WEEKDAYS:
        return Reading(
            at + 1, (_weekday_of(words.WEEKDAYS[word], today.day, lean),), lean != "next"
        )
    if word in words.MONTHS or word in words.SEASONS:
        return _calendar(tokens, at, today, lean)
    if word in _PARTS_OF_TODAY and lean in {"last", "this"}:
        return Reading(at + 1, (days.one_day(today.day + _STEPS[lean]),))
    return None


def _leaning_unit(unit: str, end: int, today: int, lean: Lean, *, rolling: bool) -> Reading | None:
    """The span of "last week", or with `rolling` of "the last week", which ends today."""
    if unit == "day":
        return None
    if rolling and lean == "last" and unit != "weekend":
        return _rolling(1, unit, end, today, 1)
    period = distant(unit, _STEPS[lean], today)
    return Reading(end, (period,)) if period else None


def _calendar(tokens: Tokens, at: int, today: Today, lean: Lean) -> Reading | None:
    word = tokens[at].text
    year = year_at(tokens, at + 1, today)
    month, length = (words.MONTHS[word], 1) if word in words.MONTHS else (words.SEASONS[word], 3)
    which = NamedDay(year[0] if year else None, month, length)
    period = days.choose(which, today.day, lean)
    return Reading(year[1] if year else at + 1, (period,), length == 1) if period else None


def count_at(tokens: Tokens, at: int) -> tuple[int, bool, int] | None:
    """A count, whether it is a vague one, and the place after it: "3", "two", "a couple of"."""
    if number := number_at(tokens, at):
        return number, False, at + 1
    word = word_at(tokens, at)
    if word in {"a", "ein", "une", "un", "unos"} and word_at(tokens, at + 1) in words.VAGUE_COUNTS:
        at, word = at + 1, word_at(tokens, at + 1)
    if word in words.VAGUE_COUNTS:
        end = at + 2 if word_at(tokens, at + 1) in words.OF else at + 1
        return words.VAGUE_COUNTS[word], True, end
    return (words.COUNTS[word], False, at + 1) if word in words.COUNTS else None


def _span_of(
    tokens: Tokens, many: tuple[int, bool, int], today: Today, lean: Lean
) -> Reading | None:
    """The time of "the last 3 weeks", today included, and "the next 3 weeks", from today on."""
    count, vague, at = many
    unit = words.UNITS.get(word_at(tokens, at))
    if unit is None or lean == "this":
        return None
    reach = _rolling(count + vague, unit, at + 1, today.day, -1 if lean == "next" else 1)
    return reach if not vague or reach is None else Reading(reach.end, reach.periods, exact=False)


def _rolling(count: int, unit: str, end: int, today: int, back: int) -> Reading | None:
    then = moved(unit, -count * back, today)
    if then is None:
        return Reading(end, (days.one_day(today),), exact=False)
    return Reading(end, (Period(min(then, today), max(then, today) + 1),))


def _weekday_of(weekday: int, today: int, lean: Lean) -> Period:
    """The nearest such weekday in the direction of `lean`; with "this", that of this week."""
    ahead = (weekday - days.weekday(today)) % 7
    match lean:
        case "last":
            return days.one_day(today + ahead - 7)
        case "next":
            return days.one_day(today + (ahead or 7))
        case "this":
            return days.one_day(days.week(today).first + weekday)
        case _:
            return days.one_day(today + ahead - (7 if ahead else 0))


def _beside_today(tokens: Tokens, at: int, today: Today) -> Reading | None:
    """The days of "day before yesterday" and "day after tomorrow"."""
    phrase = (word_at(tokens, at), word_at(tokens, at + 1), word_at(tokens, at + 2))
    distance = {("day", "before", "yesterday"): -2, ("day", "after", "tomorrow"): 2}.get(phrase)
    if distance is None:
        return None
    return Reading(at + 3, (days.one_day(today.day + distance),))


def _counted(tokens: Tokens, at: int, today: Today) -> Reading | None:
    """A count from now: "2 weeks ago", "vor 3 Tagen", "hace dos semanas", "3 days from now"."""
    start = at
    if word_at(tokens, at) in {words.GERMAN_VOR, "hace"}:
        start = at + 1
    elif tuple(word_at(tokens, at + offset) for offset in range(3)) == ("il", "y", "a"):
        start = at + 3
    many = count_at(tokens, start)
    unit = words.UNITS.get(word_at(tokens, many[2])) if many else None
    if many is None or unit is None:
        return None
    count, vague, end = many[0], many[1], many[2] + 1
    if start > at:
        return ago(count, unit, end, today, vague=vague)
    if word_at(tokens, end) in words.AGO:
        return ago(count, unit, end + 1, today, vague=vague)
    if word_at(tokens, end) in words.FROM_NOW:
        return ago(-count, unit, end + 1, today, vague=vague)
    if (word_at(tokens, end), word_at(tokens, end + 1)) == ("from", "now"):
        return ago(-count, unit, end + 2, today, vague=vague)
    return None


def _trailing(tokens: Tokens, at: int, today: Today) -> Reading | None:
    """An adjective after its noun: "la semaine dernière", "el mes pasado", "lundi prochain"."""
    after = word_at(tokens, at + 1)
    if after in words.TRAILING_LAST or after in words.TRAILING_NEXT:
        lean: Lean = "last" if after in words.TRAILING_LAST else "next"
        found = _leaning(tokens[: at + 1], at, today, lean, rolling=False)
        return Reading(at + 2, found.periods, found.exact) if found else None
    return None


def weekday(tokens: Tokens, at: int, today: Today) -> Reading | None:
    """A weekday alone is the latest there was, today included."""
    word = word_at(tokens, at)
    if word not in words.WEEKDAYS or word in words.DOUBTFUL_WEEKDAYS:
        return None
    return Reading(at + 1, (_weekday_of(words.WEEKDAYS[word], today.day, "latest"),), exact=False)
