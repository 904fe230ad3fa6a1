"""Finds every date and span of time in a text, as local days in seconds since the epoch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import Final

import msgspec

from ...memory.indexing import fold
from ...memory.scoring import DAY
from .days import FIRST_DAY, LAST_DAY
from .ranges import time_span
from .reading import Reading, Today, Tokens
from .tokens import Token, tokens
from .words import MONTHS, NOT_A_WEEKDAY_AFTER, STARTERS, TELLING, WEEKDAYS

# The ends of "before 2022" and "since May": the first moment of the year 1, the last of 9999.
BEGINNING: Final = -62_135_596_800.0
FOREVER: Final = 253_402_300_800.0

# No date has more tokens, so that the time is linear in the length of the text.
_LONGEST: Final = 24
# After these words even a person's name is a month: "in June".
_SURE_CUES: Final = frozenset({"in", "during", "im", "en", "since", "last", "this", "next"})


class Span(msgspec.Struct, frozen=True):
    """A time that a text names.

    Attributes:
        start, end: seconds since the epoch, `end` exclusive. Midnights of the given time zone, or
            `BEGINNING` and `FOREVER` for an open side.
        exact: False if a year, a unit's edge or the order of day and month was guessed. Each
            reading of an ambiguous order is a separate span at the same position.
        text: the words that name it, unchanged.
        position: where they begin in the text.
    """

    start: float
    end: float
    exact: bool
    text: str
    position: int

    @property
    def is_day(self) -> bool:
        """Whether it is at most two days long."""
        return self.end - self.start <= 2 * DAY

    def days(self, local: dt.tzinfo) -> str:
        """Its first and its last day, or its only day: "2023-05-01 to 2023-05-31"."""
        first, last = (
            dt.datetime.fromtimestamp(at, local).date().isoformat()
            for at in (self.start, max(self.start, min(self.end, FOREVER) - 1))
        )
        return first if first == last else f"{first} to {last}"


class FoundDates(msgspec.Struct, frozen=True):
    """The spans in the order of the text, and the text with a blank in place of each."""

    spans: tuple[Span, ...]
    rest: str


def find(text: str, now: float, local: dt.tzinfo, names: Collection[str] = ()) -> FoundDates:
    """The dates and spans of time that `text` names.

    Without a year it is the latest such time that has begun, since a memory looks back. A month
    or weekday that is one of the `names` of people needs a word of time before it. Takes time
    linear in the text, and raises for no text. Full-width digits are not read: normalise to NFKC.
    """
    pieces = tokens(text)
    if not any(map(_tells, pieces)):
        return FoundDates((), text)
    today = Today.at(dt.datetime.fromtimestamp(now, local))
    known = frozenset(fold(name) for name in names)
    spans: list[Span] = []
    rest: list[str] = []
    kept_from = at = 0
    while at < len(pieces):
        reading = _read(pieces, at, today, known)
        if reading is None:
            at += 1
            continue
        start, end = pieces[at].start, pieces[at + reading.end - 1].end
        spans += _spans(reading, text[start:end], start, local)
        rest.append(text[kept_from:start])
        kept_from, at = end, at + reading.end
    return FoundDates(tuple(spans), " ".join((*rest, text[kept_from:])))


def _tells(piece: Token) -> bool:
    return piece.text in TELLING or piece.kind not in {"word", "dash"}


def _read(pieces: Tokens, at: int, today: Today, names: frozenset[str]) -> Reading | None:
    first = pieces[at]
    if first.kind == "dash" or (first.kind == "word" and first.text not in STARTERS):
        return None
    if at and first.text in WEEKDAYS and pieces[at - 1].text in NOT_A_WEEKDAY_AFTER:
        return None
    window = pieces[at : at + _LONGEST]
    reading = time_span(window, today)
    if reading is None or _is_a_name(window[: reading.end], names):
        return None
    return reading


def _is_a_name(phrase: Tokens, names: frozenset[str]) -> bool:
    """Whether the phrase consists only of a word that is a person's name."""
    *cues, last = phrase
    if last.text not in names or (last.text not in MONTHS and last.text not in WEEKDAYS):
        return False
    return not cues or (
        len(cues) == 1 and cues[0].text not in _SURE_CUES and cues[0].kind != "number"
    )


def _spans(reading: Reading, text: str, position: int, local: dt.tzinfo) -> list[Span]:
    ends = (
        (_midnight(each.first, local), _midnight(each.after, local)) for each in reading.periods
    )
    return [
        Span(start, end, reading.exact, text, position)
        for start, end in dict.fromkeys(ends)
        if start < end
    ]


def _midnight(day: int, local: dt.tzinfo) -> float:
    """The beginning of the day; if a clock change skips midnight, the moment of the change."""
    if day <= FIRST_DAY:
        return BEGINNING
    if day > LAST_DAY:
        return FOREVER
    return dt.datetime.combine(dt.date.fromordinal(day), dt.time(), local).timestamp()
