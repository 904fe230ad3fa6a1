"""What a phrase of date tokens means, as days of the calendar."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import msgspec

from .date_tokens import EASTER, Token, following_words, lexicon

# Ordinals of the calendar: [first, after).
Span: TypeAlias = tuple[int, int]
Kind: TypeAlias = Literal["day", "days", "about", "weekday", "weekdays", "month", "months", "year"]
# A year for which the days of a month are known where no year is.
_LEAP_YEAR: Final = 2000
_KINDS: Final[dict[str, Kind]] = {
    "k": "days", "x": "days", "t": "month", "K": "month", "z": "months", "U": "year",
}  # fmt: skip


class Reading(msgspec.Struct, gc=False):
    """The days that a phrase may mean, most likely first.

    Attributes:
        yearly: without a known moment, the days that it means in every year.
        weekday: the weekday that it names, which is not that of a day.
    """

    kind: Kind
    periods: tuple[Span, ...] = ()
    yearly: Span | None = None
    weekday: int | None = None


class Phrase:
    """The tokens of a phrase and those around it; `today` is None if the moment is unknown."""

    def __init__(self, tokens: Sequence[Token], first: int, after: int, today: int | None) -> None:
        self.tokens = tokens[first:after]
        self.today = today
        self.before = tokens[first - 1] if first else None
        self.following = tokens[after] if after < len(tokens) else None

    def get(self, kinds: str) -> Token | None:
        """The first token of these classes."""
        return next((token for token in self.tokens if token.kind in kinds), None)

    def value(self, kinds: str) -> int:
        """The value of the first token of these classes; 0 if there is none."""
        return token.value if (token := self.get(kinds)) else 0

    def marked(self, mark: str) -> int | None:
        """The number before a mark such as 月."""
        pairs = pairwise(self.tokens)
        return next((a.value for a, b in pairs if b.kind == mark and a.kind in "dnNy"), None)

    @property
    def month(self) -> int | None:
        """The month that is named."""
        return token.value if (token := self.get("mMA")) else self.marked("K")

    def yearly(
        self, kind: Kind, make: Callable[[int], Span], *, fixed: bool = True
    ) -> Reading | None:
        """What `make` gives for a year: the one that is named, or those around today.

        `fixed` tells that it is on the same days in every year.
        """
        year, step = self._year(), self.get("lcj")
        if year is not None:
            return _reading(kind, [_in_year(make, year)])
        if self.today is None:
            day = _in_year(make, _LEAP_YEAR) if fixed else None
            return Reading(kind, yearly=day) if day else None
        today, this = self.today, dt.date.fromordinal(self.today).year
        # Nine years contain a 29 February.
        periods = [days for at in range(this - 8, this + 9) if (days := _in_year(make, at))]
        past = [days for days in periods if days[1] <= today][-1:]
        now = [days for days in periods if days[0] <= today < days[1]]
        coming = [days for days in periods if days[0] > today][:1]
        if step:
            of_year = now or [days for days in [_in_year(make, this)] if days]
            return _reading(kind, past if step.value < 0 else coming if step.value else of_year)
        around = sorted(past + coming, key=lambda days: abs((days[0] + days[1]) / 2 - today))
        chosen = now + around[: 2 - len(now)]
        if weekday := self.get("wW"):
            fitting = [days for days in chosen if _weekday(days[0]) == weekday.value]
            chosen = fitting or chosen
        return _reading(kind, chosen)

    def _year(self) -> int | None:
        if year := self.get("y"):
            return year.value
        step = self.get("lcj")
        if step and self.get("U") and self.today is not None:
            return dt.date.fromordinal(self.today).year + step.value
        return self.marked("U")


def _reading(kind: Kind, periods: Iterable[Span | None]) -> Reading | None:
    known = tuple(dict.fromkeys(period for period in periods if period))
    return Reading(kind, known) if known else None


def _one_day(*days: int, kind: Kind = "day") -> Reading | None:
    return _reading(kind, [(day, day + 1) for day in days])


# --- the calendar


def months(index: int, count: int = 1) -> Span:
    """`count` months from one that is counted from the year 0; ValueError if there are none."""
    year, month = divmod(index, 12)
    until, last = divmod(index + count, 12)
    first = dt.date(year, month + 1, 1).toordinal()
    if until > dt.MAXYEAR:
        return first, dt.date.max.toordinal() + 1
    return first, dt.date(until, last + 1, 1).toordinal()


def month_of(day: int) -> int:
    """The month of a day, counted from the year 0."""
    date = dt.date.fromordinal(day)
    return date.year * 12 + date.month - 1


def _weekday(day: int) -> int:
    return (day + 6) % 7


def _next_weekday(day: int, weekday: int) -> int:
    """The first such weekday from `day` on."""
    return day + (weekday - _weekday(day)) % 7


def unit_of(unit: str, day: int, distance: int = 0) -> Span:
    """The unit of the calendar that is `distance` units from the one of `day`."""
    if unit in "tzUK":
        length = {"z": 3, "U": 12}.get(unit, 1)
        return months((month_of(day) // length + distance) * length, length)
    monday = day - _weekday(day) + 7 * distance
    return (monday + 5, monday + 7) if unit == "x" else (monday, monday + 7)


def _third(whole: Span, which: int) -> Span:
    """The beginning, middle or end of a week, month or year."""
    length = whole[1] - whole[0]
    size = 3 if length <= 7 else 10 if length <= 31 else length // 6
    first = whole[0] + (0, (length - size) // 2, length - size)[which]
    return first, first + size


def easter(year: int) -> int:
    """Easter Sunday, by the Gregorian computus."""
    century, golden = year // 100, year % 19
    epact = (19 * golden + century - century // 4 - (8 * century + 13) // 25 + 15) % 30
    epact -= (epact // 28) * (1 - (29 // (epact + 1)) * ((21 - golden) // 11))
    sunday = (year + year // 4 + epact + 2 - century + century // 4) % 7
    month = 3 + (epact - sunday + 40) // 44
    return dt.date(year, month, epact - sunday + 28 - 31 * (month // 4)).toordinal()


def _in_year(make: Callable[[int], Span], year: int) -> Span | None:
    try:
        return make(year) if 1 <= year <= dt.MAXYEAR else None
    except ValueError:
        return None


# --- the phrases


def _days_in(phrase: Phrase, month: int, first: int, last: int) -> Reading | None:
    def make(year: int) -> Span:
        until = dt.date(year, month, last).toordinal() + 1
        return dt.date(year, month, first).toordinal(), until

    return phrase.yearly("day" if first == last else "days", make)


def _is_date(phrase: Phrase) -> bool:
    """Whether a month with a day is no verb and no count: "all 7 may come", "July 3 pieces"."""
    month, last, following = phrase.get("mMA"), phrase.tokens[-1], phrase.following
    lists = lexicon().lists
    if last.kind in "dr" and following and following.word in lists["counted"]:
        return False
    if month is None or month.word not in lists["verbs"] or phrase.tokens[0].kind in "aqpwWBDo":
        return True
    return bool(month.last and month.start) or last.kind in "Dy" or _ends(following)


def _ends(following: Token | None) -> bool:
    """Whether a number before it is not a number of it."""
    return (
        following is None or following.kind in ",|pqaOL-&R" or following.word in following_words()
    )


def day(phrase: Phrase) -> Reading | None:
    """5 January 2026, the 5th of Jan, tres de agosto, 4月12日."""
    if phrase.get("mMA") is None:
        month, number = phrase.marked("K"), phrase.marked("J")
    else:
        month, number = phrase.month, phrase.value("dDNo")
    if not month or not number or not _is_date(phrase):
        return None
    return _days_in(phrase, month, number, number)


def days(phrase: Phrase) -> Reading | None:
    """7–9 May, between the 7th and the 9th of May, 5 and 9 May."""
    numbers = [token for token in phrase.tokens if token.kind in "rdD"]
    until = numbers[-1]
    first, last = numbers[0].value, until.last if until.kind == "r" else until.value
    month = phrase.month
    if not month or not _is_date(phrase):
        return None
    if phrase.get("&") and phrase.tokens[0].kind != "B":
        both = [_days_in(phrase, month, number, number) for number in (first, last)]
        return _reading("day", [days for each in both if each for days in each.periods])
    return _days_in(phrase, month, first, last) if first < last else None


def numeric(phrase: Phrase) -> Reading | None:
    """2026-01-05, 05.01., 09/2026; in each order that is possible."""
    readings = []
    for year, month, number in phrase.tokens[-1].dates:
        if year is not None:
            phrase.tokens = [*phrase.tokens[:-1], Token("y", 0, 0, value=year)]
        if number is None:
            readings.append(_whole_month(phrase, month))
        else:
            readings.append(_days_in(phrase, month, number, number))
    valid = [reading for reading in readings if reading]
    if not valid or len(valid) == 1:
        return valid[0] if valid else None
    return _reading("day", [days for reading in valid for days in reading.periods]) or valid[0]


def nth(phrase: Phrase) -> Reading | None:
    """The third week of June, the last Friday of next month, 六月第三周."""
    tokens = list(phrase.tokens)
    mark = next((at for at, token in enumerate(tokens) if token.kind in "olcjT"), 0)
    marked = next((at for at, token in enumerate(tokens) if token.kind == "T"), None)
    mark = mark if marked is None else marked + 1
    which, unit = tokens[mark].value, tokens[mark + 1]
    if (tokens[mark].kind in "lcj" and which != -1) or not which:
        return None
    phrase.tokens = tokens[mark + 2 :] if marked is None else tokens[:marked]

    def within(whole: Span) -> Span:
        if unit.kind == "k":
            first = whole[0] + 7 * (which - 1) if which > 0 else whole[1] - 7
            return first, min(first + 7, whole[1])
        start = whole[0] + 7 * (which - 1) if which > 0 else whole[1] - 7
        first = _next_weekday(start, 5 if unit.kind == "x" else unit.value)
        if first >= whole[1]:
            raise ValueError
        return first, first + (2 if unit.kind == "x" else 1)

    kind: Kind = "days" if unit.kind in "kx" else "day"
    if month := phrase.month:
        return phrase.yearly(kind, lambda at: within(months(at * 12 + month - 1)), fixed=False)
    if phrase.today is None:
        return None
    return _reading(kind, [within(unit_of("t", phrase.today, phrase.value("lcj")))])


def part(phrase: Phrase) -> Reading | None:
    """End of May, early next week, mid-2026, 五月底."""
    which, unit = phrase.value("E"), phrase.get("ktUK")
    if month := phrase.month:
        return phrase.yearly("days", lambda at: _third(months(at * 12 + month - 1), which))
    if year := phrase.value("y"):
        return _reading("months", [_third(months(year * 12, 12), which)])
    if phrase.today is None or unit is None:
        return None
    return _reading("days", [_third(unit_of(unit.kind, phrase.today, phrase.value("lcj")), which)])


def month(phrase: Phrase) -> Reading | None:
    """In May, next January, September 2026, 明年三月."""
    token, step = phrase.get("mMA"), phrase.get("l")
    if token and token.word in lexicon().lists["verbs"] and step and not (token.last or step.value):
        # "This may be."
        return None
    return _whole_month(phrase, number) if (number := phrase.month) else None


def _whole_month(phrase: Phrase, number: int) -> Reading | None:
    return phrase.yearly("month", lambda at: months(at * 12 + number - 1))


def week_day(phrase: Phrase) -> Reading | None:
    """A weekday of a certain week: "Friday next week", "a week on Friday"."""
    if phrase.today is None:
        return None
    weekday, count = phrase.value("wW"), phrase.value("Nd") or 1
    if step := phrase.get("lcj"):
        return _one_day(unit_of("k", phrase.today, step.value)[0] + weekday)
    return _one_day(_next_weekday(phrase.today, weekday) + 7 * count)


def weekdays(phrase: Phrase) -> Reading | None:
    """Tuesdays, every Tuesday, los martes."""
    weekday = phrase.tokens[-1]
    if weekday.kind == "W" and not weekday.last:
        return None
    return Reading("weekdays", weekday=weekday.value)


def near_weekday(phrase: Phrase) -> Reading | None:
    """Next Thursday is the coming one or that of next week."""
    weekday, step, today = phrase.get("wW"), phrase.get("lcj"), phrase.today
    if weekday is None or step is None or today is None:
        return Reading("weekday", weekday=weekday.value) if weekday else None
    of_week = unit_of("k", today, step.value)[0] + weekday.value
    if not weekday.word.isascii():
        return _one_day(of_week)
    start = today - 7 if step.value < 0 else today + (step.value > 0)
    near = _next_weekday(start, weekday.value)
    return _one_day(near) if step.kind == "c" else _one_day(near, of_week)


def weekday(phrase: Phrase) -> Reading | None:
    """Monday: the coming and the last, and today if it is one."""
    token, following, today = phrase.tokens[-1], phrase.following, phrase.today
    before = phrase.tokens[-2] if len(phrase.tokens) > 1 else phrase.before
    if token.kind == "W":
        # "Sun is shining", "the Sun", but "Mon-Fri" and "Sat 9:30".
        joined = following is not None and (following.kind in "-d" or not following.word)
        if not token.last or not (joined or (before and before.kind not in "|a")):
            return None
    if today is None:
        return Reading("weekday", weekday=token.value)
    last = _next_weekday(today - 7, token.value)
    near = {last, last + 7, _next_weekday(today + 1, token.value)}
    return _one_day(*sorted(near, key=lambda day: (abs(day - today), -day)), kind="weekday")


def count(phrase: Phrase) -> Reading | None:
    """In 3 days, two weeks ago; months and years are those of the calendar."""
    unit, number, known = phrase.get("uktUJ"), phrase.get("Ndn"), lexicon()
    leading = phrase.get("G") or phrase.get("p") or phrase.before
    trailing = phrase.tokens[-1].kind in "gh"
    if phrase.today is None or unit is None or number is None:
        return None
    if not trailing:
        # "over twee weken", not "over two weeks".
        words = [
            token.word for token in (leading, number, unit) if token and token.kind not in "dn"
        ]
        shared = set.intersection(*(known.languages.get(word, set()) for word in words))
        ahead = leading is not None and leading.word in known.lists["ahead"]
        if not shared or not (phrase.get("G") or ahead):
            return None
    distance = -number.value if phrase.get("gG") else number.value
    if unit.kind in "tU":
        return _reading(_KINDS[unit.kind], [unit_of(unit.kind, phrase.today, distance)])
    then = phrase.today + distance * (unit.last or 1)
    if unit.kind == "k":
        return Reading("about", ((then, then + 1), (then - 3, then + 4)))
    return _one_day(then)


def rolling(phrase: Phrase) -> Reading | None:
    """The last 3 days, the next two weeks."""
    step, number, unit = phrase.tokens[-3:]
    if phrase.today is None or not step.value:
        return None
    length = number.value * unit.last
    first = phrase.today - length if step.value < 0 else phrase.today
    return _reading("days" if length <= 31 else "months", [(first, first + length + 1)])


def unit(phrase: Phrase) -> Reading | None:
    """This week, next month; a weekend without a word before it is the coming or the last."""
    token, step, today = phrase.get("kxtzUK"), phrase.get("lcj"), phrase.today
    if today is None or token is None:
        return None
    distances = [step.value] if step else [0, -1]
    if token.kind == "x" and step and step.kind != "c" and step.value == 1:
        distances = [1, 0] if today < unit_of("x", today)[0] else [1]
    spans = [unit_of(token.kind, today, distance) for distance in distances]
    return _reading(_KINDS[token.kind], spans)


def relative(phrase: Phrase) -> Reading | None:
    """Tomorrow, last night, übermorgen."""
    token = phrase.tokens[-1]
    # "Montag morgen" and "heute morgen" are mornings.
    morning = token.word in lexicon().not_after and phrase.before and phrase.before.kind in "wR"
    return None if phrase.today is None or morning else _one_day(phrase.today + token.value)


def season(phrase: Phrase) -> Reading | None:
    """Last summer, in spring; northern and meteorological."""
    start = phrase.value("s") - 1
    return phrase.yearly("months", lambda at: months(at * 12 + start, 3))


def holiday(phrase: Phrase) -> Reading | None:
    """Christmas Eve, next Easter."""
    value = phrase.value("H")

    def make(year: int) -> Span:
        if value > EASTER / 2:
            day = easter(year) + value - EASTER
        else:
            day = dt.date(year, *divmod(value, 100)).toordinal()
        return day, day + 1

    return phrase.yearly("day", make, fixed=value < EASTER / 2)


def quarter(phrase: Phrase) -> Reading | None:
    """Q3 2025."""
    start = 3 * phrase.value("Q") - 3
    return phrase.yearly("months", lambda at: months(at * 12 + start, 3))


def year(phrase: Phrase) -> Reading | None:
    """In 2024, but not "in 2000 words"."""
    number, following = phrase.value("yN"), phrase.following
    if following and (following.kind in "uktz" or following.word in lexicon().lists["counted"]):
        return None
    unit = phrase.get("U")
    if number < 1000 or (unit and unit.word.isascii() and phrase.tokens[-1] is unit):
        # "2000 years", but 2024年.
        return None
    return _reading("year", [months(number * 12, 12)])


def day_of_month(phrase: Phrase) -> Reading | None:
    """The 5th, Monday the 5th, am 5., 5号, the 15th of next month."""
    tokens, today = phrase.tokens, phrase.today
    number, weekday = phrase.get("dDN"), phrase.get("wW")
    if today is None or number is None or not 1 <= number.value <= 31:
        return None
    if phrase.get("t"):
        start, end = unit_of("t", today, phrase.value("lcj"))
        return _one_day(start + number.value - 1) if start + number.value <= end else None
    # A German ordinal has a full stop: "am 5. kommen".
    if tokens[-1].kind != "J" and not number.last and not _ends(phrase.following):
        return None
    if number.kind == "d" and tokens[-1].kind != "J":
        cue = tokens[-2].word if len(tokens) > 1 else ""
        if cue not in lexicon().lists["before_day"]:
            return None
    spans = [unit_of("t", today, distance) for distance in range(-12, 13)]
    every = [start + number.value - 1 for start, end in spans if start + number.value <= end]
    if weekday:
        every = [day for day in every if _weekday(day) == weekday.value]
    near = [day for day in every if day < today][-1:] + [day for day in every if day >= today][:1]
    return _one_day(*sorted(near, key=lambda day: abs(day - today)))


def lasting(reading: Reading, number: Token, unit: Token) -> Reading:
    """From a day for some days, weeks or months."""
    length = number.value * unit.last
    return Reading("days", tuple((first, first + length) for first, _ in reading.periods))


def weeks_of(reading: Reading, unit: str) -> Reading:
    """The weeks or weekends of some days."""
    return Reading("days", tuple(unit_of(unit, first) for first, _ in reading.periods))


def joined(lower: Sequence[Span], upper: Sequence[Span]) -> tuple[Span, ...]:
    """From each day to the nearest end; a missing year is that of the other."""
    if len(upper) == 1 and len(lower) > 1:
        first, end = (dt.date.fromordinal(period[0]) for period in (lower[0], upper[0]))
        year = max(1, end.year - ((first.month, first.day) > (end.month, end.day)))
        lower = [(first.replace(year, day=min(first.day, 28)).toordinal(), 0)]
    ends = ((first, [end for start, end in upper if start >= first]) for first, _ in lower)
    return tuple((first, min(after)) for first, after in ends if after)


READERS: Final[dict[str, Callable[[Phrase], Reading | None]]] = {
    reader.__name__: reader
    for reader in (
        day, days, numeric, nth, part, month, week_day, weekdays, near_weekday, weekday, count,
        rolling, unit, relative, season, holiday, quarter, year, day_of_month,
    )
}  # fmt: skip
