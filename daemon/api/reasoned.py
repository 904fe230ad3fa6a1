"""The part of a recall that a model has: modes `llm` and `hybrid`."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import InvalidInput
from ..recall.recall import Mode
from ..shapes.common import Way
from ..shapes.recall import Expense
from ..store import tree_rows
from ..store.agent_store import AgentStore
from ..thinking.asking import Wish
from ..thinking.reasoning import Reasoning
from .calls import Call


class ReasonedPath(msgspec.Struct):
    """A category in which a model expects the answer, why, and the way to it from the root."""

    path: str
    relevance: float
    reason: str
    trace: tuple[str, ...]


class ByModel(msgspec.Struct):
    """What a model had a part in: `way` is `rule` where it had none, and `why` says why not."""

    way: Way
    tree: list[ReasonedPath]
    why: str | UnsetType = UNSET
    spent: Expense | UnsetType = UNSET


def check(call: Call, mode: Mode, endpoint: str | None) -> None:
    """Refuse an endpoint that nobody would ask, or that the caller may not have asked.

    Raises:
        InvalidInput: the mode has no model in it.
        Forbidden: who may only read may not have the daemon call others.
    """
    if endpoint is None:
        return
    call.services.gate.require(call.peer, call.agent, "write")
    if mode not in {"llm", "hybrid"}:
        raise InvalidInput(
            f"cannot ask 'llm_endpoint' in mode '{mode}'",
            field="llm_endpoint",
            hint="give mode llm or hybrid",
        )


async def reason(
    call: Call, store: AgentStore, question: str, mode: Mode, endpoint: str | None
) -> Reasoning | None:
    """Where a model expects the answer; None in modes without one.

    In mode `hybrid` it has `recall.hybrid_deadline_ms`, else `llm.timeouts.tree`.

    Raises:
        InvalidInput: the endpoint is no address.
    """
    if mode not in {"llm", "hybrid"}:
        return None
    tree = await store.read(tree_rows.load)
    wish = Wish(model=True, endpoint=endpoint)
    reasoner = call.services.thinking.reasoner
    if mode == "llm":
        return await reasoner.search(tree, question, wish)
    seconds = call.settings.recall.hybrid_deadline_ms / 1000
    return await reasoner.search_within(tree, question, wish, seconds)


def by_model(reasoning: Reasoning | None) -> ByModel | UnsetType:
    """What an answer says of it."""
    if reasoning is None:
        return UNSET
    return ByModel(
        way=reasoning.way,
        tree=[
            ReasonedPath(found.path, round(found.relevance, 3), found.reason, found.trace)
            for found in reasoning.found
        ],
        why=reasoning.why or UNSET,
        spent=reasoning.spent or UNSET,
    )
