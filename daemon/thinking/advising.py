"""Asks a model on behalf of upkeep."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

from ..language.notes import NoteFact
from ..memory.tree_rebuild import TreeChange
from ..store import tree_rows
from ..store.agent_store import AgentStore
from .model_or_rules import AskOptions, ModelOrRules
from .note_reading import read_by_model
from .similar_memories import join_similar
from .tree_rebuild import propose

_MOST_CATEGORIES: Final = 20


class Advice:
    """Asks a model about decisions of upkeep, which uses the rules without an answer.

    `endpoint` is a server to ask instead of the configured models. Every coroutine raises
    `ModelUnavailable` if no model answers usefully; what was merged before stays.

    Args:
        model: the model.
    """

    def __init__(self, model: ModelOrRules) -> None:
        self._model = model

    def available(self, purpose: str, endpoint: str | None) -> bool:
        """Whether a model is worth asking for `ingest`, `merge` or `rebuild`."""
        return self._model.is_asked(purpose, AskOptions(endpoint=endpoint))

    async def operations(self, store: AgentStore, endpoint: str | None) -> Sequence[TreeChange]:
        """The changes of the tree that a model proposes; invalid ones will be refused."""
        return await propose(store, self._model, AskOptions(endpoint=endpoint))

    async def join_similar(self, store: AgentStore, endpoint: str | None) -> int:
        """Merge each group of similar memories; return how many were merged."""
        return await join_similar(store, self._model, AskOptions(endpoint=endpoint))

    async def read_note(
        self, store: AgentStore, text: str, headings: Mapping[str, str], endpoint: str | None
    ) -> Sequence[NoteFact]:
        """The facts of a daily note; `headings` maps words of headings to categories."""
        categories = await store.read(_categories)
        options = AskOptions(endpoint=endpoint)
        return await read_by_model(text, categories, headings, self._model, options)


def asked(advice: Advice | None, purpose: str, endpoint: str | None) -> Advice | None:
    """The advice, if it has a model for the purpose."""
    if advice is None or not advice.available(purpose, endpoint):
        return None
    return advice


def _categories(db: sqlite3.Connection) -> list[str]:
    tree = tree_rows.load(db)
    full = sorted(tree, key=lambda path: (-tree[path].warm_count - tree[path].cold_count, path))
    return full[:_MOST_CATEGORIES]
