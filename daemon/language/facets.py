"""What a short statement is about: its owners, topics and values, and whether it tells a change.

"Mum's flight is delayed, lands at 20:15" has the owner "mum", the topics "flight" and "land", the
number 20:15, and tells a change.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final

import msgspec

from ..memory.stemming import word_terms
from ..memory.stop_words import STOP_WORDS
from .normal_form import Statement, read
from .sorted_words import (
    UNSPACED,
    character_pairs,
    is_small,
    sort_characters,
    sort_words,
    stem_of,
)
from .vocabulary import compiled, cue, named_languages, words

_CLAUSE: Final = re.compile(r"[,;:!?.](?:\s|$)|[,。;!?、]|\s-\s")
# What somebody is without, or has, at one time; the cues of both are in the lexicon.
_STATES: Final = {
    "meat": ("without_meat", "having_meat"),
    "alcohol": ("without_alcohol", "having_alcohol"),
    "smoking": ("without_smoking", "having_smoking"),
    "marriage": ("without_marriage", "having_marriage"),
}
# Small words that never tell which attribute is meant.
_EMPTY: Final = (
    "light", "copulas", "articles", "helping", "links", "connecting", "now", "titles",
)  # fmt: skip


class Facets(msgspec.Struct, frozen=True):
    """The parts of a statement.

    Attributes:
        statement: its normal form.
        owners: whose it is, if not the speaker's: relatives, names, words with a possessive ending.
        own: whether it speaks of the speaker.
        topics: its content words by their stems, in order, without values and names.
        first: the stem of the first topic or name, or "".
        single: the stems of nouns of which an owner has one at a time: "rent", "dentist".
        values: numbers, weekdays, dates and times of day; numbers with a unit by that unit.
        names: the stems of the words written as names.
        modifiers: for topics, the topic right before: "garage" for "code" in "the garage code".
        labels: whether a number follows its noun at once: "version 2", "code 12".
        language: the name of its language, or "" if few words tell.
        words: the stems of all words.
        frame: the stems of small words that may tell which attribute is meant: "starts".
        returns: whether it is about the way back.
        opening: the stem of the first word, which may be a name in spite of its capital letter.
    """

    statement: Statement
    owners: frozenset[str]
    own: bool
    topics: dict[str, str]
    first: str
    single: frozenset[str]
    values: dict[str, frozenset[str]]
    names: frozenset[str]
    modifiers: dict[str, str]
    labels: bool
    language: str
    words: frozenset[str]
    frame: frozenset[str]
    returns: bool
    opening: str

    @property
    def content(self) -> frozenset[str]:
        """The topics and the names."""
        return self.names.union(self.topics)

    @property
    def changes(self) -> bool:
        """Whether it tells of a change, "now", "moved to", and not of something more, "also"."""
        return self.tells("changes") and not self.tells("adds")

    @property
    def open(self) -> bool:
        """Whether it is a question, a plan, a doubt, or only about what was true before."""
        if self.statement.asks or self.statement.open or self.tells("planned"):
            return True
        return self.tells("formerly") and not self.tells("changes")

    @property
    def ended(self) -> list[frozenset[str]]:
        """The content of each clause that tells of an end: "sold the Golf"."""
        if not self.tells("ended"):
            return []
        clauses = _clauses(self.statement.text)
        return [found for clause in clauses if (found := self.content & _ended(clause))]

    @property
    def states(self) -> dict[str, bool]:
        """For "meat", "smoking" and so on, whether it tells of being without, or of having it."""
        found = {name: False for name, (_, having) in _STATES.items() if self.tells(having)}
        return found | {name: True for name, (without, _) in _STATES.items() if self.tells(without)}

    def tells(self, name: str) -> bool:
        """Whether it has a cue of that name."""
        return _tells(name, self.statement.text)


@lru_cache(512)
def facets_of(text: str) -> Facets:
    """The facets of `text`, in time that grows with its length."""
    statement = read(text)
    folded = statement.text
    unspaced = sum(map(len, UNSPACED.findall(folded))) * 2 > len(folded)
    parts = sort_characters(folded) if unspaced else sort_words(statement)
    opens = bool(statement.words) and folded.startswith(statement.words[0])
    return Facets(
        statement=statement,
        owners=frozenset(parts.owners),
        own=parts.own,
        topics=parts.topics,
        first=parts.first,
        single=frozenset(parts.single),
        values={sort: frozenset(found) for sort, found in parts.values.items()},
        names=frozenset(parts.names - parts.owners),
        modifiers=parts.modifiers,
        labels=parts.labels,
        language=_language(statement),
        words=frozenset(map(stem_of, statement.words)),
        frame=frozenset(
            stem_of(word) for word in statement.words if is_small(word) and word not in _empty()
        ),
        returns=not words("returns").isdisjoint(statement.words),
        opening=stem_of(statement.words[0]) if opens else "",
    )


@lru_cache(2_048)
def _tells(name: str, folded: str) -> bool:
    return cue(name).search(folded) is not None


def _clauses(folded: str) -> list[str]:
    return [part for clause in _CLAUSE.split(folded) for part in cue("joins").split(clause)]


def _ended(clause: str) -> frozenset[str]:
    """The stems of a clause that tells of an end; empty for other clauses."""
    if not _tells("ended", clause):
        return frozenset()
    instead = compiled(r"(?:{instead_of}) (?:the )?(\w+)").search(clause)
    rest = instead[1] if instead is not None else cue("ended").sub(" ", clause)
    stems: set[str] = set()
    for word in rest.split():
        stems.update(word_terms(word.strip(".,;:!?'\"()")))
        stems.update(pair for run in UNSPACED.findall(word) for pair in character_pairs(run))
    return frozenset(stems)


def _language(statement: Statement) -> str:
    counts = {
        name: sum(word in small for word in statement.words) for name, small in _small().items()
    }
    best = max(counts, key=lambda name: counts[name])
    return best if sorted(counts.values())[-2] < counts[best] else ""


@cache
def _small() -> dict[str, frozenset[str]]:
    """The small words of each language that has a good list of them."""
    tables = ("no_topics", "own_words", "self", "ours", "articles", "copulas", "helping", "links")
    found = {
        name: frozenset(word for table in tables for word in language.words.get(table, "").split())
        for name, language in named_languages().items()
        if "no_topics" in language.words
    }
    return found | {"en": found["en"] | STOP_WORDS}


@cache
def _empty() -> frozenset[str]:
    return STOP_WORDS.union(*map(words, _EMPTY))
