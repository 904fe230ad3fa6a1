"""What recall answers: the results, and how the question was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from ..language.thesaurus import thesaurus
from ..memory.agent_files import Skill
from ..memory.experiences import Experience
from ..memory.records import Entity, Memory, Pair
from ..store.records.agent_entries import OwnEntry
from .query import Query
from .ranking import Ranked
from .tree_search import TreeHit

Confidence: TypeAlias = Literal["sure", "unsure", "none"]


class Hit(msgspec.Struct, frozen=True):
    """One result, and why it was found.

    Attributes:
        source: the name of its source.
        item: a memory, or an item of another source.
        sure: whether it most likely answers the query.
        outdated: whether a newer memory contradicts it.
        method: `keyword`; `meaning` if it has no word of the query; `keyword-tree` if only its
            category matches; `llm-tree` if a model named its category; `cold-remote` if it is in
            the remote database only.
        words: the words of the query that it contains.
        path: the category of the tree search that contains it, or "".
        reason: a model's reason for naming that category, or "".
        signals: the non-zero contribution of each signal to its score.
        meant: the words of the query that it does not have itself, with the code in the index of
            the concept or date that it has instead.
        lenders: the ids of the neighbours whose words count for it.
    """

    source: str
    item: Any
    ranked: Ranked
    sure: bool
    outdated: bool
    method: str
    words: tuple[str, ...]
    path: str
    reason: str
    signals: dict[str, float]
    meant: Mapping[str, str]
    neighbours: tuple[str, ...]

    @property
    def by(self) -> dict[str, str]:
        """Its own words for the words in `meant`: {"boss": "manager"}."""
        words: dict[str, str] = {}
        for meaning in thesaurus().meanings(self.text) if self.meant else ():
            for code in meaning.codes:
                words.setdefault(code, " ".join(meaning.words))
        return {word: words[code] for word, code in self.meant.items() if code in words}

    @property
    def id(self) -> str:
        """Its id within its source; of a pair `kv:` and the key."""
        match self.item:
            case Pair(key=key):
                return f"kv:{key}"
            case Entity(key=key):
                return key
        return str(self.item.id)

    @property
    def text(self) -> str:
        """Its text; of a pair the key and the value, of an entity its name and relations."""
        match self.item:
            case Pair(key=key, value=value):
                return f"{key}: {value}"
            case Entity() | Experience():
                return self.item.summary
            case OwnEntry(item=Skill(description=description)):
                return description
            case OwnEntry(item=entry):
                return entry.text
        return str(self.item.text)

    @property
    def memory(self) -> Memory:
        """The memory."""
        assert isinstance(self.item, Memory)
        return self.item

    @property
    def relevance(self) -> float:
        """How likely it answers the query, 0 to 1."""
        return self.ranked.relevance


class Answer(msgspec.Struct, frozen=True):
    """The hits of all sources, what was searched, and how the query was read.

    Attributes:
        hits: best first.
        searched: the number of items searched, by source.
        why: the reason why there are no hits, in a sentence, or "".
    """

    hits: tuple[Hit, ...]
    searched: Mapping[str, int]
    query: Query
    common_words: tuple[str, ...]
    tree: tuple[TreeHit, ...]
    why: str

    @property
    def confidence(self) -> Confidence:
        """`sure` if the first hit is, `unsure` if it is not, `none` without hits."""
        if not self.hits:
            return "none"
        return "sure" if self.hits[0].sure else "unsure"

    def of(self, source: str) -> tuple[Hit, ...]:
        """The hits of one source."""
        return tuple(hit for hit in self.hits if hit.source == source)
