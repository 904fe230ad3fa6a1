"""Dates in texts and questions, in several languages: "5th of Jan", "nächsten Freitag", "下周五".

The words are in `lexicon/`, in a table `[dates]` for each language. `date_tokens.py` gives each
token of a text a class of one character, `_GRAMMAR` finds dates as patterns of these characters,
and `date_phrases.py` says which days each means:

    "the third week of June"  →  aokOm  →  15 to 21 June

Every date has codes, characters of Unicode's private use area that are terms of the full-text
index: days and months of any year, and weekdays. The codes of concepts are above them.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

import msgspec

from .date_phrases import READERS, Kind, Phrase, Reading, Span, joined, lasting, month_of, weeks_of
from .date_tokens import may_have_dates, tokens_of

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

_YEAR: Final = r"(?:,?O?a?(?:y|[lcj]U|Uj))?"
_GRAMMAR: Final = re.compile(
    r"(?=[^.,|])B?[aqp]{0,3}(?:"
    # 4月12日
    r"(?P<day>(?:(?:[yN]U|[lc]U)?[dN]K[dN]Jw?)"
    # 5 January 2026, the 5th of Jan, tres de agosto, January 5, May the 4th
    r"|(?:[wW],?[aq]{0,2}|[lc])?(?:(?:[dD]O?a?[mMA]|[No]Oa?[mMA]|[mMA]a?[dD](?![ukxtU]))YEAR))"
    # 7–9 May, 7 to 9 May, May 7–9
    r"|(?P<days>(?:[wW],?)?a?(?:r|[dD][-L&]a?[dD])O?a?[mMA]YEAR|[mMA](?:r|[dD][-L][dD])YEAR)"
    r"|(?P<numeric>(?:[wW],?[aq]{0,2})?f)"
    # third week of June, second Sunday in April, last Friday of next month, 六月第三周
    r"|(?P<nth>[olcj](?:[wW]|k|x)[Op]a?(?:[mMA]YEAR|[lc]t|tj)|(?:[yN]U|lU)?[dN]KT[dN][kw])"
    # end of May, early next week, mid-2026, 五月底
    r"|(?P<part>E[-Opa]{0,2}(?:[lcj]?[mMA]YEAR|[lcj][ktU]|y|(?<=[-Opa])[ktU]j?)"
    r"|(?:[yN]U|lU)?[dN]KE|lKE)"
    r"|(?P<month>(?:[yN]U|[lc]U)?[dN]K|[lcj][mM]|[mM]j|[mMA],?O?a?(?:y|[lcj]U|Uj)|m"
    r"|(?<=[pOLB])M|(?<=[pO]a)M)"
    # Friday next week, a week on Friday, Saturday week
    r"|(?P<week_day>[lcj]k,?q?[wW]|[wW]O?a?[lc]k|[wW]O?a?kj|Nkqa?[wW]|[wW]k|[wW]p[Nd]k)"
    r"|(?P<weekdays>P|e[o.]?[wW])"
    r"|(?P<near_weekday>[lcj][wW]|[wW]j)"
    r"|(?P<count>[Ndn][uktUJ][gh]|G[Ndn][uktU]|(?<=p)[Ndn][uktU](?!g))"
    r"|(?P<rolling>[lcj][Ndn][uktU])"
    r"|(?P<unit>[lcj](?:[kxtzK]|U(?!s))|[kxtU]j|(?<=[pq])x(?!O)|(?<=[pq]a)x(?!O))"
    r"|(?P<relative>R)"
    r"|(?P<season>(?:[yN]|[lc])Us|[lcj]sYEAR|sj|s,?O?a?(?:y|[lcj]U|Uj)|(?<=p)s(?!O)|(?<=pa)s(?!O))"
    r"|(?P<holiday>[lcj]?HYEAR)"
    r"|(?P<quarter>QYEAR|yQ)"
    r"|(?P<year>(?<=p)U?y|(?<=pa)Uy|[yN]U)"
    # the 5th, Monday the 5th, am 5., 5号
    r"|(?P<day_of_month>[dD]Oa?(?:[lcj]t|tj?)|(?<=[aqp])D|[wW],?(?:a?D|ad)|(?<=[aq])u?d|[dN]J)"
    r"|(?P<weekday>[wW])"
    r")".replace("YEAR", _YEAR)
)
_LASTING: Final = re.compile("F[Ndn][ukt]")
_WEEK_OF: Final = re.compile("(?:q?a?x|k)Oa?$")


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
        try:
            reading = READERS[match.lastgroup or ""](Phrase(tokens, first, after, today))
        except (ValueError, OverflowError):
            # The calendar has no such day.
            reading = None
        if reading is None:
            at = first + 1
            continue
        if further := _LASTING.match(classes, after):
            reading = lasting(reading, tokens[after + 1], tokens[after + 2])
            after = further.end()
        elif reading.kind == "day" and (
            week := _WEEK_OF.search(classes, max(at, first - 5), first)
        ):
            reading, first = weeks_of(reading, "x" if "x" in week.group() else "k"), week.start()
        periods = tuple(
            (max(begin, 1), min(end, _LAST_DAY + 1))
            for begin, end in reading.periods
            if begin <= _LAST_DAY and end > 1
        )
        if reading.periods and not periods:
            at = after
            continue
        reading.periods = periods
        if readings and _are_linked(classes, *readings[-1][:2], first):
            begin, _, lower = readings[-1]
            if span := joined(lower.periods, reading.periods):
                readings.pop()
                first, reading = begin, Reading("days", span)
        readings.append((first, after, reading))
        at = after
    return tuple(
        DateMention(
            text[tokens[first].start : tokens[after - 1].end],
            tokens[first].start,
            tokens[after - 1].end,
            reading.periods,
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


def _codes_of(reading: Reading) -> str:
    codes: dict[str, None] = {}
    periods = reading.periods[:1] if reading.kind == "about" else reading.periods
    for first, after in (*periods, *((reading.yearly,) if reading.yearly else ())):
        length = after - first
        if reading.kind != "month" and length <= _MOST_DAYS:
            codes |= dict.fromkeys(_day_codes((first, after)))
        if length <= 31 * _MOST_MONTHS:
            index = range(month_of(first), month_of(after - 1) + 1)
            codes |= dict.fromkeys(chr(MONTH_CODE + month % 12 + 1) for month in index)
    if reading.weekday is not None:
        codes[chr(WEEKDAY_CODE + reading.weekday)] = None
    elif periods and reading.kind in ("day", "weekday", "about"):
        codes[chr(WEEKDAY_CODE + (periods[0][0] + 6) % 7)] = None
    return "".join(codes)


def _day_codes(period: Span) -> list[str]:
    """The codes of days, whatever their year: 29 February has one."""
    dates = map(dt.date.fromordinal, range(*period))
    return [
        chr(DAY_CODE + dt.date(2000, date.month, date.day).timetuple().tm_yday - 1)
        for date in dates
    ]
