"""The form of a question, and the features of a text that answer it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import msgspec

from .query import Query

_WORD: Final = re.compile(r"[^\W_]+")
# A word with a capital letter within a sentence.
_NAME: Final = re.compile(r"[^.!?\s]\s+([A-Z][a-z]+)")
_YOU: Final = re.compile(r"\b[Yy]our?\b")
# Words that ask for a place, a person or a title.
_ASKS_NAME: Final = frozenset(
    {
        "where", "who", "whom", "city", "cities", "country", "countries", "state", "states",
        "place", "places", "book", "books", "movie", "movies", "film", "films", "song", "songs",
        "band", "bands", "game", "games", "show", "shows", "series", "name", "names", "called",
        "author", "artist", "artists",
    }
)  # fmt: skip
_ASKS_NUMBER: Final = frozenset({"many", "much", "long", "old", "often", "far"})
_NUMBERS: Final = frozenset(
    {
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "once",
        "twice", "couple", "few", "several", "dozen", "first", "second", "third",
    }
)  # fmt: skip
_ASKS_WHEN: Final = frozenset({"when", "date", "month", "year", "wann", "quand", "cuándo", "когда"})
_TIMES: Final = frozenset(
    {
        "yesterday", "today", "tonight", "tomorrow", "ago", "last", "next", "week", "weekend",
        "month", "year", "recently", "day", "monday", "tuesday", "wednesday", "thursday",
        "friday", "saturday", "sunday", "january", "february", "march", "april", "june", "july",
        "august", "september", "october", "november", "december", "morning", "night", "summer",
        "spring", "fall", "winter", "soon",
    }
)  # fmt: skip


class Question(msgspec.Struct, frozen=True):
    """The form of a question.

    Attributes:
        asks_when: it asks for a time.
        asks_name: it asks for a place, a person or a title.
        asks_number: it asks for a number.
        one: the only person that it names, or "".
        subject: of two people that it names, the person who acts, or "".
    """

    asks_when: bool
    asks_name: bool
    asks_number: bool
    one: str
    subject: str


def read(text: str, query: Query) -> Question:
    """The form of the question `text`; `query` is the same text, parsed."""
    words = [word.lower() for word in _WORD.findall(text)]
    together = "both" in words or _joined(text, query.people)
    return Question(
        asks_when=bool(_ASKS_WHEN.intersection(words)),
        asks_name=not _ASKS_NAME.isdisjoint(words),
        asks_number=not _ASKS_NUMBER.isdisjoint(words),
        one=query.people[0] if len(query.people) == 1 else "",
        subject=query.people[0] if len(query.people) == 2 and not together else "",
    )


def names_time(text: str) -> bool:
    """Whether a text names a time in words."""
    return not _TIMES.isdisjoint(word.lower() for word in _WORD.findall(text))


def names_number(text: str) -> bool:
    """Whether a text contains a number, in digits or words."""
    words = _WORD.findall(text.lower())
    return not _NUMBERS.isdisjoint(words) or any(map(str.isdigit, words))


def proper_names(text: str, known: Collection[str]) -> float:
    """Whether sentences have no proper name outside `known`, one, or more: 0, 0.5 or 1."""
    return min(2, sum(name.lower() not in known for name in _NAME.findall(text))) / 2


def enumerates(text: str) -> float:
    """How much a text lists: the number of commas and "and"s, at most five, divided by five."""
    return min(5, text.count(",") + text.count(" and ")) / 5


def addresses(text: str) -> float:
    """How often a text says "you", at most three times, divided by three."""
    return min(3, len(_YOU.findall(text))) / 3


def is_question(text: str) -> bool:
    """Whether the last sentence of a text is a question."""
    asked = max(text.rfind("?"), text.rfind("？"))
    return asked >= 0 and asked > max(text.rfind(mark) for mark in ".!。！")


def _joined(text: str, people: tuple[str, ...]) -> bool:
    if len(people) != 2:
        return False
    first, second = (re.escape(name.split()[0]) for name in people)
    pattern = rf"{first}\W+(?:and|und|et|y)\W+{second}"
    return re.search(pattern, text, re.IGNORECASE) is not None
