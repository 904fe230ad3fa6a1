"""Parses a query. All its content is data, never an operator of the full-text index.

    caroline's trip "adoption agency" -work last May

looks for *trip*, demands the phrase, excludes memories with *work*, and names a person and a month.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Final, TypeAlias

import msgspec

from ..language import vocabulary
from ..language.vocabulary import not_topics
from ..memory.indexing import index_words
from ..memory.similarity import fold
from ..memory.stemming import terms_of, word_terms
from ..memory.stop_words import ALSO_LEFT_OUT, STOP_WORDS
from .dates import FoundDates, Span, find
from .dates.words import MONTHS
from .people import TAKEN_OUT, find_people, first_words

# More words make a query slower, not better.
MOST_WORDS: Final = 48
# The maximum number of quoted phrases and of exclusions.
MOST_PHRASES: Final = 16
# A longer query is a message; in it, sentences that are not questions count less.
LONG: Final = 12
_ASIDE: Final = 0.6
# The weight of words without a topic, in a question and in a message.
_SMALL_TALK: Final = 0.7
_SMALL_TALK_IN_LONG: Final = 0.35
_ASKING: Final = re.compile(r"[^.!?\n]+\?")
_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?\n]*")
_NAME: Final = re.compile(r"(?<=[^.!?\s])\s+[\"'(¿]?([A-ZÀ-ÖØ-Þ][\w-]*)")
_OWNS: Final = re.compile(r"['’]s\b")
# Only this many characters are read.
MOST_CHARS: Final = 8_192

# Consecutive words, normalised as in the index but not stemmed.
Phrase: TypeAlias = tuple[str, ...]

# A quotation contains no opening mark, so that no text is scanned twice.
_QUOTED: Final = r'"[^"]*"|„[^„“”]*[“”]|“[^“”]*”|«[^«»]*»|»[^»«]*«|「[^「」]*」|『[^『』]*』'
_MARKED: Final = re.compile(
    rf"(?<![^\s(])-(?P<not>{_QUOTED})"
    r"|(?<![^\s(])-(?P<without>[^\W\d_][^\s\"“”„«»「」『』()]*)"
    rf"|(?P<quoted>{_QUOTED})"
)
# Prevents dates and names from extending across it.
_TAKEN_OUT: Final = f" {TAKEN_OUT} "


@cache
def little() -> frozenset[str]:
    """Words that say nothing about a topic, and those that questions consist of."""
    return not_topics() | vocabulary.words("asks")


class Query(msgspec.Struct, frozen=True):
    """A parsed query.

    Attributes:
        words: the words to look for, each once, normalised as in the index but not stemmed;
            includes those of `phrases`. Empty only if the query is.
        phrases: phrases that a memory must contain.
        excluded: words and phrases that a memory must not contain.
        people: the known people in it, by their known names.
        dates: the times in it; every reading of an ambiguous time.
        name_words, date_words: the words of these. They are in `words` only if there are no
            other words.
        names: the words with a capital letter within a sentence, in order; none in German.
        once: whether it asks for something that used to be true.
        shares: the weights of words that count less, as fractions of 1.
        long: whether it is a message rather than only a question.
    """

    words: tuple[str, ...]
    phrases: tuple[Phrase, ...] = ()
    excluded: tuple[Phrase, ...] = ()
    people: tuple[str, ...] = ()
    dates: tuple[Span, ...] = ()
    name_words: tuple[str, ...] = ()
    date_words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    once: bool = False
    shares: Mapping[str, float] = {}
    long: bool = False

    @property
    def topics(self) -> bool:
        """Whether any word is a topic, and not only a person or a time."""
        told = little().union(self.name_words, self.date_words)
        return bool(self.phrases) or not told.issuperset(self.words)

    @property
    def of_time(self) -> bool:
        """Whether it asks only for a time."""
        return bool(self.dates) and not self.people and not self.topics

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look for; an exclusion alone is nothing."""
        return not self.words


