"""The interface to a model for upkeep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..language.notes import NoteFact
from ..memory.tree_rebuild import TreeChange
from ..store.agent_store import AgentStore


class Advisor(Protocol):
    """A model that upkeep may ask. Without an answer, upkeep uses the rules.

    `endpoint` is a server to ask instead of the configured models. Every coroutine raises
    `ModelUnavailable` if no model answers usefully.
    """

    def available(self, purpose: str, endpoint: str | None) -> bool:
        """Whether a model can be asked for `ingest`, `merge` or `rebuild`."""
        ...

    async def operations(self, store: AgentStore, endpoint: str | None) -> Sequence[TreeChange]:
        """The changes of the tree that the model proposes; invalid ones are refused."""
        ...

    async def join_similar(self, store: AgentStore, endpoint: str | None) -> int:
        """Merge each group of similar memories; return how many were merged."""
        ...

    async def read_note(
        self, store: AgentStore, text: str, headings: Mapping[str, str], endpoint: str | None
    ) -> Sequence[NoteFact]:
        """The facts of a daily note; `headings` maps words of headings to categories."""
        ...


def asked(advisor: Advisor | None, purpose: str, endpoint: str | None) -> Advisor | None:
    """The advisor, if it has a model for the purpose."""
    if advisor is None or not advisor.available(purpose, endpoint):
        return None
    return advisor
