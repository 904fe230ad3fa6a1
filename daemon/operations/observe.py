"""Conversations as they happen, a turn or several at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..errors import InvalidInput
from ..language.extraction import without_recalled
from ..language.secrets import clear
from ..memory import checks
from ..memory.scoring import Scoring
from ..shapes.observe import ObserveBody, Observed, TurnBody
from ..store import conversations
from ..store.agent_store import AgentStore
from ..store.conversations import Conversation, Said
from ..thinking.extraction import Extracted
from ..thinking.model_or_rules import AskOptions
from .operation import operation
from .scope import Scope
from .views import memory_view

_NAME_CHARS: Final = 200
_ROLE_CHARS: Final = 32
_MOST_TURNS: Final = 500
_MOST_TOOLS: Final = 64
# Names of the roles in other tools.
_ROLES: Final = {"human": "user", "ai": "assistant", "agent": "assistant", "bot": "assistant"}


async def observe(scope: Scope, body: ObserveBody) -> Observed:
    """Report turns of a conversation; what is worth remembering is stored."""
    name = _name(body)
    said, skipped = _said(scope, body)
    if not body.wait and (body.llm is not None or body.llm_endpoint is not None):
        raise InvalidInput("'llm' and 'llm_endpoint' go with 'wait'", field="wait")
    async with scope.store(create=True) as store:
        heard = await store.write(
            lambda tx: conversations.hear(tx, name, said, ended=body.end, writer=scope.peer.name)
        )
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
            skipped=skipped or UNSET,
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


def _name(body: ObserveBody) -> str:
    names = [n for n in (body.conversation, body.conversationId) if n is not UNSET]
    if len(names) != 1:
        raise InvalidInput("name the 'conversation', once", field="conversation")
    name = checks.check_short(str(names[0]), "conversation", _NAME_CHARS)
    if not name:
        raise InvalidInput("name the 'conversation': it is blank", field="conversation")
    return name


def _said(scope: Scope, body: ObserveBody) -> tuple[list[Said], int]:
    """What is said, and how many messages could not be read."""
    given = [(n, getattr(body, n)) for n in ("turns", "messages") if getattr(body, n) is not UNSET]
    if len(given) > 1 or (not given and not body.end):
        raise InvalidInput("give either 'turns' or 'messages'", field="turns")
    name, turns = given[0] if given else ("turns", ())
    if len(turns) > _MOST_TURNS or (not turns and not body.end):
        raise InvalidInput(f"give 1 to {_MOST_TURNS} turns (got {len(turns)})", field=name)
    user = checks.check_short(body.userId or "", "userId", _NAME_CHARS)
    if name == "messages":
        return _messages(scope, turns, user)
    said = [_turn(scope, turn, user, f"turns[{at}]") for at, turn in enumerate(turns)]
    return [one for one in said if one.text], 0


def _messages(scope: Scope, messages: Sequence[Any], user: str) -> tuple[list[Said], int]:
    """The messages of a provider's interface that say something, and how many are none."""
    said: list[Said] = []
    skipped = 0
    for message in messages:
        try:
            turn = _turn_of(message)
            one = None if turn is None else _turn(scope, turn, user, "messages")
        except (InvalidInput, msgspec.ValidationError):
            skipped += 1
            continue
        if one is not None and one.text:
            said.append(one)
    return said, skipped


def _turn_of(message: Any) -> TurnBody | None:
    """A message as a turn; None where it only calls tools."""
    if not isinstance(message, dict):
        raise InvalidInput("is not a message", field="messages")
    content = message.get("content", message.get("text"))
    parts = content if isinstance(content, list) else [content]
    used = [message.get(name) or [] for name in ("tools_used", "toolsUsed", "tool_calls")]
    texts: list[str] = []
    for part in parts:
        kind = part.get("type", "text") if isinstance(part, dict) else "text"
        text = part.get("text") if isinstance(part, dict) else part
        if kind in {"text", "input_text", "output_text"} and isinstance(text, str):
            texts.append(text)
        elif kind == "tool_use":
            used.append([part])
    silent = content is None or isinstance(content, list) or content == ""
    if silent and not any(text.strip() for text in texts):
        return None
    fields = {
        "role": message.get("role"),
        "text": "\n".join(texts),
        "actor": message.get("actor") or message.get("name") or "",
        "tools_used": [tool for given in used if isinstance(given, list) for tool in given],
    }
    if message.get("at") is not None:
        fields["at"] = message["at"]
    return msgspec.convert(fields, TurnBody)


def _turn(scope: Scope, turn: TurnBody, user: str, at: str) -> Said:
    if (turn.text is UNSET) == (turn.content is UNSET):
        raise InvalidInput("give each turn a 'text' or a 'content'", field=f"{at}.text")
    text = turn.content if turn.text is UNSET else turn.text
    assert isinstance(text, str)
    role = checks.check_short(turn.role, f"{at}.role", _ROLE_CHARS).lower()
    if not role:
        raise InvalidInput("give each turn a 'role'", field=f"{at}.role")
    role = _ROLES.get(role, role)
    actor = checks.check_short(turn.actor, f"{at}.actor", _NAME_CHARS)
    text = checks.check_text(text, scope.settings.limits.max_text_bytes, field=f"{at}.text")
    return Said(
        role=role,
        text=clear(without_recalled(text)).text,
        actor=actor or (user if role == "user" else ""),
        at=scope.now if turn.at is UNSET else checks.check_time(turn.at, field=f"{at}.at"),
        tools=_tools(turn),
    )


def _tools(turn: TurnBody) -> tuple[str, ...]:
    names = (
        tool if isinstance(tool, str) else _tool_name(tool)
        for tool in (*turn.tools_used, *turn.toolsUsed)
    )
    short = (checks.check_short(name, "tools_used", _NAME_CHARS) for name in names)
    return tuple(dict.fromkeys(name for name in short if name))[:_MOST_TOOLS]


def _tool_name(tool: dict[str, Any]) -> str:
    function = tool.get("function")
    return str((function if isinstance(function, dict) else tool).get("name") or "")


OPERATIONS: Final = (operation("POST", "/api/observe", observe, role="write"),)
