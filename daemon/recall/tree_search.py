"""EvoClaw's keyword search of the category tree, and the categories that a model names.

    share × weight × recency
    share    the fraction of the query's words that are in the path or the description
    weight   1 + 0.1 × warm memories + 0.01 × cold ones, at most 2
    recency  1.5 if the category was used within 7 days, 1.2 within 30, else 1

The numbers are EvoClaw's; the matching differs. EvoClaw compares whole words with their
punctuation. Here "release?" matches "releases", and words without a topic match only if the query
has no others, but still count in the denominator of the share; a repeated word counts once; a
category used in the future counts as just used. The relevance can reach 3, unlike any other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec
from msgspec.structs import replace

from ..language.extraction.distilling import core_summary
from ..language.secrets import holds_secret
from ..memory.indexing import index_words
from ..memory.records import Distilled
from ..memory.scoring import DAY
from ..memory.stemming import label_terms, terms_of
from ..memory.tree_nodes import ROOT, Node, Tree, ancestors, desc_of
from ..store.database.connection import INSIDE, derived
from ..store.records import tree_rows
from .postings import LEAST_SIZE, weight_of
from .query import Query, little
from .sources import TELLING

_HEAVIEST: Final = 2.0
# The number of memories in place of a description.
_CORES: Final = 3
# The newest memories among which those of every category are looked for first.
_LOOKED_AT: Final = 1_000
_SHOWN: Final = f"merged_into IS NULL AND superseded_by IS NULL AND {TELLING} AND {INSIDE}"


class TreeHit(msgspec.Struct, frozen=True):
    """A category that the query's words lead to.

    Attributes:
        path: the category.
        relevance: its score, rounded to 3 places.
        words: the words of the query in its path or description, in order.
        trace: the path from the root to it, both included, for explanations.
        share, weight, recency: the factors of the score, not rounded.
    """

    path: str
    relevance: float
    words: tuple[str, ...]
    trace: tuple[str, ...]
    share: float
    weight: float
    recency: float


class SearchedTree:
    """A tree with the categories of each term; made once while the tree is unchanged.

    Attributes:
        nodes: the nodes by path, without the root.
    """

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self._by_term: dict[str, list[str]] = {}
        for path, node in nodes.items():
            for term in label_terms(path) | label_terms(node.desc):
                self._by_term.setdefault(term, []).append(path)

    def with_any(self, terms: Iterable[str]) -> dict[str, Node]:
        """The nodes with any of the terms in their path or description, in the tree's order."""
        paths = {path for term in terms for path in self._by_term.get(term, ())}
        return {path: node for path, node in self.nodes.items() if path in paths} if paths else {}


def described(db: sqlite3.Connection) -> Tree:
    """The tree; a category without a real description has the core of its newest memories."""
    return derived(db, "described", None, lambda: _described(db))


def _described(db: sqlite3.Connection) -> Tree:
    tree = tree_rows.load(db)
    # Looking for a memory of a category that has none would read the newest of all.
    bare = [
        path
        for path, node in tree.items()
        if (node.warm_count or node.cold_count) and not desc_of(path, node)
    ]
    cores = _newest(db, bare)
    return tree | {path: replace(tree[path], desc=core) for path, core in cores.items() if core}


def _newest(db: sqlite3.Connection, paths: Sequence[str]) -> dict[str, str]:
    """The cores of the newest memories of each category, without those that hold a secret."""
    texts: dict[str, list[str]] = {path: [] for path in paths}
    lacking = set(paths)
    query = f"SELECT category, text FROM memories WHERE {_SHOWN} %s ORDER BY created_at DESC, id"
    # Most categories have some among the newest of all, which need no sorting.
    for path, text in db.execute(f"{query % ''} LIMIT ?", (_LOOKED_AT,)):
        if path in lacking and not holds_secret(text):
            texts[path].append(text)
            lacking -= {path} if len(texts[path]) == _CORES else set()
            if not lacking:
                break
    for path in lacking:
        rows = db.execute(f"{query % 'AND category = ?'} LIMIT ?", (path, _CORES))
        texts[path] = [text for _, text in rows if not holds_secret(text)]
    return {path: "; ".join(map(_core, of_path)) for path, of_path in texts.items()}


# The newest of most categories are the same after the next store.
@lru_cache(256)
def _core(text: str) -> str:
    return core_summary(Distilled(fact=" ".join(text.split())))


def search(nodes: Mapping[str, Node], query: str, now: float, top: int = 3) -> list[TreeHit]:
    """The best `top` categories that share a word with `query`; ties in the order of the tree.

    The root is never found.
    """
    words = dict.fromkeys(query.lower().split())
    telling = {word: terms for word in words if (terms := _terms(word, little()))}
    telling = telling or {word: _terms(word, frozenset()) for word in words}
    hits = [
        hit
        for path, node in nodes.items()
        if path != ROOT
        if (hit := _hit(path, node, telling, len(words), now))
    ]
    return sorted(hits, key=lambda hit: -hit.relevance)[:top]


def category_terms(
    nodes: Mapping[str, Node], query: Query, size: int
) -> dict[str, dict[str, float]]:
    """For each category, the query's terms in its path or description, with their weights.

    Terms that match the categories of half of all `size` texts are left out, unless these are few.
    """
    shares = {word.term: word.share for word in query.words if word.term and not word.is_grammar}
    telling = {word.term for word in query.words if word.term and word.text not in little()}
    matched = {
        path: result
        for path, node in nodes.items()
        if (result := shares.keys() & label_terms(path) | telling & label_terms(node.desc))
    }
    counts: dict[str, int] = {}
    for path, terms in matched.items():
        for term in terms:
            counts[term] = counts.get(term, 0) + nodes[path].warm_count + nodes[path].cold_count
    weights = {
        term: weight_of(count, size) * shares[term]
        for term, count in counts.items()
        if 0 < count < max(size, LEAST_SIZE) / 2
    }
    return {
        path: {term: weights[term] for term in terms & weights.keys()}
        for path, terms in matched.items()
    }


def _terms(word: str, but: Collection[str]) -> frozenset[str]:
    return frozenset(
        terms_of(" ".join(index_word for index_word in index_words(word) if index_word not in but))
    )


def _hit(
    path: str, node: Node, words: Mapping[str, frozenset[str]], number: int, now: float
) -> TreeHit | None:
    label, desc = label_terms(path), label_terms(node.desc)
    matched = tuple(
        word
        for word, terms in words.items()
        if not (label.isdisjoint(terms) and desc.isdisjoint(terms))
    )
    if not matched:
        return None
    share = len(matched) / number
    weight = min(1.0 + 0.1 * node.warm_count + 0.01 * node.cold_count, _HEAVIEST)
    recency = _recency(node, now)
    trace = (ROOT, *ancestors(path), path)
    return TreeHit(path, round(share * weight * recency, 3), matched, trace, share, weight, recency)


def _recency(node: Node, now: float) -> float:
    if node.last_access <= 0.0:
        return 1.0
    days = (now - node.last_access) / DAY
    if days < 7.0:
        return 1.5
    return 1.2 if days < 30.0 else 1.0
