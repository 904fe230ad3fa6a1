"""Key–value pairs as answers: a pair is found by the words of its key and its value."""

from __future__ import annotations

import re
import sqlite3
from typing import Final

import msgspec

from ..memory.indexing import index_text
from ..memory.records import Pair
from ..store.key_values import newest
from .query import Query

# Tiny Claw gives a pair at most half of what a memory can have.
_AT_MOST: Final = 0.5
# Pairs are few by nature; beyond this many the oldest are not looked at.
_LOOKED_AT: Final = 2000
_WORD: Final = re.compile(r"[^\W_]+")


class PairHit(msgspec.Struct, frozen=True):
    """A pair that answers, its relevance and the words of the query that it has."""

    pair: Pair
    relevance: float
    words: tuple[str, ...]


def search(db: sqlite3.Connection, query: Query, limit: int) -> tuple[list[PairHit], int]:
    """The pairs with most of the query's words, and how many pairs were looked at."""
    pairs = newest(db, _LOOKED_AT)
    asked = dict.fromkeys((*query.words, *query.name_words))
    hits = [hit for pair in pairs if (hit := _judge(pair, tuple(asked)))]
    hits.sort(key=lambda hit: (-hit.relevance, -hit.pair.updated_at))
    return hits[:limit], len(pairs)


def _judge(pair: Pair, asked: tuple[str, ...]) -> PairHit | None:
    text = f"{pair.key} {pair.value[:2000]}"
    own = {word.lower() for word in _WORD.findall(index_text(text))}
    found = tuple(word for word in asked if word in own or any(_alike(word, o) for o in own))
    if not found:
        return None
    return PairHit(pair, _AT_MOST * len(found) / len(asked), found)


def _alike(asked: str, own: str) -> bool:
    """Whether two words differ by an ending alone."""
    short, long = sorted((asked, own), key=len)
    return len(short) >= 4 and long.startswith(short) and len(long) - len(short) <= 3
