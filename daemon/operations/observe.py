"""Conversations as they happen, a turn or several at a time."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from ..errors import InvalidInput
from ..memory.scoring import Scoring
from ..shapes.observe import ObserveBody, Observed, Talk, TurnsStored
from ..store import conversations
from ..store.agent_store import AgentStore
from ..store.conversations import Conversation
from ..store.transaction import Transaction
from ..thinking.extraction import Extracted
from ..thinking.model_or_rules import AskOptions
from .operation import operation
from .scope import Scope
from .talk import reported, store_turns
from .views import memory_view


async def observe(scope: Scope, body: ObserveBody) -> Observed:
    """Report turns of a conversation; what is worth remembering is stored."""
    told = reported(scope, body, ended=body.end)
    name, said = told.conversation, told.said
    if not body.wait and (body.llm is not None or body.llm_endpoint is not None):
        raise InvalidInput("'llm' and 'llm_endpoint' go with 'wait'", field="wait")

    def hear(tx: Transaction) -> Conversation | None:
        if body.store_turns:
            store_turns(tx, name, said)
        return conversations.hear(tx, name, said, ended=body.end, writer=scope.peer.name)

    async with scope.store(create=True) as store:
        heard = await store.write(hear)
        read: list[Extracted] | None = None
        left = heard
        if heard is not None and body.wait:
            read, left = await _read_now(scope, store, heard, body)
        elif heard is not None:
            scope.daemon.thinking.listener.heard(scope.agent, heard)
        answer = Observed(
            conversation=name,
            turns=len(said),
            buffered=0 if left is None else left.unread,
            ended=left is None or left.ended_at is not None,
            skipped=told.skipped or UNSET,
        )
        if read is not None:
            _tell(answer, read, scope.now, store.rules.scoring)
    return answer


async def _read_now(
    scope: Scope, store: AgentStore, heard: Conversation, body: ObserveBody
) -> tuple[list[Extracted], Conversation | None]:
    listener = scope.daemon.thinking.listener
    left: Conversation | None = heard
    try:
        options = AskOptions(model=body.llm, endpoint=body.llm_endpoint)
        read = await listener.read_now(scope.agent, store, heard, options)
        left = await store.read(lambda db: conversations.find(db, heard.id))
    finally:
        # Turns that were not read now are read later.
        if left is not None:
            listener.heard(scope.agent, left)
    return read, left


def _tell(answer: Observed, read: list[Extracted], now: float, scoring: Scoring) -> None:
    stored = [memory for one in read for memory in one.kept.stored]
    known = [memory for one in read for memory in one.kept.known]
    answer.stored = [memory_view(memory, now, scoring) for memory in stored]
    answer.known = list(dict.fromkeys(memory.id for memory in known))
    answer.mode = "llm" if any(one.way == "llm" for one in read) else "rule"
    answer.why = next((one.why for one in read if one.why), UNSET)
    answer.llm = [one.spent for one in read if one.spent is not None] or UNSET


async def turns(scope: Scope, body: Talk) -> TurnsStored:
    """Store the turns of a conversation as they are, in their order."""
    told = reported(scope, body)
    async with scope.store(create=True) as store:
        stored = await store.write(lambda tx: store_turns(tx, told.conversation, told.said))
        scoring = store.rules.scoring
    views = [memory_view(memory, scope.now, scoring) for memory in stored]
    return TurnsStored(told.conversation, views, told.skipped or UNSET)


OPERATIONS: Final = (
    operation("POST", "/api/observe", observe, role="write"),
    operation("POST", "/api/turns", turns, role="write", statuses=(201,)),
)
