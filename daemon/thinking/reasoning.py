"""The tree search by reasoning as recall needs it: in time, or not at all."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ..errors import ModelUnavailable
from ..memory.tree_nodes import Tree
from ..recall.tree_search import Reasoned
from ..shapes.common import Way
from ..shapes.recall import Expense
from .asking import Mind, Wish
from .tree_search import search

_LATE: Final = "the model did not answer in time; asked again, its answer may be there at once"


class Reasoning(msgspec.Struct, frozen=True):
    """Which categories a model expects the answer in.

    Attributes:
        found: the most relevant first; none without a model.
        why: why no model answered, or "".
        spent: None where none did.
    """

    found: tuple[Reasoned, ...]
    way: Way
    why: str = ""
    spent: Expense | None = None


class Reasoner:
    """Searches trees by a model; a search that is late goes on for the next who asks the same.

    Args:
        mind: what is asked.
    """

    def __init__(self, mind: Mind) -> None:
        self._mind = mind
        self._late: set[asyncio.Task[Reasoning]] = set()

    async def search(self, tree: Tree, question: str, wish: Wish) -> Reasoning:
        """Ask, for as long as the wish or the configuration allows.

        Raises:
            InvalidInput: the endpoint that is wished for is no address.
        """
        if not tree:
            return Reasoning((), "rule", "the tree has no categories yet")
        if not question.strip():
            return Reasoning((), "rule", "there is no question")
        try:
            searched = await search(tree, question, self._mind, wish)
        except ModelUnavailable as error:
            return Reasoning((), "rule", error.in_full)
        return Reasoning(searched.found, "llm", "", searched.spent)

    async def search_within(
        self, tree: Tree, question: str, wish: Wish, seconds: float
    ) -> Reasoning:
        """Ask, but wait no longer than so many seconds; the answer may still come behind them.

        Raises:
            InvalidInput: the endpoint that is wished for is no address.
        """
        task = asyncio.create_task(self.search(tree, question, wish), name="tree search")
        self._late.add(task)
        task.add_done_callback(self._forget)
        done, _ = await asyncio.wait({task}, timeout=seconds)
        return task.result() if done else Reasoning((), "rule", _LATE)

    async def close(self) -> None:
        """Give up what is under way."""
        tasks = list(self._late)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, task: asyncio.Task[Reasoning]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            # Nobody may be there any more to be told of a fault.
            task.exception()
