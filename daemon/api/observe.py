"""`/api/observe`: conversations as they happen, a turn or several at a time."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import InvalidInput
from ..memory import checks
from ..memory.scoring import Scoring
from ..shapes.common import Way
from ..shapes.recall import Expense
from ..store import conversations
from ..store.agent_store import AgentStore
from ..store.conversations import Conversation, Said
from ..thinking.asking import Wish
from ..thinking.extraction import Extracted
from .calls import Call, Reply, Route
from .views import MemoryView, memory_view

_NAME_CHARS: Final = 200
_ROLE_CHARS: Final = 32
_MOST_TURNS: Final = 500
_MOST_TOOLS: Final = 64
# What other tools call those who speak.
_ROLES: Final = {"human": "user", "ai": "assistant", "agent": "assistant", "bot": "assistant"}

Tools = tuple[str | dict[str, Any], ...]


class TurnBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One turn: `text` or `content`, who speaks, and when (seconds or ISO 8601; left out: now).

    `toolsUsed`, or `tools_used`, names what an agent used.
    """

    role: str
    text: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    actor: str = ""
    at: str | float | int | UnsetType = UNSET
    tools_used: Tools = ()
    toolsUsed: Tools = ()  # noqa: N815 - profClaw's name


class ObserveBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Some turns of a conversation, in their order; profClaw's names are understood as well.

    They are on the disk when the answer comes, and read after a pause (`observe` in the
    configuration). `end` says that the conversation is over. `wait` has them read at once, and
    what was kept of them answered; `llm` and `llm_endpoint` are as for distilling, and go with it.
    """

    conversation: str | UnsetType = UNSET
    conversationId: str | UnsetType = UNSET  # noqa: N815 - profClaw's name
    turns: tuple[TurnBody, ...] | UnsetType = UNSET
    messages: tuple[TurnBody, ...] | UnsetType = UNSET
    userId: str | None = None  # noqa: N815 - profClaw's name
    end: bool = False
    wait: bool = False
    llm: bool | None = None
    llm_endpoint: str | None = None


class ObserveAnswer(msgspec.Struct, kw_only=True):
    """How many turns wait to be read; with `wait` what was stored, and what was known already."""

    conversation: str
    turns: int
    buffered: int
    ended: bool
    stored: list[MemoryView] | UnsetType = UNSET
    known: list[str] | UnsetType = UNSET
    mode: Way | UnsetType = UNSET
    why: str | UnsetType = UNSET
    llm: list[Expense] | UnsetType = UNSET


async def observe(call: Call) -> Reply:
    """Buffer some turns, and have them read in a while, or at once."""
    body = await call.body(ObserveBody)
    name, said = _name(body), _said(call, body)
    if not body.wait and (body.llm is not None or body.llm_endpoint is not None):
        raise InvalidInput("'llm' and 'llm_endpoint' go with 'wait'", field="wait")
    async with call.store(create=True) as store:
        heard = await store.write(
            lambda tx: conversations.hear(tx, name, said, ended=body.end, writer=call.peer.name)
        )
        read: list[Extracted] | None = None
        left = heard
        if heard is not None and body.wait:
            read, left = await _read_now(call, store, heard, body)
        elif heard is not None:
            call.services.thinking.listener.heard(call.agent, heard)
        answer = ObserveAnswer(
            conversation=name,
            turns=len(said),
            buffered=0 if left is None else left.unread,
            ended=left is None or left.ended_at is not None,
        )
        if read is not None:
            _tell(answer, read, call.now, store.rules.scoring)
    return Reply(answer)


async def _read_now(
    call: Call, store: AgentStore, heard: Conversation, body: ObserveBody
) -> tuple[list[Extracted], Conversation | None]:
    listener = call.services.thinking.listener
    left: Conversation | None = heard
    try:
        wish = Wish(model=body.llm, endpoint=body.llm_endpoint)
        read = await listener.read_now(call.agent, store, heard, wish)
        left = await store.read(lambda db: conversations.find(db, heard.id))
    finally:
        # What was not read now is read later.
        if left is not None:
            listener.heard(call.agent, left)
    return read, left


def _tell(answer: ObserveAnswer, read: list[Extracted], now: float, scoring: Scoring) -> None:
    stored = [memory for one in read for memory in one.kept.stored]
    known = [memory for one in read for memory in one.kept.known]
    answer.stored = [memory_view(memory, now, scoring) for memory in stored]
    answer.known = list(dict.fromkeys(memory.id for memory in known))
    answer.mode = "llm" if any(one.way == "llm" for one in read) else "rule"
    answer.why = next((one.why for one in read if one.why), UNSET)
    answer.llm = [one.spent for one in read if one.spent is not None] or UNSET


def _name(body: ObserveBody) -> str:
    names = [n for n in (body.conversation, body.conversationId) if n is not UNSET]
    if len(names) != 1:
        raise InvalidInput("name the 'conversation', once", field="conversation")
    name = checks.check_short(str(names[0]), "conversation", _NAME_CHARS)
    if not name:
        raise InvalidInput("name the 'conversation': it is blank", field="conversation")
    return name


def _said(call: Call, body: ObserveBody) -> list[Said]:
    given = [(n, getattr(body, n)) for n in ("turns", "messages") if getattr(body, n) is not UNSET]
    if len(given) > 1 or (not given and not body.end):
        raise InvalidInput("give either 'turns' or 'messages'", field="turns")
    name, turns = given[0] if given else ("turns", ())
    if len(turns) > _MOST_TURNS or (not turns and not body.end):
        raise InvalidInput(f"give 1 to {_MOST_TURNS} turns (got {len(turns)})", field=name)
    user = checks.check_short(body.userId or "", "userId", _NAME_CHARS)
    return [_turn(call, turn, user, f"{name}[{at}]") for at, turn in enumerate(turns)]


def _turn(call: Call, turn: TurnBody, user: str, at: str) -> Said:
    if (turn.text is UNSET) == (turn.content is UNSET):
        raise InvalidInput("give each turn a 'text' or a 'content'", field=f"{at}.text")
    text = turn.content if turn.text is UNSET else turn.text
    assert isinstance(text, str)
    role = checks.check_short(turn.role, f"{at}.role", _ROLE_CHARS).lower()
    if not role:
        raise InvalidInput("give each turn a 'role'", field=f"{at}.role")
    role = _ROLES.get(role, role)
    actor = checks.check_short(turn.actor, f"{at}.actor", _NAME_CHARS)
    return Said(
        role=role,
        text=checks.check_text(text, call.settings.limits.max_text_bytes, field=f"{at}.text"),
        actor=actor or (user if role == "user" else ""),
        at=call.now if turn.at is UNSET else checks.check_time(turn.at, field=f"{at}.at"),
        tools=_tools(turn),
    )


def _tools(turn: TurnBody) -> tuple[str, ...]:
    names = (
        tool if isinstance(tool, str) else str(tool.get("name", ""))
        for tool in (*turn.tools_used, *turn.toolsUsed)
    )
    short = (checks.check_short(name, "tools_used", _NAME_CHARS) for name in names)
    return tuple(dict.fromkeys(name for name in short if name))[:_MOST_TOOLS]


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/observe",
        handler=observe,
        summary="Pass on turns of a conversation; what is worth remembering is kept",
        role="write",
        body=ObserveBody,
        answer=ObserveAnswer,
    ),
)
