"""The normal form of a statement, in which statements are compared.

"The user does not like tea." and "I don't like tea" have the same words in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from ..memory.similarity import fold
from ..memory.stemming import base_of
from .paraphrases import as_usual, may_be_reworded
from .vocabulary import pairs, pairs_in_order, words

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


@lru_cache(256)
def _read_short(text: str) -> Statement:
    return _read(text)


def _read(text: str) -> Statement:
    folded = fold(text)
    folded_words = _PREFACE.sub("", folded) if _PREFACE.match(folded) else folded
    gist = tuple(_in_first_person(_words(folded_words)))
    denials = tuple(word for word in gist if word in negations())
    ignored = "with_negation" if denials else "always"
    left_out = words("negations", "joined_negations", "helping", ignored)
    capital = (item.strip(_OPENING + _CLOSING) for item in text.split()[1:])
    names = frozenset(fold(word) for word in capital if word[:1].isupper())
    return Statement(
        text=folded,
        words=gist,
        core=tuple(_stem(word) for word in gist if word not in left_out),
        negations=denials,
        asks=bool(_QUESTION.search(folded)),
        open=_leaves_open(gist),
        names=names,
    )


def gist_of(statement: Statement) -> tuple[str, ...]:
    """Its words in the usual wording."""
    return wordings_of(statement)[0]


@lru_cache(256)
def wordings_of(statement: Statement) -> tuple[tuple[str, ...], ...]:
    """Its words in the forms in which statements are compared for repetition.

    Without articles, with one word for each of two that mean the same: in the usual wording, and
    in its own.
    """
    denies = bool(statement.negations)
    gist = tuple(_gist(statement.words, statement.names, denies=denies))
    # A longer text is hardly reworded as a whole.
    short = len(statement.text) <= LONGEST
    return (tuple(as_usual(gist, statement.names, denies=denies)), gist) if short else (gist, gist)


@cache
def negations() -> frozenset[str]:
    """The words that deny."""
    return words("negations", "joined_negations")


@cache
def opposites() -> frozenset[str]:
    """The words that have an opposite."""
    return frozenset[str]().union(*pairs("opposite_verbs"), *pairs("opposite_states"))


def is_interchangeable(word: str) -> bool:
    """Whether a word may be another one, or left out, in a statement that says the same."""
    return word in _interchangeable() or may_be_reworded(word)


@cache
def _interchangeable() -> frozenset[str]:
    listed = words("unsaid", "copulas", "lying", "passive", "naming_verbs", "with_negation")
    synonyms = pairs_in_order("synonyms")
    return listed.union(synonyms, synonyms.values(), ("has", "have", "am"))


def _gist(known: tuple[str, ...], names: frozenset[str], *, denies: bool) -> Iterator[str]:
    """The words without articles and the like; "gets collected" as "is collected"."""
    special, synonyms = _interchangeable(), pairs_in_order("synonyms")
    for before, word, after in zip(("", *known), known, (*known[1:], ""), strict=False):
        if word.endswith("'s") and after in words("movable"):
            yield from (word[:-2], "is")
        elif word not in special or not _is_unsaid(word, before, after, names, denies=denies):
            participle = _is_participle(after) or after in words("participles")
            auxiliary = word in words("passive") and participle
            lies = word in words("lying") and after in words("movable")
            yield "is" if auxiliary or lies or word == "ist" else synonyms.get(word, word)


def _is_unsaid(word: str, before: str, after: str, names: frozenset[str], *, denies: bool) -> bool:
    return (
        (word in words("unsaid") and word not in names and not _counts(word, before, after, names))
        or (word == "any" and denies and after != "more")
        or (
            word in {"has", "have"}
            and _is_participle(after)
            and after not in {"got", *pairs_in_order("figures")}
        )
        or (word in words("naming_verbs") and before in words("copulas"))
        or (word in {"an", "am"} and pairs_in_order("synonyms").get(after, after) == "jede")
    )


def _counts(word: str, before: str, after: str, names: frozenset[str]) -> bool:
    """Whether it is the "do" of a question without its mark, or the Spanish "a" before a name."""
    if word == "a":
        return after in names
    return word in {"do", "does"} and not before and after not in negations()


def _is_participle(word: str) -> bool:
    return word.endswith(("ed", "en")) or base_of(word) != word


def _leaves_open(known: tuple[str, ...]) -> bool:
    if (
        not words("hedges").isdisjoint(known)
        or sum(item in words("negations") for item in known) > 1
    ):
        return True
    if known and known[-1] in words("answers"):
        return True
    return any(word in negations() and after in words("only") for word, after in pairwise(known))


def _words(folded: str) -> list[str]:
    words: list[str] = []
    for chunk in folded.split():
        for piece in (chunk,) if chunk.isascii() else _PIECE.findall(chunk):
            word = piece.rstrip(_CLOSING).lstrip(_OPENING)
            if word and word not in {"the", "-"}:
                words.extend(_expanded(word))
    return words


def _in_first_person(known: list[str]) -> list[str]:
    """The words in the first person: "the user prefers" becomes "I prefer"."""
    known = ["my" if word == "user's" else word for word in known]
    if not known or known[0] != "user":
        return known
    at = next((at for at in (1, 2) if known[at : at + 1] and known[at] not in _BEFORE_VERB), 1)
    verb = known[at] if at < len(known) else ""
    if verb in _OF_I:
        verb = _OF_I[verb]
    elif verb.endswith("ies"):
        verb = verb[:-3] + "y"
    elif verb.endswith(("ches", "shes", "sses", "xes", "zes", "oes")):
        verb = verb[:-2]
    elif verb.endswith("s") and not verb.endswith("ss"):
        verb = verb[:-1]
    else:
        return ["i", *known[1:]]
    return ["i", *known[1:at], verb, *known[at + 1 :]]


def _expanded(word: str) -> tuple[str, ...]:
    """`word` in one spelling, with contractions split."""
    if word == "cannot":
        return "can", "not"
    if "'" not in word:
        return (pairs_in_order("spellings").get(word, word),)
    if match := _WITH_PRONOUN.fullmatch(word):
        return match[1], _CONTRACTED[match[2]]
    if word.endswith("n't") and len(word) > 3:
        return _CUT_SHORT.get(word[:-3], word[:-3]), "not"
    elided = _ELIDED.match(word)
    return (elided.group(), word[elided.end() :]) if elided else (word,)


def _stem(word: str) -> str:
    """A rough stem so that "likes" equals "does not like"."""
    if word in {"has", "had"}:
        return "have"
    plural = len(word) > 3 and word.isascii() and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plural else word
