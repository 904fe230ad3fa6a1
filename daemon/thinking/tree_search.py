"""Finds the categories in which a model expects the answer to a question, within a time limit."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ..errors import ModelUnavailable
from ..language.distilling import core_summary
from ..llm.model import Part
from ..llm.replies import one_line
from ..memory.records import Distilled
from ..memory.tree_nodes import ROOT, Tree
from ..memory.tree_text import prompt, said_of
from ..recall.tree_search import Reasoned
from ..shapes.common import Way
from ..shapes.recall import Expense
from ..store import tree_rows
from .model_or_rules import AskOptions, ModelOrRules, spent_on

_MOST: Final = 5
# Choices up to this relevance are guesses.
_THRESHOLD: Final = 0.3
_LONGEST_QUESTION: Final = 2_000
_LONGEST_REASON: Final = 300
# The number of memories in place of a description.
_CORES: Final = 3
_LATE: Final = "the model did not answer in time; asked again, its answer may be there at once"


class Choice(msgspec.Struct, frozen=True):
    """A category that a model names."""

    path: str
    relevance: float
    reason: str = ""


class Reasoning(msgspec.Struct, frozen=True):
    """The categories in which a model expects the answer.

    Attributes:
        found: most relevant first; empty without an answer.
        why: why no model answered, or "".
        spent: the expense; None if no model answered.
    """

    found: tuple[Reasoned, ...]
    way: Way
    why: str = ""
    spent: Expense | None = None


class Reasoner:
    """Searches trees with a model; a late search continues, so that a repeated question finds it.

    Args:
        model: the model.
    """

    def __init__(self, model: ModelOrRules) -> None:
        self._model = model
        self._late: set[asyncio.Task[Reasoning]] = set()

    async def search(self, tree: Tree, question: str, options: AskOptions) -> Reasoning:
        """Ask, within the time of the options or the configuration.

        Raises:
            InvalidInput: the endpoint is not an address.
        """
        if not tree:
            return Reasoning((), "rule", "the tree has no categories yet")
        if not question.strip():
            return Reasoning((), "rule", "the question is empty")
        # Unchanged parts come first, so that a provider can cache them.
        parts = (
            Part("tree", prompt(tree), stable=True),
            Part("question", question[:_LONGEST_QUESTION]),
        )
        asked = self._model.question("tree", *parts)
        try:
            reply = await self._model.ask(asked, list[Choice], options)
        except ModelUnavailable as error:
            return Reasoning((), "rule", error.in_full)
        return Reasoning(chosen(reply.value, tree), "llm", "", spent_on(reply))

    async def search_within(
        self, tree: Tree, question: str, options: AskOptions, seconds: float
    ) -> Reasoning:
        """Ask, but wait at most `seconds`; a later answer goes into the cache.

        Raises:
            InvalidInput: the endpoint is not an address.
        """
        task = asyncio.create_task(self.search(tree, question, options), name="tree search")
        self._late.add(task)
        task.add_done_callback(self._forget)
        done, _ = await asyncio.wait({task}, timeout=seconds)
        return task.result() if done else Reasoning((), "rule", _LATE)

    async def close(self) -> None:
        """Cancel running searches."""
        tasks = list(self._late)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, task: asyncio.Task[Reasoning]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            # Marks the exception as retrieved.
            task.exception()


def described(db: sqlite3.Connection) -> Tree:
    """The tree; a category without a real description has its newest memories as one."""
    tree = tree_rows.load(db)
    bare = [path for path, node in tree.items() if not said_of(path, node)]
    return tree | {path: replace(tree[path], desc=_newest(db, path)) for path in bare}


def chosen(choices: Sequence[Choice], tree: Tree) -> tuple[Reasoned, ...]:
    """The valid choices: categories of the tree, each once, above the threshold."""
    # The last level of a path is enough if it is unique.
    names = Counter(_name(path) for path in tree)
    known = {_name(path): path for path in tree if names[_name(path)] == 1}
    known |= {_key(path): path for path in tree}
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


def _newest(db: sqlite3.Connection, path: str) -> str:
    rows = db.execute(
        "SELECT text FROM memories WHERE category = ? AND merged_into IS NULL"
        " AND superseded_by IS NULL ORDER BY created_at DESC, id LIMIT ?",
        (path, _CORES),
    )
    return "; ".join(core_summary(Distilled(fact=one_line(text))) for (text,) in rows)


def _name(path: str) -> str:
    return _key(path).rpartition("/")[2]


def _key(path: str) -> str:
    """A path without the additions and the case that models may use."""
    trimmed = unicodedata.normalize("NFC", path).strip().strip("/").removeprefix(f"{ROOT}/")
    return trimmed.casefold()
