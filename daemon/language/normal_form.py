"""The normal form of a statement, in which statements are compared.

"The user does not like tea." and "I don't like tea" have the same words in it.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from ..memory.similarity import fold
from .vocabulary import pairs, words

# Longer texts say more than one thing.
LONGEST: Final = 300
# Scripts without blanks: each character is a word, except the Thai negation. Hangul has blanks.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
_PIECE: Final = re.compile(f"ไม่|[{_UNSPACED}]|[^{_UNSPACED}]+")
_OPENING: Final = "\"'([{`¡¿「『【《〈"
_CLOSING: Final = "\"')]}`.,;:!?…。、؟؛،·।॥۔」』】》〉"
_ELIDED: Final = re.compile(r"(qu|[cdjlmnst])'(?=[aeiouyhàâéèêëîïôûœ])")
_CONTRACTED: Final = {"'m": "am", "'re": "are", "'s": "is", "'ve": "have", "'ll": "will"}
_WITH_PRONOUN: Final = re.compile(r"(i|you|we|they|it|he|she|that|there|what)('m|'re|'s|'ve|'ll)")
_OF_I: Final = {"is": "am", "has": "have", "does": "do", "was": "was"}
_BEFORE_VERB: Final = frozenset({"always", "never", "often", "usually", "also", "now", "still"})
_CUT_SHORT: Final = {"ca": "can", "wo": "will", "sha": "shall"}
_PREFACE: Final = re.compile(r"(?:please )?(?:remember|note) that ")
_QUESTION: Final = re.compile("[?؟]")


class Statement(msgspec.Struct, frozen=True):
    """The normal form of a text.

    Attributes:
        text: folded, with its punctuation.
        words: in order; without punctuation, "the" and prefaces; "isn't" as "is", "not".
        core: `words` without negations, articles and auxiliary verbs, roughly stemmed.
        negations: the negations in `words`.
        asks: whether it is a question.
        open: whether it is hedged or doubly negated, so that it can hardly be contradicted.
        names: the words after the first that begin with a capital letter.
    """

    text: str
    words: tuple[str, ...]
    core: tuple[str, ...]
    negations: tuple[str, ...]
    asks: bool
    open: bool
    names: frozenset[str]


def read(text: str) -> Statement:
    """Read `text`, in time that grows with its length."""
    return _read_short(text) if len(text) <= LONGEST else _read(text)


@lru_cache(1_024)
def _read_short(text: str) -> Statement:
    return _read(text)


def _read(text: str) -> Statement:
    folded = fold(text)
    told = _PREFACE.sub("", folded) if _PREFACE.match(folded) else folded
    said = tuple(_in_first_person(_words(told)))
    denials = tuple(word for word in said if word in negations())
    left_out = _left_out(bool(denials))
    capital = (one.strip(_OPENING + _CLOSING) for one in text.split()[1:])
    return Statement(
        text=folded,
        words=said,
        core=tuple(_stem(word) for word in said if word not in left_out),
        negations=denials,
        asks=bool(_QUESTION.search(folded)),
        open=_leaves_open(said),
        names=frozenset(fold(word) for word in capital if word[:1].isupper()),
    )


@cache
def negations() -> frozenset[str]:
    """The words that deny."""
    return words("negations") | words("joined_negations")


@cache
def opposites() -> frozenset[str]:
    """The words that have an opposite."""
    return frozenset[str]().union(*pairs("opposite_verbs"), *pairs("opposite_states"))


@cache
def _left_out(denies: bool) -> frozenset[str]:
    """The words that are ignored, if the statement denies or if it does not."""
    return words("helping") | negations() | words("with_negation" if denies else "always")


def _leaves_open(said: tuple[str, ...]) -> bool:
    if not words("hedges").isdisjoint(said) or sum(one in words("negations") for one in said) > 1:
        return True
    if said and said[-1] in words("answers"):
        return True
    return any(one in negations() and after in words("only") for one, after in pairwise(said))


def _words(folded: str) -> list[str]:
    found: list[str] = []
    for chunk in folded.split():
        for piece in (chunk,) if chunk.isascii() else _PIECE.findall(chunk):
            word = piece.rstrip(_CLOSING).lstrip(_OPENING)
            if word and word not in {"the", "-"}:
                found.extend(_expanded(word))
    return found


def _in_first_person(said: list[str]) -> list[str]:
    """The words in the first person: "the user prefers" becomes "I prefer"."""
    said = ["my" if word == "user's" else word for word in said]
    if not said or said[0] != "user":
        return said
    at = next((at for at in (1, 2) if said[at : at + 1] and said[at] not in _BEFORE_VERB), 1)
    verb = said[at] if at < len(said) else ""
    if verb in _OF_I:
        verb = _OF_I[verb]
    elif verb.endswith("ies"):
        verb = verb[:-3] + "y"
    elif verb.endswith(("ches", "shes", "sses", "xes", "zes", "oes")):
        verb = verb[:-2]
    elif verb.endswith("s") and not verb.endswith("ss"):
        verb = verb[:-1]
    else:
        return ["i", *said[1:]]
    return ["i", *said[1:at], verb, *said[at + 1 :]]


def _expanded(word: str) -> tuple[str, ...]:
    """`word` in one spelling, with contractions split."""
    if word == "cannot":
        return "can", "not"
    if "'" not in word:
        return (_spellings().get(word, word),)
    if match := _WITH_PRONOUN.fullmatch(word):
        return match[1], _CONTRACTED[match[2]]
    if word.endswith("n't") and len(word) > 3:
        return _CUT_SHORT.get(word[:-3], word[:-3]), "not"
    elided = _ELIDED.match(word)
    return (elided.group(), word[elided.end() :]) if elided else (word,)


@cache
def _spellings() -> dict[str, str]:
    return dict(pair.split("/") for pair in words("spellings"))


def _stem(word: str) -> str:
    """A rough stem so that "likes" equals "does not like"."""
    if word in {"has", "had"}:
        return "have"
    plural = len(word) > 3 and word.isascii() and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plural else word
