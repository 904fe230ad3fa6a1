"""Dates in texts and questions, in several languages: "5th of Jan", "nächsten Freitag", "下周五".

The words are in `lexicon/`, in a table `[dates]` for each language. `date_tokens.py` gives each
token of a text a class of one character, and `_GRAMMAR` finds dates as patterns of these
characters. Most dates are days that recur, in a year, a month or a week (`Recurring`):

    "the third week of June"  →  aokOm  →  in each year, of month 6, the third week

Every date has codes, characters of Unicode's private use area that are terms of the full-text
index: days and months of any year, and weekdays. The codes of concepts are above them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from .date_tokens import EASTER, Token, following_words, lexicon, may_have_dates, tokens_of

# Ordinals of the calendar: [first, after).
Span: TypeAlias = tuple[int, int]
Narrow: TypeAlias = Callable[[Span], Span]
Kind: TypeAlias = Literal["days", "about", "weekday", "weekdays"]

DAY_CODE: Final = 0xE000
MONTH_CODE: Final = 0xE180
WEEKDAY_CODE: Final = 0xE190
# A longer span has the codes of its months only, and one of more months none.
_MOST_DAYS: Final = 10
_MOST_MONTHS: Final = 6
# What the days around one that is counted in weeks, and a weekday, are worth to a question.
_NEAR: Final = 0.5
_EVERY_WEEK: Final = 0.5
_LAST_DAY: Final = dt.date.max.toordinal()
# A year for which the days of a month are known where no year is.
_LEAP_YEAR: Final = 2000
# The months of the units of the calendar but weeks.
_MONTHS: Final = {"t": 1, "z": 3, "U": 12}

_GRAMMAR: Final = re.compile(
    r"""(?=[^.,|])
    # the weekend of ...
    (?:[aq]{0,2}(?P<weeks>[kx]Oa?))? B?[aqp]{0,3} (?:
    (?P<every>P|e[o.]?[wW])
    # in 3 days, two weeks ago, the last 3 days
    |(?P<count>[Ndn][uktU]g|[lcp][Ndn][uktU])
    # but not "Montag morgen"
    |(?<!w)(?P<relative>R)
    # a week on Friday, Saturday week
    |(?P<shifted>Nkqa?[wW]|[wW]k|[wW]p[Nd]k)
    # third week of June, second Sunday in April, last Friday of next month, 六月第三周
    |(?P<nth>[olcj][wWkx][Op]a?(?:[mM]YEAR?|[lc]t|tj)|WITHIN?mo[kw])
    # 4月12日, 五月底
    |(?P<date>WITHIN?m(?:Jw?|E)
    # 5 January 2026, the 5th of Jan, tres de agosto, January 5, May the 4th
    |(?:DAY|[lc])?(?:(?:[dD]O?a?|[No]Oa?)[mM]|[mM]a?[dD](?![ukxtU]))YEAR?
    # 7–9 May, 7 to 9 May, May 7–9
    |DAY?(?:r|[dD][-L&]a?[dD])O?a?[mM]YEAR?|[mM](?:r|[dD][-L][dD])YEAR?
    |DAY?f
    # end of May, early next week, mid-2026
    |E[-Opa]{0,2}(?:[lcj]?[mM]YEAR?|[lcj][ktU]|y|(?<=[-Opa])[ktU]j?)|ltE
    # last summer, in spring, Q3, Christmas 2026, next May
    |WITHINs|[lcj]sYEAR?|s(?:j|YEAR)|(?:(?<=p)|(?<=pa))s(?!O)|[lcj]?[HQ]YEAR?|yQ
    |WITHINm|[lcj][mM]|[mM]j|[mM]YEAR|m|(?:(?<=[pOLB])|(?<=[pO]a))M
    # Friday next week, next Friday, this weekend, last month
    |[lcj]k,?q?[wW]|[wW]O?a?(?:[lc]k|kj)|[lcj][wW]|[wW]j
    # in the year 2024
    |[lcj][kxtzU]|[kxtU]j|(?:(?<=[pq])|(?<=[pq]a))x(?!O)|Y|(?<=p)U?y|(?<=pa)Uy)
    # the 5th, Monday the 5th, am 5., 5号
    |(?P<day>[dD]Oa?(?:[lcj]t|tj?)|(?<=[aqp])D|[wW],?(?:a?D|ad)|(?<=[aq])u?d|J)
    |(?P<weekday>[wW]))
    # ... for one week
    (?:F[Ndn][ukt])?
    """.replace("YEAR", "(?:,?O?a?(?:y|[lcj]U|Uj))")
    .replace("WITHIN", "(?:Y|[lc]U)")  # Chinese has the year before the month.
    .replace("DAY", "(?:[wW],?[aq]{0,2})"),
    re.VERBOSE,
)


class DateMention(msgspec.Struct, frozen=True):
    """A date in a text.

    Attributes:
        text: the words that name it, from `start` to `end`.
        periods: the days or spans that it may mean, most likely first; empty if that depends on a
            moment that is unknown.
        kind: `about` is a day counted in weeks, `weekday` a bare name of one, `weekdays` every
            such day.
        codes: its terms in the full-text index.
    """

    text: str
    start: int
    end: int
    periods: tuple[Span, ...]
    kind: Kind
    codes: str


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
                span = unit_span(self.unit, index)
                for narrow in self.narrow:
                    span = narrow(span)
            except (ValueError, OverflowError):
                # The calendar has no such day.
                continue
            spans.append(span)
        return spans


def find_dates(text: str, told_at: float | None, zone: dt.tzinfo) -> tuple[DateMention, ...]:
    """The dates in `text`, in order; takes time linear in its length and raises for no text.

    Relative dates are relative to the day of `told_at`, in seconds since the epoch; None leaves
    only dates that name a day, month, year or weekday.
    """
    if not may_have_dates(text):
        return ()
    tokens = tokens_of(text)
    classes = "".join([token.kind for token in tokens])
    today = _ordinal(told_at, zone)
    readings: list[tuple[int, int, Reading]] = []
    at = 0
    while match := _GRAMMAR.search(classes, at):
        first, after = match.span()
        reading = _read(match, tokens, today)
        if reading is None:
            at = first + 1
            continue
        at = after
        if readings and _are_linked(classes, *readings[-1][:2], first):
            begin, _, lower = readings[-1]
            if periods := _joined(lower.periods, reading.periods):
                readings.pop()
                first, reading = begin, Reading(periods)
        readings.append((first, after, reading))
    return tuple(
        DateMention(
            text[tokens[first].start : tokens[after - 1].end],
            tokens[first].start,
            tokens[after - 1].end,
            reading.periods if reading.dated else (),
            reading.kind,
            _codes_of(reading),
        )
        for first, after, reading in readings
    )


def date_codes(text: str, told_at: float | None, zone: dt.tzinfo) -> str:
    """The codes of all dates in `text`, each once."""
    return "".join(dict.fromkeys("".join(each.codes for each in find_dates(text, told_at, zone))))


def sought_codes(mention: DateMention) -> dict[str, float]:
    """The codes that answer a question for `mention`, with their worth from 0 to 1.

    A day or a few are answered by themselves, a month by everything in it, a year by no code.
    """
    days = [code for code in mention.codes if code < chr(MONTH_CODE)]
    sought: dict[str, float] = {}
    if mention.kind == "about":
        sought = dict.fromkeys(_day_codes(mention.periods[-1]), _NEAR)
    elif mention.kind in ("weekday", "weekdays"):
        worth = _EVERY_WEEK if mention.kind == "weekday" else 1.0
        sought = {code: worth for code in mention.codes if code >= chr(WEEKDAY_CODE)}
    elif not days:
        days = [code for code in mention.codes if code < chr(WEEKDAY_CODE)]
    return sought | dict.fromkeys(days, 1.0)


def seconds_of(period: Span, zone: dt.tzinfo) -> tuple[float, float]:
    """The beginning and the end of a period in a time zone, in seconds since the epoch."""
    # The first and the last day of the calendar have no time in every zone.
    first, after = (dt.date.fromordinal(min(max(day, 2), _LAST_DAY - 1)) for day in period)
    start, end = (dt.datetime.combine(day, dt.time(), zone) for day in (first, after))
    return start.timestamp(), end.timestamp()


def _ordinal(moment: float | None, zone: dt.tzinfo) -> int | None:
    try:
        return None if moment is None else dt.datetime.fromtimestamp(moment, zone).toordinal()
    except (OverflowError, ValueError, OSError):
        return None


def _are_linked(classes: str, first: int, after: int, begin: int) -> bool:
    """Whether what is between two dates joins them: "from Monday to Friday"."""
    between = classes[after:begin]
    return between in ("L", "-") or (between == "&" and classes[first] == "B")


def _joined(lower: Sequence[Span], upper: Sequence[Span]) -> tuple[Span, ...]:
    """From each day to the nearest end; a missing year is that of the other."""
    if len(upper) == 1 and len(lower) > 1:
        first, end = (dt.date.fromordinal(period[0]) for period in (lower[0], upper[0]))
        year = max(1, end.year - ((first.month, first.day) > (end.month, end.day)))
        lower = [(first.replace(year, day=min(first.day, 28)).toordinal(), 0)]
    ends = ((first, [end for start, end in upper if start >= first]) for first, _ in lower)
    return tuple((first, min(after)) for first, after in ends if after)


def _codes_of(reading: Reading) -> str:
    codes: dict[str, None] = {}
    periods = reading.periods[:1] if reading.kind == "about" else reading.periods
    for first, after in periods:
        length = after - first
        if length <= _MOST_DAYS:
            codes |= dict.fromkeys(_day_codes((first, after)))
        if length <= 31 * _MOST_MONTHS:
            index = range(month_of(first), month_of(after - 1) + 1)
            codes |= dict.fromkeys(chr(MONTH_CODE + month % 12 + 1) for month in index)
    if reading.weekday is not None:
        codes[chr(WEEKDAY_CODE + reading.weekday)] = None
    elif periods and reading.dated and periods[0][1] - periods[0][0] == 1:
        codes[chr(WEEKDAY_CODE + _weekday(periods[0][0]))] = None
    return "".join(codes)


def _day_codes(period: Span) -> list[str]:
    """The codes of days, whatever their year: 29 February has one."""
    dates = map(dt.date.fromordinal, range(*period))
    start = dt.date(_LEAP_YEAR, 1, 1)
    return [chr(DAY_CODE + (date.replace(_LEAP_YEAR) - start).days) for date in dates]


# --- the calendar


def month_of(day: int) -> int:
    """The month of a day, counted from the year 0."""
    date = dt.date.fromordinal(day)
    return date.year * 12 + date.month - 1


def months(index: int, count: int) -> Span:
    """`count` months from one that is counted from the year 0; ValueError if there are none."""
    year, month = divmod(index, 12)
    until, last = divmod(index + count, 12)
    first = dt.date(year, month + 1, 1).toordinal()
    if until > dt.MAXYEAR:
        return first, _LAST_DAY + 1
    return first, dt.date(until, last + 1, 1).toordinal()


def unit_index(unit: str, day: int) -> int:
    """The number of the week, month, quarter or year of a day."""
    return (day - 1) // 7 if unit == "k" else month_of(day) // _MONTHS[unit]


def unit_span(unit: str, index: int) -> Span:
    """The days of a unit; ValueError if it is not in the calendar."""
    if unit == "k":
        return 7 * index + 1, 7 * index + 8
    count = _MONTHS[unit]
    return months(index * count, count)


def _weekday(day: int) -> int:
    return (day + 6) % 7


def _next_weekday(day: int, weekday: int) -> int:
    """The first such weekday from `day` on."""
    return day + (weekday - _weekday(day)) % 7


def _months_in(first: int, count: int = 1) -> Narrow:
    return lambda year: months(month_of(year[0]) + first - 1, count)


def _days_in(first: int, last: int) -> Narrow:
    def narrow(whole: Span) -> Span:
        if first > last or whole[0] + last > whole[1]:
            raise ValueError
        return whole[0] + first - 1, whole[0] + last

    return narrow


def _nth_in(which: int, unit: Token) -> Narrow:
    """The first, second, last (-1) week, weekend or weekday of a month."""

    def narrow(month: Span) -> Span:
        start = month[0] + 7 * (which - 1) if which > 0 else month[1] - 7
        if unit.kind == "k":
            return start, min(start + 7, month[1])
        first = _next_weekday(start, 5 if unit.kind == "x" else unit.value)
        if first >= month[1]:
            raise ValueError
        return first, first + (2 if unit.kind == "x" else 1)

    return narrow


def _part_in(which: int) -> Narrow:
    """The beginning (0), middle or end (2) of a week, month or year."""

    def narrow(whole: Span) -> Span:
        length = whole[1] - whole[0]
        size = 3 if length <= 7 else 10 if length <= 31 else length // 6
        first = whole[0] + (0, (length - size) // 2, length - size)[which]
        return first, first + size

    return narrow


def _easter_in(distance: int) -> Narrow:
    """Easter Sunday, by the Gregorian computus, or a day before or after it."""

    def narrow(whole: Span) -> Span:
        year = dt.date.fromordinal(whole[0]).year
        century, golden = year // 100, year % 19
        epact = (19 * golden + century - century // 4 - (8 * century + 13) // 25 + 15) % 30
        epact -= (epact // 28) * (1 - (29 // (epact + 1)) * ((21 - golden) // 11))
        sunday = (year + year // 4 + epact + 2 - century + century // 4) % 7
        day = dt.date(year, 3, 28).toordinal() + epact - sunday + distance
        return day, day + 1

    return narrow


# --- the readings


def _read(match: re.Match[str], tokens: Sequence[Token], today: int | None) -> Reading | None:
    """What a phrase means; None if it is no date."""
    first, after = max(match.start(), match.end("weeks")), match.end()
    lasting = match.string.find("F", first, after)
    end = after if lasting < 0 else lasting
    before = tokens[first - 1] if first else None
    following = tokens[end] if end < len(tokens) else None
    phrase = Phrase(tokens[first:end], before, following, today)
    reading = _READERS[match.lastgroup or ""](phrase)
    if reading is None:
        return None
    periods: Iterable[Span] = reading.periods
    if lasting >= 0:
        length = tokens[after - 2].value * tokens[after - 1].value
        periods = ((start, start + length) for start, _ in periods)
    elif match["weeks"] and reading.kind == "days":
        weeks = _NAMED["x" if "x" in match["weeks"] else "ktz"](tokens[match.start("weeks")])
        periods = weeks.spans([unit_index("k", start) for start, _ in periods])
    reading.periods = tuple(
        (max(start, 1), min(end, _LAST_DAY + 1))
        for start, end in dict.fromkeys(periods)
        if start <= _LAST_DAY and end > 1
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
            days.narrow = (*days.narrow, _part_in(part.value))
        if year is not None:
            periods += days.spans([year])
        elif phrase.today is not None:
            periods += _around(phrase, days, phrase.today)
        elif days.fixed:
            periods, dated = days.spans([_LEAP_YEAR]), False
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
            narrow = (_months_in(of_month), _days_in(day, day)) if day else (_months_in(of_month),)
            yield of_year, Recurring("U", narrow, fixed=True)
    elif numbers:
        if not phrase.get("&") or phrase.get("B"):
            numbers = [(numbers[0][0], numbers[-1][1])]
        for first, last in numbers:
            days = _NAMED["mM"](month) if month else Recurring("t")
            days.narrow += (_days_in(first, last),)
            yield year, days
    else:
        named = ((make, phrase.get(kinds)) for kinds, make in _NAMED.items())
        yield year, next(make(name) for make, name in named if name)


def _holiday(name: Token) -> Recurring:
    if name.value > EASTER // 2:
        return Recurring("U", (_easter_in(name.value - EASTER),))
    month, day = divmod(name.value, 100)
    return Recurring("U", (_months_in(month), _days_in(day, day)), fixed=True)


# The days of a name by its class, the narrower before the wider.
_NAMED: Final[dict[str, Callable[[Token], Recurring]]] = {
    "mM": lambda month: Recurring("U", (_months_in(month.value),), fixed=True),
    "sQ": lambda season: Recurring("U", (_months_in(season.value, 3),), fixed=True),
    "H": _holiday,
    "wW": lambda weekday: Recurring("k", (_days_in(weekday.value + 1, weekday.value + 1),)),
    "x": lambda _: Recurring("k", (_days_in(6, 7),)),
    "ktz": lambda unit: Recurring(unit.kind),
    "UyY": lambda _: Recurring("U"),
}


def _around(phrase: Phrase, days: Recurring, today: int) -> list[Span]:
    """Those of the unit that is named, of the one before or after today, or the nearest."""
    step, weekday = phrase.get("lcj"), phrase.get("wW")
    this = unit_index(days.unit, today) + (step.value if step else 0)
    own = days.spans([this])
    # 下周五 is a day of the next week, "next Friday" perhaps the coming one.
    if phrase.get(days.unit) or (step and weekday and not weekday.word.isascii()):
        return own
    spans = days.spans(range(this - 1, this + 2))
    if len(spans) < 3:
        # 29 February may be eight years away.
        spans = days.spans(range(this - 8, this + 9))
    if step:
        near = _nearest(spans, today, step.value) if abs(step.value) < 2 else []
        return near + own if days.unit == "k" and step.kind != "c" else near or own
    near = _nearest(spans, today)
    if weekday is None or days.unit == "k":
        return near

    def fitting(spans: Iterable[Span]) -> list[Span]:
        return [span for span in spans if _weekday(span[0]) == weekday.value]

    # The nearest 5th may be no Monday.
    return (
        fitting(near) or _nearest(fitting(days.spans(range(this - 12, this + 13))), today) or near
    )


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
    return _date(phrase, _nth_in(which.value, unit))


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


def _shifted(phrase: Phrase) -> Reading | None:
    """A week on Friday, Saturday week, Freitag in einer Woche."""
    weekday, count = phrase.get("wW"), phrase.get("Nd")
    if phrase.today is None or weekday is None:
        return None
    day = _next_weekday(phrase.today, weekday.value) + 7 * (count.value if count else 1)
    return Reading(((day, day + 1),))


def _count(phrase: Phrase) -> Reading | None:
    """In 3 days, two weeks ago, the last 3 days; months and years are those of the calendar."""
    tokens, today = phrase.tokens, phrase.today
    sign = tokens[-1] if tokens[-1].kind == "g" else tokens[-3]
    number, unit = (token for token in tokens if token.kind in "NdnuktU")
    if today is None or not sign.value:
        return None
    distance = number.value * sign.value
    then = today + distance * unit.value
    if sign.kind in "lc":
        return Reading(((min(today, then), max(today, then) + 1),))
    if unit.kind in "tU":
        this = unit_index(unit.kind, today)
        return Reading(tuple(Recurring(unit.kind).spans([this + distance])))
    if unit.kind == "k":
        return Reading(((then, then + 1), (then - 3, then + 4)), "about")
    return Reading(((then, then + 1),))


def _relative(phrase: Phrase) -> Reading | None:
    """Tomorrow, last night, übermorgen."""
    if phrase.today is None:
        return None
    day = phrase.today + phrase.tokens[-1].value
    return Reading(((day, day + 1),))


_READERS: Final[dict[str, Callable[[Phrase], Reading | None]]] = {
    "every": _every, "count": _count, "relative": _relative,
    "shifted": _shifted, "nth": _nth, "date": _date, "day": _day,
    "weekday": _weekday_name,
}  # fmt: skip
