"""What the sections of one context block share, each read once from one snapshot.

What needs no query is kept with the connection that read it (`derived`), for up to a minute.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, TypeVar

import msgspec

from ..config.settings import Rules
from ..language.sentences import sentences
from ..memory.records import Memory
from ..store.connection import derived
from ..store.selecting import Filters
from . import context_memories
from .context_memories import ScoredMemories
from .recall import Answer, Hit, Request, recall
from .sources import MEMORIES

T = TypeVar("T")

# Of the memories: those found, and those shown without a query.
MOST_MEMORIES: Final = 10
# The results of all sources, and how many of them may be unsure.
_HITS: Final = 20
_UNSURE: Final = 3
_SENTENCES: Final = 6
# How long what needs no query is kept: ages and scores move by so much.
_KEPT_SECONDS: Final = 60.0


class Asked(msgspec.Struct, frozen=True):
    """The agent and the query that a context block is made for.

    `found`: include only what the query finds. `max_tokens` is the size of the sections.
    """

    agent: str
    query: str
    now: float
    local: dt.tzinfo
    rules: Rules
    filters: Filters = Filters()
    found: bool = False
    max_tokens: int = 2_000

    @property
    def shown_at(self) -> float:
        """The time at which ages are shown: the last full minute."""
        return self.now // _KEPT_SECONDS * _KEPT_SECONDS


class BlockReading:
    """What the sections of one block share, each read once."""

    def __init__(self, db: sqlite3.Connection, asked: Asked) -> None:
        self.db = db
        self.asked = asked

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """`make()`, which depends on no query, kept while database and minute are the same."""
        asked = self.asked
        if asked.filters != Filters():
            return make()
        state = (
            *(asked.shown_at, self._last_expiry),
            *(asked.rules, asked.local, asked.agent, asked.max_tokens),
        )
        return derived(self.db, name, state, make)

    @cached_property
    def _last_expiry(self) -> float | None:
        """When a memory expired last: it must not be shown for the rest of the minute."""
        row = self.db.execute(
            "SELECT max(expires_at) FROM memories WHERE expires_at IS NOT NULL AND expires_at <= ?",
            (self.asked.now,),
        ).fetchone()
        return None if row is None else row[0]

    @cached_property
    def answer(self) -> Answer | None:
        """The answer to the query; None if there is no query.

        Of a turn that finds nothing certain as a whole, each sentence is asked too.
        """
        if not self.asked.query.strip():
            return None
        tuning = self.asked.rules.recall
        request = Request(
            text=self.asked.query,
            filters=self.asked.filters,
            limit=_HITS,
            weights=tuning.weights,
            scoring=self.asked.rules.scoring,
            now=self.asked.now,
            local=self.asked.local,
        )
        answer = recall(self.db, request, tuning)
        parts = sentences(request.text)[:_SENTENCES]
        if not self.asked.found or answer.confidence == "sure" or len(parts) < 2:
            return answer
        asked = (msgspec.structs.replace(request, text=part) for part in parts)
        sure = [hit for one in asked for hit in recall(self.db, one, tuning).hits if hit.sure]
        sure.sort(key=lambda hit: hit.relevance, reverse=True)
        hits = {(hit.source, hit.id): hit for hit in reversed((*sure, *answer.hits))}
        return msgspec.structs.replace(answer, hits=tuple(hits.values())[::-1])

    @cached_property
    def chosen(self) -> Sequence[Hit]:
        """The hits that are sure, and the first few others: nobody has asked for them."""
        hits = () if self.answer is None else self.answer.hits
        unsure = [hit for hit in hits if not hit.sure][:_UNSURE]
        return [hit for hit in hits if hit.sure or any(hit is one for one in unsure)]

    def hits(self, source: str, limit: int) -> Sequence[Hit]:
        """The best chosen hits of a source of recall; none without a query."""
        return [hit for hit in self.chosen if hit.source == source][:limit]

    @cached_property
    def found(self) -> Sequence[tuple[Memory, Hit]]:
        """The memories that the query finds, the newest statement in place of those it replaces."""
        found: dict[str, tuple[Memory, Hit]] = {}
        for hit in self.hits(MEMORIES.name, MOST_MEMORIES):
            memory = hit.memory
            if memory.superseded_by is not None:
                memory = context_memories.current(self.db, memory, self.asked.now)
            found.setdefault(memory.id, (memory, hit))
        return [*found.values()]

    @cached_property
    def ranked(self) -> ScoredMemories:
        """The memories by score, as far as they may fit."""
        asked = self.asked
        if MEMORIES.passes(asked.filters, asked.now) is None:
            return ScoredMemories((), complete=False)
        return self.kept(
            "context ranked",
            lambda: context_memories.by_score(
                self.db, asked.filters, asked.rules.scoring, asked.now, asked.max_tokens
            ),
        )

    @cached_property
    def always(self) -> Sequence[Memory]:
        """The memories that hold whatever is asked."""
        asked = self.asked
        if MEMORIES.passes(asked.filters, asked.now) is None:
            return ()
        return self.kept(
            "context always",
            lambda: context_memories.always(
                context_memories.standing(self.db, asked.filters, asked.now),
                self.ranked,
                asked.rules.scoring,
                asked.now,
            ),
        )

    @cached_property
    def memories(self) -> Sequence[Memory]:
        """The memories found; without a query the first by score."""
        if self.answer is not None:
            return [memory for memory, _ in self.found]
        return self.ranked.memories[:MOST_MEMORIES]