def parse(
    text: str, now: float | None = None, local: dt.tzinfo = dt.UTC, people: Collection[str] = ()
) -> Query:
    """Read a query; any text is valid.

    Phrases are in quotation marks of any language. A dash before a letter, after a blank or at the
    beginning, excludes: not in "state-of-the-art", "-5 degrees", "--force" or "ls -l" (one or two
    ASCII letters are a command option). Words of grammar are dropped if other words remain.

    Args:
        text: the query; its first `MOST_CHARS` characters are read.
        now: seconds since the epoch that dates are relative to; None: look for no dates.
        local: the time zone of days.
        people: the known names, at least those that share a word with the text.
    """
    text = _what_is_asked(unicodedata.normalize("NFKC", text[:MOST_CHARS]))
    plain, phrases, excluded = _marked(text)
    times = FoundDates((), plain) if now is None else find(plain, now, local, first_words(people))
    named = find_people(times.rest, people)
    quoted = [word for phrase in phrases for word in phrase]
    every = _without_war(index_words(plain))
    rest = _without_war(index_words(named.rest))
    words = _once(_telling([*quoted, *rest]) or _telling(every) or [*quoted, *every])[:MOST_WORDS]
    long = len(every) > LONG
    asking = index_words(" ".join(_ASKING.findall(plain))) if long else every
    return Query(
        words=words,
        phrases=phrases,
        excluded=excluded,
        people=named.people,
        dates=times.spans,
        name_words=_once(_telling(index_words(" ".join(named.words)))),
        date_words=_once(
            word
            for word in index_words(" ".join(span.text for span in times.spans))
            if word in MONTHS or word not in STOP_WORDS
        ),
        names=_names(plain),
        once=not vocabulary.words("once").isdisjoint(asking),
        shares=_shares(words, named.rest, long=long),
        long=long,
    )


def match_expression(
    words: tuple[str, ...], phrases: tuple[Phrase, ...] = (), excluded: tuple[Phrase, ...] = ()
) -> str:
    """The full-text expression for all `phrases`, any of `words`, and none of `excluded`.

    If there are phrases, the words only add to the score. Every word is quoted, so that it cannot
    be an operator. A single character of a script that is indexed in pairs matches all pairs that
    begin with it. '' if there is nothing to look for, which the index would reject.
    """
    alternatives = " OR ".join(map(_term, (*phrases, *((word,) for word in words))))
    demanded = " AND ".join(map(_term, phrases))
    wanted = f"{demanded} AND ({alternatives})" if demanded else alternatives
    if not wanted or not excluded:
        return wanted
    return f"({wanted}) NOT ({' OR '.join(map(_term, excluded))})"


def _term(phrase: Phrase) -> str:
    quoted = f'"{" ".join(phrase)}"'
    return f"{quoted}*" if is_lone(phrase[-1]) else quoted


def is_lone(word: str) -> bool:
    """Whether a word is a single character of a script that is indexed in pairs."""
    return len(word) == 1 and ord(word) > 0x0E00


def _what_is_asked(text: str) -> str:
    """The text without sentences that only say how to answer, if there are others."""
    sentences = _SENTENCE.findall(text)
    if len(sentences) < 2:
        return text
    how = vocabulary.cue("how_to_answer")
    kept = [one for one in sentences if how.search(fold(one.strip())) is None]
    return "".join(kept) if 0 < len(kept) < len(sentences) else text


def _marked(text: str) -> tuple[str, tuple[Phrase, ...], tuple[Phrase, ...]]:
    """The text without quotations and exclusions, the phrases, and the exclusions."""
    phrases: dict[Phrase, None] = {}
    excluded: dict[Phrase, None] = {}

    def take(match: re.Match[str]) -> str:
        bare = match["without"]
        if bare is not None and bare.isascii() and len(bare.rstrip("?!.,;:")) <= 2:
            return match.group()
        phrase = tuple(index_words(bare or match["not"] or match["quoted"])[:MOST_WORDS])
        into = phrases if match["quoted"] is not None else excluded
        if not phrase or len(into) == MOST_PHRASES:
            return match.group() if into is phrases else _TAKEN_OUT
        into[phrase] = None
        return _TAKEN_OUT

    return _MARKED.sub(take, text), tuple(phrases), tuple(excluded)


def _without_war(words: list[str]) -> list[str]:
    """The words without the German "war", an English noun too, unless it is the only word."""
    german = not vocabulary.words("nouns_large").isdisjoint(words)
    return [word for word in words if word != "war"] or words if german else words


def _telling(words: Iterable[str]) -> list[str]:
    return [word for word in words if word not in STOP_WORDS and word not in ALSO_LEFT_OUT]


def _names(text: str) -> tuple[str, ...]:
    if not vocabulary.words("nouns_large").isdisjoint(text.lower().split()):
        return ()
    words = index_words(" ".join(_NAME.findall(_OWNS.sub("", text))))
    return _once(word for word in words if word not in not_topics() and word.isalpha())


def _shares(words: Iterable[str], text: str, *, long: bool) -> dict[str, float]:
    """The reduced weights of words that count less, as fractions of 1."""
    asked: set[str] = set()
    if long:
        asked = {term for sentence in _ASKING.findall(text) for term in terms_of(sentence)}
    small_talk = _SMALL_TALK_IN_LONG if long else _SMALL_TALK
    shares: dict[str, float] = {}
    for word in words:
        share = small_talk if word in not_topics() else 1.0
        if asked and asked.isdisjoint(word_terms(word)):
            share *= _ASIDE
        if share < 1.0:
            shares[word] = share
    return shares


def _once(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
