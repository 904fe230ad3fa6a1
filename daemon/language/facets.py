"""What a short statement is about: its owners, topics and values, and whether it tells a change.

"Mum's flight is delayed, lands at 20:15" has the owner "mum", the topics "flight" and "land", the
number 20:15, and tells a change.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ..memory.similarity import fold
from ..memory.stemming import word_terms
from ..memory.stop_words import STOP_WORDS
from .normal_form import read
from .sorted_words import (
    UNSPACED,
    SortedWords,
    character_pairs,
    is_small,
    sort_characters,
    sort_words,
    stem_of,
)
from .vocabulary import compiled, cue, words

_CLAUSE: Final = re.compile(r"[,;:!?.](?:\s|$)|[,。;!?、]|\s-\s")
# What somebody is without, or has, at one time; the cues of both are in the lexicon.
_STATES: Final = {
    "meat": ("without_meat", "having_meat"),
    "alcohol": ("without_alcohol", "having_alcohol"),
    "smoking": ("without_smoking", "having_smoking"),
    "marriage": ("without_marriage", "having_marriage"),
}
# The cues of a change, the surest first.
_OF_CHANGE: Final = ("changes", "ended", "turns")
# Small words that never tell which attribute is meant.
_EMPTY: Final = (
    "light", "copulas", "articles", "helping", "links", "connecting", "now", "titles",
)  # fmt: skip


class Facets(SortedWords):
    """The parts of a statement, and what its cues tell."""

    @property
    def content(self) -> set[str]:
        """The topics and the names."""
        return self.names.union(self.topics)

    @property
    def stems(self) -> set[str]:
        """The stems of all words."""
        return set(map(stem_of, self.statement.words))

    @property
    def frame(self) -> set[str]:
        """The stems of small words that may tell which attribute is meant: "starts"."""
        empty = STOP_WORDS.union(*map(words, _EMPTY))
        small = (word for word in self.statement.words if is_small(word))
        return {stem_of(word) for word in small if word not in empty}

    @property
    def opening(self) -> str:
        """The stem of the first word, which may be a name in spite of its capital letter."""
        first = self.statement.words[0] if self.statement.words else ""
        return stem_of(first) if self.statement.text.startswith(first) else ""

    @property
    def returns(self) -> bool:
        """Whether it is about the way back."""
        return not words("returns").isdisjoint(self.statement.words)

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
    def ended(self) -> list[set[str]]:
        """The content of each clause that tells of an end: "sold the Golf"."""
        if not self.tells("ended"):
            return []
        clauses = _CLAUSE.split(self.statement.text)
        parts = (part for clause in clauses for part in cue("joins").split(clause))
        return [stems for part in parts if (stems := self.content & _ended(part))]

    @property
    def states(self) -> dict[str, bool]:
        """For "meat", "smoking" and so on, whether it tells of being without, or of having it."""
        having = {name: False for name, (_, having) in _STATES.items() if self.tells(having)}
        return having | {
            name: True for name, (without, _) in _STATES.items() if self.tells(without)
        }

    def tells(self, name: str) -> bool:
        """Whether it has a cue of that name."""
        return _tells(name, self.statement.text)


@lru_cache(512)
def facets_of(text: str) -> Facets:
    """The facets of `text`, in time that grows with its length."""
    facets = Facets(read(text))
    folded = facets.statement.text
    unspaced = sum(map(len, UNSPACED.findall(folded))) * 2 > len(folded)
    (sort_characters if unspaced else sort_words)(facets)
    return facets


@lru_cache(2_048)
def tells_change(text: str) -> bool:
    """Whether a text may tell that something is no longer as it was; cheaper than its facets."""
    folded = fold(text)
    return any(_tells(name, folded) for name in _OF_CHANGE) and not _tells("adds", folded)


def _tells(name: str, folded: str) -> bool:
    return cue(name).search(folded) is not None


def _ended(clause: str) -> set[str]:
    """The stems of a clause that tells of an end; empty for other clauses."""
    if not _tells("ended", clause):
        return set()
    instead = compiled(r"(?:{instead_of}) (?:the )?(\w+)").search(clause)
    rest = instead[1] if instead is not None else cue("ended").sub(" ", clause)
    stems: set[str] = set()
    for word in rest.split():
        stems.update(word_terms(word.strip(".,;:!?'\"()")))
        stems.update(pair for run in UNSPACED.findall(word) for pair in character_pairs(run))
    return stems
