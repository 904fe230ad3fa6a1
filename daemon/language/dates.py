"""Dates in texts and questions, in several languages: "5th of Jan", "nächsten Freitag", "下周五".

The words are in `lexicon/`, in a table `[dates]` for each language. Each token of a text gets a
class of one character, and `_GRAMMAR` finds dates as patterns of these characters:

    "the third week of June"  →  aokOm

Every date has codes, characters of Unicode's private use area that are terms of the full-text
index: days and months of any year, and weekdays. The codes of concepts are above them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import msgspec

from .date_tokens import Token, following_words, lexicon, may_have_dates, tokens_of

DAY_CODE: Final = 0xE000
MONTH_CODE: Final = 0xE180
WEEKDAY_CODE: Final = 0xE190
# Ordinals of the calendar: [first, after).
Span: TypeAlias = tuple[int, int]
Kind: TypeAlias = Literal[
    "day", "days", "about", "weekday", "weekdays", "month", "months", "year"
]  # fmt: skip

# A longer span has the codes of its months only, and a span of more months none.
_MOST_DAYS: Final = 10
_MOST_MONTHS: Final = 6
# What days near one that is counted in weeks are worth to a question.
_ABOUT: Final = 0.5
_WEEKDAY: Final = 0.5

_YEAR: Final = r"(?:,?O?a?(?:y|[lcj]U|Uj))?"
_GRAMMAR: Final = re.compile(
    r"(?=[^.,|])B?[aqpO]{0,3}(?:"
    # 4月12日
    r"(?P<day>(?:(?:[yN]U|[lc]U)?[dN]K[dN]Jw?)"
    # 5 January 2026, the 5th of Jan, tres de agosto, January 5, May the 4th
    r"|(?:[wW],?[aq]{0,2})?(?:(?:[dD]O?a?[mMA]|[No]Oa?[mMA]|[mMA]a?[dD](?![ukxtU]))YEAR))"
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
    r"|(?P<week_day>[lcj]k,?[wW]|[wW]a?[lc]k|[wW]kj|Nkqa?[wW]|[wW]k|[wW]p[Nd]k)"
    r"|(?P<weekdays>P|e[o.]?[wW])"
    r"|(?P<near_weekday>[lcj][wW]|[wW]j)"
    r"|(?P<count>[Ndn][uktUJ][gh]|G[Ndn][uktU]|(?<=p)[Ndn][uktU](?!g))"
    r"|(?P<rolling>[lcj][Ndn][uktU])"
    r"|(?P<unit>[lcj][kxtzUK]|[kxtU]j|(?<=[pq])x|(?<=[pq]a)x)"
    r"|(?P<relative>R)"
    r"|(?P<season>[lcj]sYEAR|sj|s,?O?a?(?:y|[lcj]U|Uj)|(?<=p)s(?!O)|(?<=pa)s(?!O))"
    r"|(?P<holiday>[lcj]?HYEAR)"
    r"|(?P<quarter>QYEAR|yQ)"
    r"|(?P<year>(?<=p)U?y|(?<=pa)Uy|[yN]U)"
    # the 5th, Monday the 5th, am 5., 5号
    r"|(?P<day_of_month>(?<=[aqp])D|[wW],?(?:a?D|ad)|(?<=[aq])u?d|[dN]J)"
    r"|(?P<weekday>[wW])"
    r")".replace("YEAR", _YEAR)
)
_LASTING: Final = re.compile("F[Ndn][ukt]")


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


class _Reading(msgspec.Struct, gc=False):
    kind: Kind
    periods: tuple[Span, ...]
    codes: str = ""


_Tokens: TypeAlias = Sequence[Token]


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
    mentions: list[DateMention] = []
    ends: list[tuple[int, int]] = []
    at = 0
    while match := _GRAMMAR.search(classes, at):
        first, after = match.span()
        try:
            reading = _READERS[match.lastgroup or ""](tokens, first, after, today)
        except (ValueError, OverflowError):
            # The calendar has no such day.
            reading = None
        if reading is None:
            at = first + 1
            continue
        if lasting := _LASTING.match(classes, after):
            reading = _lasting(reading, tokens[after + 1], tokens[after + 2])
            after = lasting.end()
        start = first
        if ends and _links(classes, *ends[-1], first):
            joined = _joined(mentions[-1].periods, reading.periods)
            if joined:
                mentions.pop()
                start = ends.pop()[0]
                reading = _Reading("days", joined)
        begin, end = tokens[start].start, tokens[after - 1].end
        codes = reading.codes or _codes(reading.kind, reading.periods)
        mentions.append(
            DateMention(text[begin:end], begin, end, reading.periods, reading.kind, codes)
        )
        ends.append((start, after))
        at = after
    return tuple(mentions)


def date_codes(text: str, told_at: float | None, zone: dt.tzinfo) -> str:
    """The codes of all dates in `text`, each once."""
    return "".join(
        dict.fromkeys(code for each in find_dates(text, told_at, zone) for code in each.codes)
    )


def seconds_of(period: Span, zone: dt.tzinfo) -> tuple[float, float]:
    """The beginning and the end of a period in a time zone, in seconds since the epoch."""
    start, end = (
        dt.datetime.combine(dt.date.fromordinal(day), dt.time(), zone).timestamp()
        for day in period
    )
    return start, end


def sought_codes(mention: DateMention) -> dict[str, float]:
    """The codes that answer a question for `mention`, with their worth from 0 to 1.

    A day or a few are answered by themselves, a month by everything in it, a year by no code.
    """
    sought: dict[str, float] = {}
    if mention.kind == "about":
        near = _codes("days", mention.periods)
        sought = {code: _ABOUT for code in near if code < chr(MONTH_CODE)}
        return sought | {_day_code(mention.periods[0][0]): 1.0}
    days = [code for code in mention.codes if code < chr(MONTH_CODE)]
    if mention.kind in ("weekday", "weekdays"):
        worth = _WEEKDAY if mention.kind == "weekday" else 1.0
        sought = {code: worth for code in mention.codes if code >= chr(WEEKDAY_CODE)}
    elif not days:
        days = [code for code in mention.codes if code < chr(WEEKDAY_CODE)]
    return sought | dict.fromkeys(days, 1.0)


# --- codes


def _day_code(day: int) -> str:
    date = dt.date.fromordinal(day)
    return chr(DAY_CODE + dt.date(2000, date.month, date.day).timetuple().tm_yday - 1)


def _codes(kind: Kind, periods: Sequence[Span]) -> str:
    codes: dict[str, None] = {}
    for first, after in periods:
        first, after = max(first, 1), min(after, dt.date.max.toordinal() + 1)
        if kind != "month" and after - first <= _MOST_DAYS:
            codes |= dict.fromkeys(_day_code(day) for day in range(first, after))
        if after - first <= 31 * _MOST_MONTHS:
            months = range(_month_of(first), _month_of(after - 1) + 1) if after > first else ()
            codes |= dict.fromkeys(chr(MONTH_CODE + month % 12 + 1) for month in months)
    if kind in ("day", "weekday") and periods:
        codes[chr(WEEKDAY_CODE + (periods[0][0] + 6) % 7)] = None
    return "".join(codes)


# --- the calendar


def _ordinal(moment: float | None, zone: dt.tzinfo) -> int | None:
    try:
        return None if moment is None else dt.datetime.fromtimestamp(moment, zone).toordinal()
    except (OverflowError, ValueError, OSError):
        return None


def _month_of(day: int) -> int:
    """The month of a day, counted from the year 0."""
    date = dt.date.fromordinal(min(max(day, 1), dt.date.max.toordinal()))
    return date.year * 12 + date.month - 1


def _months(index: int, count: int = 1) -> Span:
    """`count` months from that of `index`; raises ValueError outside the calendar."""
    (year, month), (to_year, to_month) = divmod(index, 12), divmod(index + count, 12)
    after = dt.date(to_year, to_month + 1, 1) if to_year <= dt.MAXYEAR else dt.date.max
    return dt.date(year, month + 1, 1).toordinal(), after.toordinal() + (to_year > dt.MAXYEAR)


def _weekday_after(day: int, weekday: int) -> int:
    """The first such weekday from `day` on."""
    return day + (weekday - (day + 6)) % 7


def _unit(unit: str, day: int, distance: int) -> Span:
    """The unit of the calendar that is `distance` units from the one of `day`."""
    if unit in "tzUK":
        length = {"t": 1, "K": 1, "z": 3, "U": 12}[unit]
        return _months((_month_of(day) // length + distance) * length, length)
    monday = day - (day + 6) % 7 + 7 * distance
    if unit == "x":
        return monday + 5, monday + 7
    return (monday, monday + 7) if unit == "k" else (day + distance, day + distance + 1)


def _easter(year: int) -> int:
    """The ordinal of Easter Sunday, by the Gregorian computus."""
    century, golden = year // 100, year % 19
    epact = (19 * golden + century - century // 4 - (8 * century + 13) // 25 + 15) % 30
    epact -= (epact // 28) * (1 - (29 // (epact + 1)) * ((21 - golden) // 11))
    sunday = (year + year // 4 + epact + 2 - century + century // 4) % 7
    day = epact - sunday
    month = 3 + (day + 40) // 44
    return dt.date(year, month, day + 28 - 31 * (month // 4)).toordinal()


def _in_year(make: Callable[[int], Span], year: int) -> Span | None:
    try:
        return make(year) if 1 <= year <= dt.MAXYEAR else None
    except ValueError:
        return None


def _yearly(
    make: Callable[[int], Span], tokens: _Tokens, today: int | None, kind: Kind, *, fixed: bool
) -> _Reading | None:
    """What happens in every year, in the year that the tokens name or in those around `today`.

    `fixed` tells that its days are the same in every year.
    """
    year = next((token.value for token in tokens if token.kind == "y"), None)
    step = next((token for token in tokens if token.kind in "lcj"), None)
    distance = (1 if step.kind == "c" else step.value) if step else 0
    this = None if today is None else dt.date.fromordinal(today).year
    if year is None and step and this and any(token.kind == "U" for token in tokens):
        year = this + distance
    if year is None:
        marked = (one for one, mark in pairwise(tokens) if one.kind == "N" and mark.kind == "U")
        year = next((token.value for token in marked), None)
    if year is not None:
        period = _in_year(make, year)
        return _Reading(kind, (period,)) if period else None
    anywhere = _in_year(make, 2000)
    if today is None or this is None:
        return _Reading(kind, (), _codes("days", (anywhere,))) if fixed and anywhere else None
    periods = [period for at in range(this - 8, this + 9) if (period := _in_year(make, at))]
    past = [period for period in periods if period[1] <= today][-1:]
    now = [period for period in periods if period[0] <= today < period[1]]
    coming = [period for period in periods if period[0] > today][:1]
    if step:
        of_year = [period for period in periods if period[0] >= dt.date(this, 1, 1).toordinal()]
        chosen = past if distance < 0 else coming if distance > 0 else now or of_year[:1]
    elif named := next((token for token in tokens if token.kind in "wW"), None):
        near = now + coming + past
        fitting = [period for period in near if (period[0] + 6) % 7 == named.value]
        chosen = fitting or near
    else:
        around = sorted(past + coming, key=lambda period: abs((period[0] + period[1]) / 2 - today))
        chosen = now + around[: 2 - len(now)]
    return _Reading(kind, tuple(chosen)) if chosen else None


# --- readings of the patterns


def _first(tokens: _Tokens, kinds: str) -> Token | None:
    return next((token for token in tokens if token.kind in kinds), None)


def _day(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    month = _first(part, "mMA")
    if month is None:
        mark = next(at for at, token in enumerate(part) if token.kind == "K")
        number, day, part = part[mark - 1].value, part[mark + 1].value, part[: mark - 1]
    else:
        number, day = month.value, _first(part, "dDNo").value  # type: ignore[union-attr]
        if not _is_date(tokens, first, after, month):
            return None
    return _days_of_month(number, day, day, part, today)


def _days_of_month(
    month: int, day: int, last: int, part: _Tokens, today: int | None
) -> _Reading | None:
    def make(year: int) -> Span:
        first = dt.date(year, month, day).toordinal()
        return first, dt.date(year, month, last).toordinal() + 1

    return _yearly(make, part, today, "day" if day == last else "days", fixed=True)


def _is_date(tokens: _Tokens, first: int, after: int, month: Token) -> bool:
    """Whether a day and a month are no verb and no count: "all 7 may come", "July 3 pieces"."""
    last = tokens[after - 1]
    following = tokens[after] if after < len(tokens) else None
    if last.kind in "dr" and following and following.word in lexicon().lists["counted"]:
        return False
    if month.word not in lexicon().lists["verbs"] or tokens[first].kind in "aqpwWBDo":
        return True
    return (month.last > 0 and month.start > 0) or last.kind in "Dy" or _ends(following)


def _ends(following: Token | None) -> bool:
    """Whether a number before it is not a number of it."""
    return following is None or following.kind in ",|pqaOL-&R" or following.word in following_words()


def _days(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    month = _first(part, "mMA")
    if month is None or not _is_date(tokens, first, after, month):
        return None
    numbers = [each for each in part if each.kind in "rdD"]
    day, last = numbers[0].value, numbers[-1].last or numbers[-1].value
    return _days_of_month(month.value, day, last, part, today) if day < last else None


def _numeric(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    readings: list[_Reading] = []
    for year, month, day in tokens[after - 1].dates:
        part = [] if year is None else [Token("y", 0, 0, value=year)]
        if day is None:
            reading = _yearly(lambda at, m=month: _months(at * 12 + m - 1), part, today, "month", fixed=True)  # type: ignore[misc]
        else:
            reading = _days_of_month(month, day, day, part, today)
        if reading:
            readings.append(reading)
    if not readings:
        return None
    periods = tuple(period for reading in readings for period in reading.periods)
    codes = "".join(dict.fromkeys("".join(reading.codes for reading in readings)))
    return _Reading(readings[0].kind, periods, codes)


def _nth(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = list(tokens[first:after])
    mark = next((at for at, token in enumerate(part) if token.kind == "T"), None)
    if mark is None:
        at = next(at for at, token in enumerate(part) if token.kind in "olcj")
        which, what, rest = part[at].value, part[at + 1], part[at + 2 :]
        if part[at].kind != "o" and which != -1:
            return None
        month = _first(rest, "mMA")
    else:
        which, what, rest = part[mark + 1].value, part[mark + 2], part[: mark - 2]
        month = part[mark - 2]

    def within(whole: Span) -> Span:
        first, after = whole
        if what.kind == "k":
            first = first + 7 * (which - 1) if which > 0 else after - 7
            return first, min(first + 7, after)
        weekday = 5 if what.kind == "x" else what.value
        first = _weekday_after(first if which > 0 else after - 7, weekday) + 7 * max(0, which - 1)
        if first >= after:
            raise ValueError
        return first, first + (2 if what.kind == "x" else 1)

    kind: Kind = "days" if what.kind in "kx" else "day"
    if month is not None:
        number = month.value
        return _yearly(
            lambda year: within(_months(year * 12 + number - 1)), rest, today, kind, fixed=False
        )
    step = _first(rest, "lcj")
    if today is None or step is None:
        return None
    return _Reading(kind, (within(_unit("t", today, _distance(step))),))


def _distance(step: Token | None) -> int:
    return 0 if step is None else 1 if step.kind == "c" else step.value


def _part(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    edge = _first(part, "E")
    month, unit, step, year = (_first(part, kinds) for kinds in ("mMA", "ktU", "lcj", "y"))
    mark = next((at for at, token in enumerate(part) if token.kind == "K"), None)
    which = edge.value if edge else 0
    if mark is not None and part[mark - 1].kind == "l":
        unit = part[mark]
    elif mark is not None or month is not None:
        number = month.value if month else part[(mark or 0) - 1].value
        return _yearly(
            lambda at: _third(_months(at * 12 + number - 1), which), part, today, "days",
            fixed=True,
        )  # fmt: skip
    if year is not None:
        return _Reading("months", (_third(_months(year.value * 12, 12), which),))
    if today is None or unit is None:
        return None
    return _Reading("days", (_third(_unit(unit.kind, today, _distance(step)), which),))


def _third(whole: Span, which: int) -> Span:
    """The beginning, middle or end of a week, month or year."""
    first, after = whole
    length = after - first
    size = 3 if length <= 7 else 10 if length <= 31 else length // 6
    first += (0, (length - size) // 2, length - size)[which]
    return first, first + size


def _month(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    month = _first(part, "mMA")
    if month is None:
        mark = next(at for at, token in enumerate(part) if token.kind == "K")
        number, part = part[mark - 1].value, part[: mark - 1]
        if not 1 <= number <= 12:
            return None
    else:
        number = month.value
    return _yearly(lambda at: _months(at * 12 + number - 1), part, today, "month", fixed=True)


def _week_day(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    weekday, step, count = (_first(part, kinds) for kinds in ("wW", "lcj", "Nd"))
    if today is None or weekday is None:
        return None
    if step is not None:
        day = _unit("k", today, _distance(step))[0] + weekday.value
    else:
        day = _weekday_after(today, weekday.value) + 7 * (count.value if count else 1)
    return _Reading("day", ((day, day + 1),))


def _weekdays(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    weekday = tokens[after - 1]
    if weekday.kind == "W" and not weekday.last:
        return None
    return _Reading("weekdays", (), chr(WEEKDAY_CODE + weekday.value))


def _near_weekday(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    weekday, step = _first(part, "wW"), _first(part, "lcj")
    if weekday is None or step is None:
        return None
    if today is None:
        return _Reading("weekday", (), chr(WEEKDAY_CODE + weekday.value))
    of_week = _unit("k", today, step.value)[0] + weekday.value
    if step.kind == "c":
        days = [_weekday_after(today + 1, weekday.value)]
    elif not weekday.word.isascii():
        days = [of_week]
    elif step.value < 0:
        days = [_weekday_after(today - 7, weekday.value), of_week]
    else:
        days = [_weekday_after(today + (step.value > 0), weekday.value), of_week]
    return _Reading("day", tuple((day, day + 1) for day in dict.fromkeys(days)))


def _weekday(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    weekday, at = tokens[after - 1], after - 1
    if weekday.kind == "W":
        before = tokens[at - 1].kind if at else "|"
        if not weekday.last or before in "|a":
            return None
    code = chr(WEEKDAY_CODE + weekday.value)
    if today is None:
        return _Reading("weekday", (), code)
    last = _weekday_after(today - 7, weekday.value)
    coming = _weekday_after(today + 1, weekday.value)
    # On a Monday, "Monday" may be today.
    days = sorted({last, last + 7, coming}, key=lambda day: (abs(day - today), -day))
    return _Reading("weekday", tuple((day, day + 1) for day in days))


def _count(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    unit, count = _first(part, "uktUJ"), _first(part, "Ndn")
    leading = tokens[after - 3] if part[-1].kind not in "gh" else None
    if today is None or unit is None or count is None or count.value > 9999:
        return None
    words = [each.word for each in (leading, count, unit) if each and each.kind not in "dn"]
    if leading and (
        not frozenset.intersection(*(lexicon().languages.get(w, frozenset()) for w in words))
        or (leading.kind == "p" and leading.word not in lexicon().lists["ahead"])
    ):
        return None
    past = part[-1].kind == "g" or (leading is not None and leading.kind == "G")
    distance = -count.value if past else count.value
    if unit.kind in "tU":
        span = _unit(unit.kind, today, distance)
        return _Reading("month" if unit.kind == "t" else "year", (span,))
    day = today + distance * unit.last
    if unit.kind == "k":
        return _Reading("about", ((day, day + 1), (day - 3, day + 4)))
    return _Reading("day", ((day, day + 1),))


def _rolling(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    step, count, unit = tokens[after - 3 : after]
    distance = _distance(step)
    if today is None or not distance or count.value > 9999:
        return None
    if unit.kind in "tU":
        months = count.value * (1 if unit.kind == "t" else 12)
        days = round(30.44 * months)
    else:
        days = count.value * unit.last
    first_day = today - days if distance < 0 else today
    return _Reading("days" if days <= 31 else "months", ((first_day, first_day + days + 1),))


def _unit_near(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    unit, step = _first(part, "kxtzUK"), _first(part, "lcj")
    if today is None or unit is None:
        return None
    kind: Kind = {"k": "days", "x": "days", "z": "months", "U": "year"}.get(unit.kind, "month")  # type: ignore[assignment]
    if unit.kind != "x":
        return _Reading(kind, (_unit(unit.kind, today, _distance(step)),))
    this = _unit("x", today, 0)
    distances = (0, -1) if step is None else (_distance(step),)
    if step and step.kind != "c" and step.value == 1 and today < this[0]:
        distances = (1, 0)
    return _Reading(kind, tuple(_unit("x", today, each) for each in distances))


def _relative(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    token, before = tokens[after - 1], tokens[after - 2] if after > 1 else None
    # "Montag morgen" and "heute morgen" are mornings.
    if today is None or (before and before.kind in "wR" and token.word in lexicon().not_after):
        return None
    day = today + token.value
    return _Reading("day", ((day, day + 1),))


def _season(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    season = _first(part, "s")
    start = season.value if season else 0
    return _yearly(
        lambda at: _months(at * 12 + start - 1, 3), part, today, "months", fixed=True
    )


def _holiday(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    holiday = _first(part, "H")
    value = holiday.value if holiday else 0

    def make(year: int) -> Span:
        if value > 5000:
            day = _easter(year) + value - 10_000
        else:
            day = dt.date(year, *divmod(value, 100)).toordinal()
        return day, day + 1

    return _yearly(make, part, today, "day", fixed=value < 5000)


def _quarter(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    quarter = _first(part, "Q")
    start = 3 * quarter.value - 3 if quarter else 0
    return _yearly(lambda at: _months(at * 12 + start, 3), part, today, "months", fixed=True)


def _whole_year(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    year = next(each.value for each in tokens[first:after] if each.kind in "yN")
    following = tokens[after] if after < len(tokens) else None
    if following and (following.kind in "uktz" or following.word in lexicon().lists["counted"]):
        return None
    return _Reading("year", (_months(year * 12, 12),)) if year >= 1000 else None


def _day_of_month(tokens: _Tokens, first: int, after: int, today: int | None) -> _Reading | None:
    part = tokens[first:after]
    weekday, last = _first(part, "wW"), part[-1]
    number = part[-2] if last.kind == "J" else last
    following = tokens[after] if after < len(tokens) else None
    if today is None or not 1 <= number.value <= 31:
        return None
    if last.kind != "J" and not _ends(following):
        return None
    if last.kind == "d" and part[-2].word not in lexicon().lists["before_day"]:
        return None
    months = (_months(_month_of(today) + distance) for distance in range(-12, 13))
    days = [start + number.value - 1 for start, end in months if start + number.value <= end]
    if weekday:
        days = [day for day in days if (day + 6) % 7 == weekday.value]
    past = [day for day in days if day < today][-1:]
    near = [day for day in days if day >= today][:1] + past
    near.sort(key=lambda day: abs(day - today))
    return _Reading("day", tuple((day, day + 1) for day in near)) if near else None


def _lasting(reading: _Reading, count: Token, unit: Token) -> _Reading:
    """From a day for some days, weeks or months."""
    days = count.value * (30 if unit.kind == "t" else unit.last)
    return _Reading("days", tuple((first, first + days) for first, _ in reading.periods))


def _links(classes: str, first: int, after: int, begin: int) -> bool:
    """Whether what is between two dates joins them: "from Monday to Friday"."""
    between = classes[after:begin]
    return between in ("L", "-") or (between == "&" and classes[first] == "B")


def _joined(lower: Sequence[Span], upper: Sequence[Span]) -> tuple[Span, ...]:
    """From each of the first to the nearest end; a missing year is that of the other."""
    if len(upper) == 1 and len(lower) > 1:
        first, end = (dt.date.fromordinal(period[0]) for period in (lower[0], upper[0]))
        year = end.year - ((first.month, first.day) > (end.month, end.day))
        lower = [(first.replace(max(year, 1), day=min(first.day, 28)).toordinal(), 0)]
    ends = ((first, [end for start, end in upper if start >= first]) for first, _ in lower)
    return tuple((first, min(after)) for first, after in ends if after)


_READERS: Final[dict[str, Callable[[_Tokens, int, int, int | None], _Reading | None]]] = {
    "day": _day, "days": _days, "numeric": _numeric, "nth": _nth, "part": _part, "month": _month,
    "week_day": _week_day, "weekdays": _weekdays, "near_weekday": _near_weekday, "count": _count,
    "rolling": _rolling, "unit": _unit_near, "relative": _relative, "season": _season,
    "holiday": _holiday, "quarter": _quarter, "year": _whole_year, "day_of_month": _day_of_month,
    "weekday": _weekday,
}  # fmt: skip
