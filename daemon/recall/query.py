"""Reading a query: what it asks for. Whatever it contains, it is data.

    caroline's trip "adoption agency" -work last May

asks for *trip*, demands the phrase, refuses memories with *work*, and names a person and a month.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

import msgspec

from ..memory.indexing import index_text
from ..memory.stop_words import STOP_WORDS
from .dates import FoundDates, Span, find
from .dates.words import MONTHS
from .people import find_people, first_words

__all__ = [
    "MOST_CHARS", "MOST_PHRASES", "MOST_WORDS", "STOP_WORDS", "Phrase", "Query",
    "match_expression", "parse",
]  # fmt: skip

# More words than this make a query no clearer, only slower.
MOST_WORDS: Final = 48
# Likewise of quoted phrases, and of what is excluded; each may have as many words as a query.
MOST_PHRASES: Final = 16
# What stands behind this many characters is not read.
MOST_CHARS: Final = 8_192

# Words that follow each other, as the index would hold them unstemmed.
Phrase: TypeAlias = tuple[str, ...]

# An opening mark never lies within the quotation, so that none is scanned for twice.
_QUOTED: Final = r'"[^"]*"|„[^„“”]*[“”]|“[^“”]*”|«[^«»]*»|»[^»«]*«|「[^「」]*」|『[^『』]*』'
_MARKED: Final = re.compile(
    rf"(?<![^\s(])-(?P<not>{_QUOTED})"
    r"|(?<![^\s(])-(?P<without>[^\W\d_][^\s\"“”„«»「」『』()]*)"
    rf"|(?P<quoted>{_QUOTED})"
)
# Stands where something was taken out, so that no date reaches across it.
_TAKEN_OUT: Final = " \0 "
# Of a category that the index holds to be part of a word; `_` keeps a word together.
_IN_WORDS: Final = frozenset({"Mn", "Mc", "Co"})
_ASCII_WORD: Final = re.compile(r"\w+")


class Query(msgspec.Struct, frozen=True):
    """What a query asks for.

    Attributes:
        words: to look for, each once, as the index would hold them unstemmed; those of `phrases`
            are among them. Empty only if the query names nothing at all.
        phrases: what must stand in a memory word for word.
        excluded: words and phrases that must not.
        people: the known names that were named.
        dates: the times that were named; of an ambiguous one, each reading.
        name_words, date_words: the words of these. They are among `words` only if no others are
            there.
    """

    words: tuple[str, ...]
    phrases: tuple[Phrase, ...] = ()
    excluded: tuple[Phrase, ...] = ()
    people: tuple[str, ...] = ()
    dates: tuple[Span, ...] = ()
    name_words: tuple[str, ...] = ()
    date_words: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look for; an exclusion alone is nothing."""
        return not self.words


def parse(
    text: str,
    now: float | None = None,
    local: dt.tzinfo = dt.UTC,
    people: Collection[str] = (),
) -> Query:
    """What `text` asks for; it may be anything.

    Phrases stand in quotation marks of any language. A dash before a letter excludes, if a blank
    or nothing stands before it: not in "state-of-the-art", "-5 degrees", "--force" or "ls -l"
    (one or two plain letters are an option of some command). Words that merely build the
    sentence go, if others remain.

    Args:
        text: the query; its first `MOST_CHARS` characters are read.
        now: seconds since the epoch, which dates are told from; without it none are looked for.
        local: whose days are meant.
        people: names that the agent knows; those with a word in the text are enough.
    """
    plain, phrases, excluded = _marked(unicodedata.normalize("NFKC", text[:MOST_CHARS]))
    times = FoundDates((), plain) if now is None else find(plain, now, local, first_words(people))
    named = find_people(times.rest, people)
    quoted = [word for phrase in phrases for word in phrase]
    words = (
        _telling([*quoted, *_words(named.rest)])
        or _telling(_words(plain))
        or [*quoted, *_words(plain)]
    )
    return Query(
        words=_once(words)[:MOST_WORDS],
        phrases=phrases,
        excluded=excluded,
        people=named.people,
        dates=times.spans,
        name_words=_once(_telling(_words(" ".join(named.words)))),
        date_words=_once(
            word
            for word in _words(" ".join(span.text for span in times.spans))
            if word in MONTHS or word not in STOP_WORDS
        ),
    )


def match_expression(
    words: tuple[str, ...], phrases: tuple[Phrase, ...] = (), excluded: tuple[Phrase, ...] = ()
) -> str:
    """The full-text expression for all `phrases`, any of `words`, and none of `excluded`.

    With phrases the words only add to the score. Every word is quoted, so that none can be read
    as an operator. A lone character of a script that is indexed in pairs stands for all pairs
    that begin with it. '' if there is nothing to look for, which the index takes for an error.
    """
    alternatives = " OR ".join(map(_term, (*phrases, *((word,) for word in words))))
    demanded = " AND ".join(map(_term, phrases))
    wanted = f"{demanded} AND ({alternatives})" if demanded else alternatives
    if not wanted or not excluded:
        return wanted
    return f"({wanted}) NOT ({' OR '.join(map(_term, excluded))})"


def _term(phrase: Phrase) -> str:
    quoted = f'"{" ".join(phrase)}"'
    return f"{quoted}*" if _is_lone(phrase[-1]) else quoted


def _is_lone(word: str) -> bool:
    return len(word) == 1 and ord(word) > 0x0E00


def _marked(text: str) -> tuple[str, tuple[Phrase, ...], tuple[Phrase, ...]]:
    """The text without quotations and exclusions, and the two."""
    phrases: dict[Phrase, None] = {}
    excluded: dict[Phrase, None] = {}

    def take(match: re.Match[str]) -> str:
        bare = match["without"]
        if bare is not None and bare.isascii() and len(bare.rstrip("?!.,;:")) <= 2:
            return match.group()
        phrase = tuple(_words(bare or match["not"] or match["quoted"])[:MOST_WORDS])
        into = phrases if match["quoted"] is not None else excluded
        if not phrase or len(into) == MOST_PHRASES:
            return match.group() if into is phrases else _TAKEN_OUT
        into[phrase] = None
        return _TAKEN_OUT

    return _MARKED.sub(take, text), tuple(phrases), tuple(excluded)


def _words(text: str) -> list[str]:
    """The words of `text`, cut as the index cuts them, so that each is found again."""
    cut = index_text(text)
    if cut.isascii():
        words = _ASCII_WORD.findall(cut.lower())
    else:
        words = "".join(_lower(char) if _in_word(char) else " " for char in cut).split()
    return [word for word in words if word.strip("_")]


def _lower(char: str) -> str:
    """`char` in lower case where the index makes no difference of it.

    The index was built with an older Unicode than Python's: capitals that came later are letters
    of their own to it. Nor is this `casefold`, which makes "ß" into "ss", for the index keeps it.
    """
    return char.lower() if unicodedata.ucd_3_2_0.category(char) in {"Lu", "Lt"} else char


def _in_word(char: str) -> bool:
    return char == "_" or char.isalnum() or unicodedata.category(char) in _IN_WORDS


def _telling(words: Iterable[str]) -> list[str]:
    return [word for word in words if word not in STOP_WORDS]


def _once(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
