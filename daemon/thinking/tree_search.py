"""Finding by reasoning where in the tree the answer to a question is filed."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Final

import msgspec

from ..llm.model import Part
from ..memory.tree_nodes import ROOT, Tree
from ..recall.tree_search import Reasoned
from ..shapes.recall import Expense
from .asking import Mind, Wish, spent_on
from .told import one_line

_MOST: Final = 5
# What is not above it counts as a guess.
_THRESHOLD: Final = 0.3
_LONGEST_QUESTION: Final = 2_000
_LONGEST_REASON: Final = 300


class Choice(msgspec.Struct, frozen=True):
    """A category that a model names."""

    path: str
    relevance: float
    reason: str = ""


class Searched(msgspec.Struct, frozen=True):
    """The categories of the tree that a model named, the most relevant first."""

    found: tuple[Reasoned, ...]
    spent: Expense


async def search(tree: Tree, question: str, mind: Mind, wish: Wish) -> Searched:
    """The one to five categories in which a model expects the answer.

    Raises:
        ModelUnavailable: no model answers in time, or usefully.
        InvalidInput: the endpoint that was wished for is no address.
    """
    # What does not change comes first, and in the same words: a provider need not read it anew
    # each time.
    parts = (
        Part("tree", described(tree), stable=True),
        Part("question", question[:_LONGEST_QUESTION]),
    )
    reply = await mind.ask(mind.question("tree", *parts), list[Choice], wish)
    return Searched(chosen(reply.value, tree), spent_on(reply))


def described(tree: Tree) -> str:
    """The tree for a model: a line for each category, in their order, without what changes daily.

    As long as the tree is within its limit of bytes, so is this.
    """
    return "\n".join(f"{path} — {tree[path].desc}" for path in sorted(tree))


def chosen(choices: Sequence[Choice], tree: Tree) -> tuple[Reasoned, ...]:
    """The choices that are of use: categories of the tree, each once, above the threshold."""
    known = {_key(path): path for path in tree}
    found: dict[str, Reasoned] = {}
    for choice in choices:
        path = choice.path if choice.path in tree else known.get(_key(choice.path))
        relevance = choice.relevance if math.isfinite(choice.relevance) else 0.0
        if path is None or relevance <= _THRESHOLD:
            continue
        reason = one_line(choice.reason, _LONGEST_REASON)
        better = found.get(path)
        if better is None or better.relevance < relevance:
            found[path] = Reasoned(path, min(1.0, relevance), reason)
    return tuple(sorted(found.values(), key=lambda one: -one.relevance)[:_MOST])


def _key(path: str) -> str:
    """A path without what models add to it, or write in another case."""
    trimmed = unicodedata.normalize("NFC", path).strip().strip("/").removeprefix(f"{ROOT}/")
    return trimmed.casefold()
