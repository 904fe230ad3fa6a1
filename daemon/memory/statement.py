"""A text read as a statement: its words, and what it denies, asks or leaves open.

Every word that is left in `words` counts: a number, a name, a symbol such as `$`, `%` or `#`.
Only what can't change a meaning is taken out.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import msgspec

from .similarity import fold
from .vocabulary import (
    ALWAYS,
    ANSWERS,
    ANYWAY,
    COMPANIONS,
    HEDGES,
    NEGATIONS,
    ONLY,
    SINGLE_NEGATIONS,
    SPELLINGS,
    WITH_PRONOUN,
)

# Written without blanks: each character is a word, but for the Thai negation. Hangul has blanks.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
_PIECE: Final = re.compile(f"ไม่|[{_UNSPACED}]|[^{_UNSPACED}]+")
_OPENING: Final = "\"'([{`¡¿「『【《〈"
_CLOSING: Final = "\"')]}`.,;:!?…。、؟؛،·।॥۔」』】》〉"
_ELIDED: Final = re.compile(r"(qu|[cdjlmnst])'(?=[aeiouyhàâéèêëîïôûœ])")
_QUESTION: Final = re.compile("[?؟]")
_PREFACES: Final = frozenset((("remember", "that"), ("note", "that"), ("please", "note", "that")))


class Statement(msgspec.Struct, frozen=True):
    """What of a text takes part in a comparison.

    Attributes:
        text: folded, with its punctuation.
        words: in order; without punctuation, "the" and prefaces; "isn't" as "is", "not".
        core: `words` without negations, articles and helping verbs, and in a rough stem.
        negations: the words of `words` that deny.
        asks: it is a question.
        open: it speaks of some cases or of chances, or denies twice, so that another statement
            can hardly contradict it.
        names: the words after the first that begin with a capital letter.
    """

    text: str
    words: tuple[str, ...]
    core: tuple[str, ...]
    negations: tuple[str, ...]
    asks: bool
    open: bool
    names: frozenset[str]


class Difference(msgspec.Struct, frozen=True):
    """What two sequences of words begin and end with, and what stands between in each."""

    before: tuple[str, ...]
    older: tuple[str, ...]
    newer: tuple[str, ...]
    after: tuple[str, ...]


def read(text: str) -> Statement:
    """Read `text`, in time that grows with its length."""
    folded = fold(text)
    words = tuple(_words(folded))
    negations = tuple(word for word in words if word in NEGATIONS)
    return Statement(
        text=folded,
        words=words,
        core=_core(words, denied=bool(negations)),
        negations=negations,
        asks=bool(_QUESTION.search(folded)),
        open=_leaves_open(words),
        names=_names(text),
    )


def difference(older: tuple[str, ...], newer: tuple[str, ...]) -> Difference:
    """The one stretch in which two sequences differ, their common ends taken off."""
    shorter = min(len(older), len(newer))
    start = 0
    while start < shorter and older[start] == newer[start]:
        start += 1
    end = 0
    while end < shorter - start and older[-1 - end] == newer[-1 - end]:
        end += 1
    return Difference(
        older[:start],
        older[start : len(older) - end],
        newer[start : len(newer) - end],
        older[len(older) - end :],
    )


def _leaves_open(words: tuple[str, ...]) -> bool:
    if not HEDGES.isdisjoint(words) or sum(word in SINGLE_NEGATIONS for word in words) > 1:
        return True
    if words and words[-1] in ANSWERS:
        return True
    return any(word in NEGATIONS and after in ONLY for word, after in pairwise(words))


def _names(text: str) -> frozenset[str]:
    later = (chunk.strip(_OPENING + _CLOSING) for chunk in text.split()[1:])
    return frozenset(fold(word) for word in later if word[:1].isupper())


def _words(folded: str) -> list[str]:
    found: list[str] = []
    for chunk in folded.split():
        for piece in (chunk,) if chunk.isascii() else _PIECE.findall(chunk):
            word = piece.rstrip(_CLOSING).lstrip(_OPENING)
            if word and word not in {"the", "-"}:
                found.extend(_expanded(word))
    for preface in _PREFACES:
        if tuple(found[: len(preface)]) == preface and len(found) > len(preface):
            return found[len(preface) :]
    return found


def _expanded(word: str) -> tuple[str, ...]:
    """`word` in one spelling, and cut where two words were drawn together."""
    if "'" not in word:
        return SPELLINGS.get(word, (word,))
    if word in WITH_PRONOUN:
        return WITH_PRONOUN[word]
    if word.endswith("n't") and len(word) > 3:
        stem = {"ca": "can", "wo": "will", "sha": "shall"}.get(word[:-3], word[:-3])
        return stem, "not"
    elided = _ELIDED.match(word)
    return (elided.group(), word[elided.end() :]) if elided else (word,)


def _core(words: tuple[str, ...], *, denied: bool) -> tuple[str, ...]:
    left_out = ANYWAY | (COMPANIONS if denied else ALWAYS)
    return tuple(_stem(word) for word in words if word not in NEGATIONS and word not in left_out)


def _stem(word: str) -> str:
    """`word` so that "likes" and "does not like" meet; wrong for a few, the same way each time."""
    if word in {"has", "had"}:
        return "have"
    if len(word) > 3 and word.isascii() and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word
