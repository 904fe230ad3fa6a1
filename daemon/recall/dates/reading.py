"""The result of reading a sequence of tokens as a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from .days import NamedDay, Period
from .tokens import Token
from .words import ARTICLES

Tokens: TypeAlias = Sequence[Token]


class Today(msgspec.Struct, frozen=True):
    """The local day of the question, and the seconds of it that have passed."""

    day: int
    seconds: int = 0

    @classmethod
    def at(cls, moment: dt.datetime) -> Today:
        """The day of a local time."""
        return cls(moment.toordinal(), moment.hour * 3600 + moment.minute * 60 + moment.second)


class Reading(msgspec.Struct, frozen=True, gc=False):
    """The periods that the tokens before `end` may mean, most likely first.

    Attributes:
        exact: whether the words are unambiguous.
        named: the date or period that was named, if any; one end of a range gives its year to
            the other.
    """

    end: int
    periods: tuple[Period, ...]
    exact: bool = True
    named: NamedDay | None = None


def word_at(tokens: Tokens, at: int) -> str:
    """The word that continues a phrase at `at`, else ''."""
    if at < len(tokens) and tokens[at].kind == "word" and (at == 0 or tokens[at].joined):
        return tokens[at].text
    return ""


def number_at(tokens: Tokens, at: int) -> int:
    """The number that continues a phrase at `at`, else 0."""
    if at < len(tokens) and tokens[at].kind == "number" and (at == 0 or tokens[at].joined):
        return tokens[at].value
    return 0


def past_article(tokens: Tokens, at: int) -> int:
    """The place after an article at `at`, or `at` if there is none."""
    return at + 1 if word_at(tokens, at) in ARTICLES else at
