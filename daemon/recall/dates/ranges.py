"""Times with a named or an open end: "since March", "between May and July 2023"."""

from __future__ import annotations

from . import days, words
from .days import FIRST_DAY, LAST_DAY, NamedDay, Period
from .moments import moment
from .reading import Reading, Today, Tokens, past_article, word_at

_ONWARDS = frozenset({"on", "onward", "onwards"})


def time_span(tokens: Tokens, today: Today) -> Reading | None:
    """The time that begins at the first token."""
    word = word_at(tokens, 0)
    if word in words.BETWEEN | words.FROM and (found := _from_to(tokens, today, word)):
        return found
    if word in words.SINCE | words.BEFORE | words.AFTER | words.UNTIL | {words.GERMAN_VOR} and (
        found := _open(tokens, today, word)
    ):
        return found
    return _to(tokens, today) or moment(tokens, 0, today)


def _open(tokens: Tokens, today: Today, word: str) -> Reading | None:
    if word == words.GERMAN_VOR and (counted := moment(tokens, 0, today)):
        return counted
    found = moment(tokens, 1, today, cue=word)
    if found is None:
        return None
    return Reading(found.end, tuple(_side(word, each) for each in found.periods), found.exact)


def _side(word: str, period: Period) -> Period:
    if word in words.SINCE:
        return Period(period.first, LAST_DAY + 1)
    if word in words.AFTER:
        return Period(period.after, LAST_DAY + 1)
    return Period(FIRST_DAY, period.after if word in words.UNTIL else period.first)


def _from_to(tokens: Tokens, today: Today, word: str) -> Reading | None:
    """The time of "between X and Y", "from X to Y", "from X on", or of X alone."""
    links = words.AND | words.TO if word in words.BETWEEN else words.TO
    lower = moment(tokens, 1, today, cue=word)
    link_at = lower.end if lower else _after_a_day(tokens)
    if _links(tokens, link_at, links) and (upper := moment(tokens, link_at + 1, today, cue=word)):
        return _joined(lower or _day_of(tokens, upper), upper)
    if lower is None or word in words.BETWEEN:
        return None
    if word_at(tokens, lower.end) in _ONWARDS:
        after = tuple(Period(period.first, LAST_DAY + 1) for period in lower.periods)
        return Reading(lower.end + 1, after, lower.exact)
    return lower


def _to(tokens: Tokens, today: Today) -> Reading | None:
    """The time of "X to Y" and "X – Y", if both are named in the calendar."""
    cue = "from" if word_at(tokens, 0) in words.MONTHS and _links(tokens, 1, words.TO) else ""
    lower = moment(tokens, 0, today, cue)
    if lower is None or lower.named is None or not _links(tokens, lower.end, words.TO):
        return None
    upper = moment(tokens, lower.end + 1, today, cue="to")
    return _joined(lower, upper) if upper and upper.named else None


def _links(tokens: Tokens, at: int, links: frozenset[str]) -> bool:
    if at < len(tokens) and tokens[at].kind == "dash":
        return tokens[at].joined
    return word_at(tokens, at) in links


def _after_a_day(tokens: Tokens) -> int:
    """The place after a bare day of the month: "between the 7th and 9 May"."""
    at = past_article(tokens, 1)
    bare = at < len(tokens) and tokens[at].kind == "number" and 1 <= tokens[at].value <= 31
    return at + 1 if bare else len(tokens)


def _day_of(tokens: Tokens, upper: Reading) -> Reading | None:
    at = past_article(tokens, 1)
    if upper.named is None or upper.named.day is None:
        return None
    lower = NamedDay(days.year_of(upper.periods[0].first), upper.named.month, day=tokens[at].value)
    period = lower.in_year(lower.year or 0)
    return Reading(at + 1, (period,), upper.exact, lower) if period else None


def _joined(lower: Reading | None, upper: Reading) -> Reading | None:
    """The span from the first to the end of the second; a missing year is that of the other."""
    if lower is None:
        return None
    first, last = lower.periods[0], upper.periods[0]
    if lower.named and lower.named.year is None:
        first = _nearest(lower.named, last, before=True) or first
    elif upper.named and upper.named.year is None:
        last = _nearest(upper.named, first, before=False) or last
    elif lower.named is None and last.first < first.first < last.first + 7:
        # "From Monday to Friday", asked on a Wednesday, is the week that contains both.
        first = Period(first.first - 7, first.after - 7)
    whole = Period(min(first.first, last.first), max(first.after, last.after))
    exact = (lower.exact and upper.exact) or _one_has_the_year(lower, upper)
    return Reading(upper.end, (whole,), exact)


def _one_has_the_year(lower: Reading, upper: Reading) -> bool:
    both = lower.named, upper.named
    return all(both) and any(named is not None and named.year is not None for named in both)


def _nearest(named: NamedDay, to: Period, *, before: bool) -> Period | None:
    year = days.year_of(to.first)
    same = named.in_year(year)
    if before:
        return same if same and same.first <= to.first else named.in_year(year - 1)
    return same if same and same.first >= to.first else named.in_year(year + 1)
