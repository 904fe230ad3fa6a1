"""Chooses, by rules, the category of the tree that a text belongs in."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Collection, Mapping
from typing import Final

from ..config.settings import Rules
from ..language.vocabulary import not_topics
from ..memory.records import DEFAULT_CATEGORY
from ..memory.similarity import words
from ..memory.tree_nodes import ROOT, Tree
from ..recall.recall import Request, recall
from ..recall.sources import MEMORIES
from ..store import tree_rows

# The points of a category for its name, the names above it, the words of its description, and each
# similar memory in it.
_NAME: Final = 1.0
_ABOVE: Final = 0.3
_DESCRIBED: Final = 0.3
_MOST_DESCRIBED: Final = 3
_LIKE: Final = 0.5
# One word of a description is not enough, two similar memories are.
_ENOUGH: Final = 0.55
_NEIGHBOURS: Final = 8
# The minimum share and number of common words of a similar memory.
_LEAST_SHARE: Final = 0.25
_LEAST_WORDS: Final = 2
_KIN_LETTERS: Final = 5
_LONGEST: Final = 1_000
# Default categories, which are never proposed.
_CATCH_ALL: Final = frozenset({ROOT, DEFAULT_CATEGORY, "conversations"})


def category_for(
    db: sqlite3.Connection,
    text: str,
    now: float,
    rules: Rules = Rules(),  # noqa: B008 - frozen
) -> str | None:
    """The category whose name, description and memories fit `text` best.

    Args:
        db: a read connection.
        text: the text.
        now: the time.
        rules: the settings of the search.

    Returns:
        A category of the tree; None if none fits.
    """
    tree = tree_rows.load(db)
    asked = frozenset(_stem(word) for word in words(text[:_LONGEST]) if _tells(word))
    if not tree or not asked:
        return None
    worth = by_name(tree, asked)
    for category, gained in _by_likeness(db, text[:_LONGEST], now, rules).items():
        if category in tree:
            worth[category] = worth.get(category, 0.0) + gained
    fitting = [path for path, value in worth.items() if value >= _ENOUGH]
    return max(fitting, key=lambda path: (worth[path], path.count("/"), path), default=None)


def by_name(tree: Tree, asked: Collection[str]) -> dict[str, float]:
    """The points of each category for words in its path and description."""
    found: dict[str, float] = {}
    for path, node in tree.items():
        above, _, name = path.rpartition("/")
        own = _parts(name)
        worth = _NAME * sum(_meets(part, asked) for part in own) / (len(own) or 1)
        worth += _ABOVE * sum(_meets(part, asked) for part in _parts(above))
        described = _parts(node.desc) - own - _parts(above)
        worth += _DESCRIBED * min(_MOST_DESCRIBED, sum(_meets(one, asked) for one in described))
        if worth and path not in _CATCH_ALL:
            found[path] = worth
    return found


def _by_likeness(
    db: sqlite3.Connection, text: str, now: float, rules: Rules
) -> Mapping[str, float]:
    request = Request(
        text=text,
        sources=frozenset({MEMORIES.name}),
        limit=_NEIGHBOURS,
        min_relevance=0.0,
        weights=rules.recall.weights,
        scoring=rules.scoring,
        now=now,
        local=dt.UTC,
    )
    answer = recall(db, request, rules.recall)
    asked = len(answer.query.telling) or 1
    found: dict[str, float] = {}
    for hit in answer.hits:
        share = len(hit.words) / asked
        category = hit.memory.category
        if share >= _LEAST_SHARE and len(hit.words) >= _LEAST_WORDS and category not in _CATCH_ALL:
            found[category] = found.get(category, 0.0) + _LIKE * min(1.0, 2 * share)
    return found


def _parts(path: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in words(path.replace("_", " ")) if _tells(word))


def _tells(word: str) -> bool:
    return len(word) > 1 and word not in not_topics()


def _meets(part: str, asked: Collection[str]) -> float:
    """How well a word of a category matches the text; a common beginning counts less."""
    if part in asked:
        return 1.0
    if len(part) < _KIN_LETTERS or not part.isascii():
        return 0.0
    return 0.7 if any(word.startswith(part[:_KIN_LETTERS]) for word in asked) else 0.0


def _stem(word: str) -> str:
    plural = len(word) > 3 and word.isascii() and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plural else word
