"""Dates in texts and questions, in several languages: "5th of Jan", "nächsten Freitag", "下周五".

The words are in `lexicon/`, in a table `[dates]` for each language. `date_tokens.py` gives each
token of a text a class of one character, and `_GRAMMAR` finds dates as patterns of these
characters. `date_phrases.py` reads most of them as days that recur in each week, month or year:

    "the third week of June"  →  aokOm  →  in each year, in month 6, the third week

Every date has codes, characters of Unicode's private use area that are terms of the full-text
index: days and months of any year, and weekdays. The codes of concepts are above them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from .date_phrases import LAST_DAY, LEAP_YEAR, Kind, Reading, Span, month_of, read, weekday_of
from .date_tokens import may_have_dates, tokens_of

DAY_CODE: Final = 0xE000
MONTH_CODE: Final = 0xE180
WEEKDAY_CODE: Final = 0xE190
# A longer span has the codes of its months only, and one of more months none.
_MOST_DAYS: Final = 10
_MOST_MONTHS: Final = 6
# What the days around a date that is counted in weeks, and a weekday, are worth to a question.
_NEAR: Final = 0.5
_EVERY_WEEK: Final = 0.5
# A day that is as many days away is known by its weekday, too.
_WITH_WEEKDAY: Final = 1_827
_GRAMMAR: Final = re.compile(
    r"""(?=[^.,|])
    # the weekend of ..., my week from the 12th
    (?:[aq]{0,2}(?:(?P<weeks>[kx]Oa?)|(?P<week>(?<![Ndnlcj])k(?=[qp]a?[dD]))))? B?[aqp]{0,3} (?:
    (?P<every>P|e[o.]?[wW])
    # in 3 days, two weeks ago, the last 3 days
    |(?P<count>[Ndn][uktU]g|[lcp][Ndn][uktU])
    # but not "Montag morgen"
    |(?<!w)(?P<relative>R|Jg)
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
        reading = read(match, tokens, today)
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
            _codes_of(reading, today),
        )
        for first, after, reading in readings
    )


def with_days(text: str, told_at: float, zone: dt.tzinfo) -> str:
    """The text with its date behind each relative day: "tomorrow [2026-11-28]"."""
    fixed = {mention.start for mention in find_dates(text, None, zone)}
    for mention in reversed(find_dates(text, told_at, zone)):
        end = mention.end
        if mention.start in fixed or len(mention.periods) != 1 or text[end : end + 2] == " [":
            continue
        first, after = mention.periods[0]
        if after - first == 1:
            text = f"{text[:end]} [{dt.date.fromordinal(first)}]{text[end:]}"
    return text


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
    first, after = (dt.date.fromordinal(min(max(day, 2), LAST_DAY - 1)) for day in period)
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


def _codes_of(reading: Reading, today: int | None) -> str:
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
    elif (
        periods
        and reading.dated
        and periods[0][1] - periods[0][0] == 1
        # On which weekday somebody married years ago, nobody asks.
        and (today is None or abs(periods[0][0] - today) <= _WITH_WEEKDAY)
    ):
        codes[chr(WEEKDAY_CODE + weekday_of(periods[0][0]))] = None
    return "".join(codes)


def _day_codes(period: Span) -> list[str]:
    """The codes of days, whatever their year: 29 February has one."""
    dates = map(dt.date.fromordinal, range(*period))
    start = dt.date(LEAP_YEAR, 1, 1)
    return [chr(DAY_CODE + (date.replace(LEAP_YEAR) - start).days) for date in dates]
