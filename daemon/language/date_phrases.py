"""What a phrase of date tokens means, as days of the calendar."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Final, Literal, TypeAlias

import msgspec

from .date_tokens import EASTER, Token, following_words, lexicon

# Ordinals of the calendar: [first, after).
Span: TypeAlias = tuple[int, int]
Narrow: TypeAlias = Callable[[Span], Span]
Kind: TypeAlias = Literal["days", "about", "weekday", "weekdays"]

# The months of the units of the calendar but weeks.
_MONTHS: Final = {"t": 1, "z": 3, "U": 12}
LAST_DAY: Final = dt.date.max.toordinal()
# A year for which the days of a month are known where no year is.
LEAP_YEAR: Final = 2000


class Reading(msgspec.Struct, gc=False):
    """The days that a phrase may mean, most likely first.

    Attributes:
        weekday: the weekday that it names, if it is not that of a day.
        dated: False if the days are those of any year.
    """

    periods: tuple[Span, ...] = ()
    kind: Kind = "days"
    weekday: int | None = None
    dated: bool = True


class Phrase(msgspec.Struct, gc=False):
    """The tokens of a phrase and those around it; `today` is None if the moment is unknown."""

    tokens: Sequence[Token]
    before: Token | None
    following: Token | None
    today: int | None

    def get(self, kinds: str) -> Token | None:
        """The first token of these classes."""
        return next((token for token in self.tokens if token.kind in kinds), None)


class Recurring(msgspec.Struct, gc=False):
    """Days that recur in each week (k), month (t), quarter (z) or year (U).

    Attributes:
        narrow: from the days of a unit to those that are meant.
        fixed: whether they are the same days of each year.
    """

    unit: str
    narrow: tuple[Narrow, ...] = ()
    fixed: bool = False

    def spans(self, units: Iterable[int]) -> list[Span]:
        """The days in those units that have them."""
        spans = []
        for index in units:
            try:
                span = _unit_span(self.unit, index)
                for narrow in self.narrow:
                    span = narrow(span)
            except (ValueError, OverflowError):
                # The calendar has no such day.
                continue
            spans.append(span)
        return spans


def month_of(day: int) -> int:
    """The month of a day, counted from the year 0."""
    date = dt.date.fromordinal(day)
    return date.year * 12 + date.month - 1


def months(index: int, count: int) -> Span:
    """`count` months from a month that is counted from the year 0; ValueError if there are none."""
    year, month = divmod(index, 12)
    until, last = divmod(index + count, 12)
    first = dt.date(year, month + 1, 1).toordinal()
    if until > dt.MAXYEAR:
        return first, LAST_DAY + 1
    return first, dt.date(until, last + 1, 1).toordinal()


def _unit_index(unit: str, day: int) -> int:
    """The number of the week, month, quarter or year of a day."""
    return (day - 1) // 7 if unit == "k" else month_of(day) // _MONTHS[unit]


def _unit_span(unit: str, index: int) -> Span:
    """The days of a unit; ValueError if it is not in the calendar."""
    if unit == "k":
        return 7 * index + 1, 7 * index + 8
    count = _MONTHS[unit]
    return months(index * count, count)


def weekday_of(day: int) -> int:
    """0 for Monday."""
    return (day + 6) % 7


def _next_weekday(day: int, weekday: int) -> int:
    """The first such weekday from `day` on."""
    return day + (weekday - weekday_of(day)) % 7


def _months_in(first: int, count: int, year: Span) -> Span:
    return months(month_of(year[0]) + first - 1, count)


def _days_in(first: int, last: int, whole: Span) -> Span:
    if first > last or whole[0] + last > whole[1]:
        raise ValueError
    return whole[0] + first - 1, whole[0] + last


def _nth_in(which: int, unit: Token, month: Span) -> Span:
    """The first, second, last (-1) week, weekend or weekday of a month."""
    start = month[0] + 7 * (which - 1) if which > 0 else month[1] - 7
    if unit.kind == "k":
        return start, min(start + 7, month[1])
    first = _next_weekday(start, 5 if unit.kind == "x" else unit.value)
    if first >= month[1]:
        raise ValueError
    return first, first + (2 if unit.kind == "x" else 1)


def _part_in(which: int, whole: Span) -> Span:
    """The beginning (0), middle or end (2) of a week, month or year."""
    length = whole[1] - whole[0]
    size = 3 if length <= 7 else 10 if length <= 31 else length // 6
    first = whole[0] + (0, (length - size) // 2, length - size)[which]
    return first, first + size


def _easter_in(distance: int, whole: Span) -> Span:
    """Easter Sunday, by the Gregorian computus, or a day before or after it."""
    year = dt.date.fromordinal(whole[0]).year
    century, golden = year // 100, year % 19
    epact = (19 * golden + century - century // 4 - (8 * century + 13) // 25 + 15) % 30
    epact -= (epact // 28) * (1 - (29 // (epact + 1)) * ((21 - golden) // 11))
    sunday = (year + year // 4 + epact + 2 - century + century // 4) % 7
    day = dt.date(year, 3, 28).toordinal() + epact - sunday + distance
    return day, day + 1


def read(match: re.Match[str], tokens: Sequence[Token], today: int | None) -> Reading | None:
    """What a phrase means; None if it is no date."""
    first, after = max(match.start(), match.end("weeks"), match.end("week")), match.end()
    lasting = match.string.find("F", first, after)
    end = after if lasting < 0 else lasting
    before = tokens[first - 1] if first else None
    following = tokens[end] if end < len(tokens) else None
    phrase = Phrase(tokens[first:end], before, following, today)
    name = match.lastgroup or ""
    if name in _READERS:
        reading = _READERS[name](phrase)
    else:
        reading = None if today is None else _RELATIVE[name](phrase, today)
    if reading is None:
        return None
    periods: Iterable[Span] = reading.periods
    if lasting >= 0:
        length = tokens[after - 2].value * tokens[after - 1].value
        periods = ((start, start + length) for start, _ in periods)
    elif match["week"]:
        periods = ((start, start + 7 if end - start == 1 else end) for start, end in periods)
    elif match["weeks"] and reading.kind == "days":
        weeks = _NAMED["x" if "x" in match["weeks"] else "ktz"](tokens[match.start("weeks")])
        periods = weeks.spans([_unit_index("k", start) for start, _ in periods])
    reading.periods = tuple(
        (max(start, 1), min(end, LAST_DAY + 1))
        for start, end in dict.fromkeys(periods)
        if start <= LAST_DAY and end > 1
    )
    return reading if reading.periods or reading.weekday is not None else None


def _date(phrase: Phrase, nth: Narrow | None = None) -> Reading | None:
    """A date of the calendar: in the year that is named, or else near today."""
    if not _is_date(phrase):
        return None
    part, weekday = phrase.get("E"), phrase.get("wW")
    periods: list[Span] = []
    dated = True
    for year, days in _days_of(phrase):
        if nth:
            days.narrow, days.fixed = (*days.narrow, nth), False
        elif part:
            days.narrow = (*days.narrow, partial(_part_in, part.value))
        if year is not None:
            periods += days.spans([year])
        elif phrase.today is not None:
            periods += _around(phrase, days, phrase.today)
        elif days.fixed:
            periods, dated = days.spans([LEAP_YEAR]), False
    if weekday and not periods:
        return Reading(kind="weekday", weekday=weekday.value)
    return Reading(tuple(periods), dated=dated) if periods else None


def _days_of(phrase: Phrase) -> Iterator[tuple[int | None, Recurring]]:
    """The days that are named, with their year if it is."""
    years, month, digits = phrase.get("yY"), phrase.get("mM"), phrase.get("f")
    year = years.value if years else None
    numbers = [
        (each.value, each.last or each.value) for each in phrase.tokens if each.kind in "dDJrNo"
    ]
    if digits:
        for of_year, of_month, day in digits.dates:
            yield of_year, _in_year(of_month, day)
    elif numbers:
        if not phrase.get("&") or phrase.get("B"):
            numbers = [(numbers[0][0], numbers[-1][1])]
        for first, last in numbers:
            days = _in_year(month.value) if month else Recurring("t")
            days.narrow += (partial(_days_in, first, last),)
            yield year, days
    else:
        named = ((make, phrase.get(kinds)) for kinds, make in _NAMED.items())
        yield year, next(make(name) for make, name in named if name)


def _in_year(month: int, day: int | None = None, count: int = 1) -> Recurring:
    """Some months of each year, or a day of one."""
    narrow: tuple[Narrow, ...] = (partial(_months_in, month, count),)
    if day:
        narrow += (partial(_days_in, day, day),)
    return Recurring("U", narrow, fixed=True)


def _holiday(name: Token) -> Recurring:
    if name.value > EASTER // 2:
        return Recurring("U", (partial(_easter_in, name.value - EASTER),))
    return _in_year(*divmod(name.value, 100))


# The days of a name by its class, the narrower before the wider.
_NAMED: Final[dict[str, Callable[[Token], Recurring]]] = {
    "mM": lambda month: _in_year(month.value),
    "sQ": lambda season: _in_year(season.value, count=3),
    "H": _holiday,
    "wW": lambda day: Recurring("k", (partial(_days_in, day.value + 1, day.value + 1),)),
    "x": lambda _: Recurring("k", (partial(_days_in, 6, 7),)),
    "ktz": lambda unit: Recurring(unit.kind),
    "UyY": lambda _: Recurring("U"),
}


def _around(phrase: Phrase, days: Recurring, today: int) -> list[Span]:
    """Those of the unit that is named, of the one before or after today, or the nearest."""
    step, weekday = phrase.get("lcj"), phrase.get("wW")
    this = _unit_index(days.unit, today) + (step.value if step else 0)
    own = days.spans([this])
    # 下周五 is a day of the next week, "next Friday" perhaps the coming one.
    if phrase.get(days.unit) or (step and weekday and not weekday.word.isascii()):
        return own
    spans = days.spans(range(this - 1, this + 2))
    if len(spans) < 3 or (weekday and days.unit == "t"):
        # 29 February may be eight years away, "Monday the 5th" some months.
        spans = days.spans(range(this - 8, this + 9))
    if step:
        near = _nearest(spans, today, step.value) if abs(step.value) < 2 else []
        return near + own if days.unit == "k" and step.kind != "c" else near or own
    near = _nearest(spans, today)
    if weekday is None or days.unit == "k":
        return near
    fitting = [span for span in spans if weekday_of(span[0]) == weekday.value]
    return [span for span in near if span in fitting] or _nearest(fitting, today) or near


def _nearest(spans: Sequence[Span], today: int, direction: int | None = None) -> list[Span]:
    """That of today, the next and the last, the nearer first; or the one of a direction."""
    past = [span for span in spans if span[1] <= today][-1:]
    now = [span for span in spans if span[0] <= today < span[1]]
    coming = [span for span in spans if span[0] > today][:1]
    if direction is not None:
        return past if direction < 0 else coming if direction > 0 else now
    return now + sorted(coming + past, key=lambda span: abs(span[0] + span[1] - 1 - 2 * today))


def _is_date(phrase: Phrase) -> bool:
    """Whether a number is no count and a month no verb: "July 3 pieces", "all 7 may come"."""
    first, last, following = phrase.tokens[0], phrase.tokens[-1], phrase.following
    month, step, sets = phrase.get("mM"), phrase.get("l"), lexicon().sets
    counts = following and (following.kind in "uktz" or following.word in sets["counted"])
    if counts and last.kind in "dry":
        return False
    if month is None or month.marked or month.word not in sets["verbs"]:
        return True
    if not phrase.get("dr"):
        return not step or step.value != 0
    return first.kind in "aqpwWBo" or last.kind == "y" or _ends(following)


def _ends(following: Token | None) -> bool:
    """Whether a number before it is not a number of it."""
    return (
        following is None or following.kind in ",|pqaOL-&R" or following.word in following_words()
    )


def _nth(phrase: Phrase) -> Reading | None:
    """The third week of June, the last Friday of next month, 六月第三周."""
    tokens = phrase.tokens
    at = next(at for at, token in enumerate(tokens) if token.kind in "olcj")
    which, unit = tokens[at : at + 2]
    if not which.value or (which.kind != "o" and which.value != -1):
        return None
    phrase.tokens = [*tokens[:at], *tokens[at + 2 :]]
    return _date(phrase, partial(_nth_in, which.value, unit))


def _day(phrase: Phrase) -> Reading | None:
    """The 5th, Monday the 5th, am 5., 5号, the 15th of next month."""
    *others, number = phrase.tokens
    if number.kind in "dD":
        # A German ordinal has a full stop: "am 5. kommen".
        if not number.marked and not _ends(phrase.following):
            return None
        cues = [token for token in others if token.kind != "u"]
        if number.kind == "d" and not (cues and cues[-1].value):
            return None
    return _date(phrase)


def _weekday_name(phrase: Phrase) -> Reading | None:
    """Monday: the coming and the last, and today if it is one."""
    *others, name = phrase.tokens
    before, following = others[-1] if others else phrase.before, phrase.following
    if name.kind == "W":
        # "Sun is shining", "the Sun", but "Mon-Fri" and "Sat 9:30".
        joined = following is not None and (following.kind in "-d" or not following.word)
        if not name.marked or not (joined or (before and before.kind not in "|a")):
            return None
    reading = _date(phrase)
    if reading:
        reading.kind = "weekday"
    return reading


def _every(phrase: Phrase) -> Reading | None:
    """Tuesdays, every Tuesday, los martes."""
    name = phrase.tokens[-1]
    return Reading(kind="weekdays", weekday=name.value) if name.kind != "W" or name.marked else None


def _relative(phrase: Phrase, today: int) -> Reading:
    """Tomorrow, last night, 3日前."""
    return _one_day(today + prod(token.value for token in phrase.tokens if token.kind in "RJg"))


def _shifted(phrase: Phrase, today: int) -> Reading:
    """A week on Friday, Saturday week, Freitag in einer Woche."""
    weekday, weeks = (
        sum(t.value for t in phrase.tokens if t.kind in kinds) for kinds in ("wW", "Nd")
    )
    return _one_day(_next_weekday(today, weekday) + 7 * (weeks or 1))


def _count(phrase: Phrase, today: int) -> Reading | None:
    """In 3 days, two weeks ago, the last 3 days; months and years are those of the calendar."""
    tokens = phrase.tokens
    sign = tokens[-1] if tokens[-1].kind == "g" else tokens[-3]
    number, unit = (token for token in tokens if token.kind in "NdnuktU")
    if not sign.value:
        return None
    distance = number.value * sign.value
    then = today + distance * unit.value
    if sign.kind in "lc":
        return Reading(((min(today, then), max(today, then) + 1),))
    if unit.kind in "tU":
        this = _unit_index(unit.kind, today)
        return Reading(tuple(Recurring(unit.kind).spans([this + distance])))
    if unit.kind == "k":
        return Reading(((then, then + 1), (then - 3, then + 4)), "about")
    return _one_day(then)


def _one_day(day: int) -> Reading:
    return Reading(((day, day + 1),))


_READERS: Final[dict[str, Callable[[Phrase], Reading | None]]] = {
    "date": _date, "nth": _nth, "day": _day, "weekday": _weekday_name, "every": _every,
}  # fmt: skip
# These need a known moment.
_RELATIVE: Final[dict[str, Callable[[Phrase, int], Reading | None]]] = {
    "relative": _relative, "shifted": _shifted, "count": _count,
}  # fmt: skip
