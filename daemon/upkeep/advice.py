"""A model's part in upkeep, as upkeep sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..language.notes import NoteFact
from ..memory.tree_rebuild import TreeChange
from ..store.agent_store import AgentStore


class Advisor(Protocol):
    """What a model may be asked. It may be away at any time: then the rules do it alone.

    `endpoint` names a model to ask in place of the usual one. Every coroutine raises
    `ModelUnavailable` where no model says anything useful.
    """

    def available(self, purpose: str, endpoint: str | None) -> bool:
        """Whether there is a model to be asked for `ingest`, `merge` or `rebuild`."""
        ...

    async def operations(self, store: AgentStore, endpoint: str | None) -> Sequence[TreeChange]:
        """How the tree should be rebuilt; what makes no sense in it will be refused."""
        ...

    async def join_similar(self, store: AgentStore, endpoint: str | None) -> int:
        """Make one memory of each group of similar ones; return how many were merged."""
        ...

    async def read_note(
        self, store: AgentStore, text: str, headings: Mapping[str, str], endpoint: str | None
    ) -> Sequence[NoteFact]:
        """The facts of a daily note; `headings` says where its headings lead."""
        ...


def asked(advisor: Advisor | None, purpose: str, endpoint: str | None) -> Advisor | None:
    """The adviser, if there is a model that it can ask for the purpose."""
    if advisor is None or not advisor.available(purpose, endpoint):
        return None
    return advisor
