"""Conversations as callers report them: turns, messages of model providers, or a transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from ..errors import InvalidInput
from ..language.names import is_given_name
from ..language.secrets import clear_after, clear_turns
from ..language.speech import UNRECORDED, is_unrecorded, role_of, utterances, without_recalled
from ..memory import checks
from ..memory.messages import known_turns, spoken_text
from ..memory.metadata import extract
from ..memory.records import OBSERVED, USER_STATED, Memory, is_outside
from ..memory.scoring import default_importance
from ..schemas import conversations as schemas
from ..store.agent_store import AgentStore
from ..store.database.transaction import Transaction
from ..store.records import conversations, memories
from ..store.records.conversations import Conversation, IncomingTurn
from ..tasks.extraction import CATEGORY, Extracted
from ..tasks.model_or_rules import AskOptions
from .operation import Operation, Scope
from .views import memory_view, superseded_ids

_NAME_CHARS: Final = 200
_ROLE_CHARS: Final = 32
_MOST_TURNS: Final = 500
_MOST_TOOLS: Final = 64
_EVENT: Final = "turn"
_UNSAID: Final = frozenset({"system", "tool"})


@Operation("POST", "/api/observe", role="write")
async def observe(scope: Scope, body: schemas.ObserveBody) -> schemas.Observed:
    """Report turns of a conversation; what is worth remembering is stored."""
    report = await reported(scope, body, ended=body.end)
    name, turns = report.conversation, report.turns
    if not body.wait and (body.llm is not None or body.llm_endpoint is not None):
        raise InvalidInput("'llm' and 'llm_endpoint' go with 'wait'", field="wait")

    def buffer(tx: Transaction) -> Conversation | None:
        new = _after(conversations.last_buffered(tx.db, name), turns)
        return conversations.buffer_turns(tx, name, new, ended=body.end, writer=scope.peer.name)

    async with scope.store(create=True) as store:
        conversation = await store.write(buffer)
        read: list[Extracted] = []
        left = conversation
        if conversation is not None and body.wait:
            read, left = await _read_now(scope, store, conversation, body)
        elif conversation is not None:
            scope.daemon.thinking.worker.on_turns(scope.agent, conversation)
        answer = schemas.Observed(
            conversation=name,
            turns=len(turns),
            buffered=0 if left is None else left.unread,
            ended=left is None or left.ended_at is not None,
            skipped=report.skipped or UNSET,
        )
        if body.wait:
            _add_result(scope, answer, read)
    return answer


async def _read_now(
    scope: Scope, store: AgentStore, conversation: Conversation, body: schemas.ObserveBody
) -> tuple[list[Extracted], Conversation | None]:
    worker = scope.daemon.thinking.worker
    left: Conversation | None = conversation
    try:
        options = AskOptions(model=body.llm, endpoint=body.llm_endpoint)
        read = await worker.read_now(scope.agent, store, conversation, options)
        left = await store.read(lambda db: conversations.find(db, conversation.id))
    finally:
        # Turns not read now are read later.
        if left is not None:
            worker.on_turns(scope.agent, left)
    return read, left


def _add_result(scope: Scope, answer: schemas.Observed, read: list[Extracted]) -> None:
    answer.stored = [
        memory_view(
            scope,
            memory,
            supersedes=superseded_ids(extracted.memories.superseded.get(memory.id, ())),
        )
        for extracted in read
        for memory in extracted.memories.stored
    ]
    answer.known = list(
        dict.fromkeys(memory.id for extracted in read for memory in extracted.memories.known)
    )
    answer.mode = "llm" if any(extracted.method == "llm" for extracted in read) else "rule"
    answer.why = next((extracted.why for extracted in read if extracted.why), UNSET)
    answer.llm = [extracted.spent for extracted in read if extracted.spent is not None] or UNSET


@Operation("POST", "/api/turns", role="write", statuses=(201,))
async def turns(scope: Scope, body: schemas.Talk) -> schemas.TurnsStored:
    """Store the turns of a conversation as they are, in their order, each once."""
    report = await reported(scope, body)
    stored = await scope.write(
        lambda tx: store_turns(tx, report.conversation, report.turns), create=True
    )
    views = [memory_view(scope, memory) for memory in stored]
    spoken = sum(turn.role not in _UNSAID for turn in report.turns)
    return schemas.TurnsStored(
        report.conversation, views, spoken - len(views), report.skipped or UNSET
    )


class Reported(msgspec.Struct, frozen=True):
    """The reported turns, in order, and the messages that could not be read."""

    conversation: str
    turns: list[IncomingTurn]
    skipped: list[schemas.SkippedMessage]


async def reported(scope: Scope, body: schemas.Talk, *, ended: bool = False) -> Reported:
    """The turns of a request, else `InvalidInput`; possibly none if the conversation has `ended`.

    Secrets are replaced, and text that a host recalled is left out.
    """
    name = checks.check_short(body.conversation, "conversation", _NAME_CHARS)
    if not name:
        raise InvalidInput("name the 'conversation': it is blank", field="conversation")
    fields = ("turns", "messages", "text")
    named = [field for field in fields if getattr(body, field) is not UNSET]
    if len(named) > 1 or (not named and not ended):
        raise InvalidInput("give either 'turns', 'messages' or 'text'", field="turns")
    user = checks.check_short(body.user, "user", _NAME_CHARS)
    field = named[0] if named else "turns"
    turns: Sequence[Any] = getattr(body, field) if named else ()
    if isinstance(turns, str):
        # The turns of lines such as "Ada: I like tea"; a text without speakers is one turn
        roles = {"agent": "assistant", "person": "user", "": "user"}
        turns = [
            schemas.TurnBody(
                role=roles.get(utterance.role, utterance.role),
                text=utterance.text,
                actor=utterance.speaker,
            )
            for utterance in utterances(turns)
        ]
    if len(turns) > _MOST_TURNS or (not turns and not ended):
        raise InvalidInput(
            f"give 1 to {_MOST_TURNS} turns (got {len(turns)})",
            field=field,
            hint="send a longer conversation in parts, one after the other" if turns else None,
        )
    skipped: list[schemas.SkippedMessage] = []
    if field == "messages":
        incoming, skipped = _messages(scope, turns, user)
    elif len({turn.position is UNSET for turn in turns}) > 1:
        raise InvalidInput(
            "give each turn a 'position', or none of them", field=f"{field}.position"
        )
    else:
        incoming = [_turn(scope, turn, user, f"turns[{at}]") for at, turn in enumerate(turns)]
    return Reported(name, await asyncio.to_thread(_cleared, incoming), skipped)


def _cleared(turns: Sequence[IncomingTurn]) -> list[IncomingTurn]:
    """The turns that say something, without secrets and what is not to be remembered."""
    texts = clear_turns(
        UNRECORDED if turn.role == "user" and is_unrecorded(turn.text) else turn.text
        for turn in turns
    )
    cleared = (replace(turn, text=text) for turn, text in zip(turns, texts, strict=True))
    return [turn for turn in cleared if turn.text]


def _after(before: str, turns: Sequence[IncomingTurn]) -> list[IncomingTurn]:
    """Turns that follow the text of another, without the secret that it names."""
    texts = clear_after(before, [turn.text for turn in turns])
    return [replace(turn, text=text) for turn, text in zip(turns, texts, strict=True)]


def store_turns(tx: Transaction, conversation: str, turns: Sequence[IncomingTurn]) -> list[Memory]:
    """Store the new turns of people and agents.

    A turn with a position is new if none was stored at it. The others follow those stored, once
    the known ones at their beginning are left out.
    """
    spoken = [turn for turn in turns if turn.role not in _UNSAID]
    if spoken and spoken[0].position is not None:
        before = conversations.stored_at(tx.db, conversation, spoken[0].position - 1)
        return [
            _store_turn(tx, conversation, turn, turn.position)
            for turn in _after(before, spoken)
            if turn.position is not None
            and not conversations.is_stored(tx, conversation, turn.position)
        ]
    stored, end = conversations.last_turns(tx, conversation, _MOST_TURNS)
    known = known_turns(stored, [(turn.speaker, turn.text) for turn in spoken])
    last = stored[-1] if stored and not known else None
    return [
        _store_turn(tx, conversation, turn, position)
        for position, turn in enumerate(_after(last[1] if last else "", spoken[known:]), end)
    ]


def _store_turn(tx: Transaction, conversation: str, turn: IncomingTurn, position: int) -> Memory:
    memory = Memory(
        id=conversations.turn_id(tx, conversation, position),
        text=turn.text,
        type="episodic",
        event=_EVENT,
        category=CATEGORY,
        importance=default_importance(_EVENT),
        source=USER_STATED if turn.role == "user" else OBSERVED,
        actor=turn.speaker,
        group=conversation,
        position=position,
        metadata=extract(turn.text),
        created_at=turn.at,
        updated_at=tx.now,
        writer=tx.writer,
    )
    return memories.insert(tx, memory)


def _messages(
    scope: Scope, messages: Sequence[Any], user: str
) -> tuple[list[IncomingTurn], list[schemas.SkippedMessage]]:
    turns: list[IncomingTurn] = []
    skipped: list[schemas.SkippedMessage] = []
    for at, message in enumerate(messages):
        try:
            turn = _turn_of(message)
            spoken = None if turn is None else _turn(scope, turn, user, "message")
        except InvalidInput as error:
            skipped.append(schemas.SkippedMessage(at, error.message))
        except msgspec.ValidationError as error:
            skipped.append(schemas.SkippedMessage(at, str(error)))
        else:
            if spoken is not None and spoken.text:
                turns.append(spoken)
    return turns, skipped


def _turn_of(message: Any) -> schemas.TurnBody | None:
    """A message as a turn; None if it says nothing, such as a tool call."""
    if not isinstance(message, dict):
        raise InvalidInput("a message must be an object")
    used = [message.get(name) or [] for name in ("tools_used", "toolsUsed", "tool_calls")]
    names = [name for name in ("content", "text", "parts") if name in message]
    if "role" in message and not names and not any(used) and "function_call" not in message:
        raise InvalidInput("a message must have a 'content'")
    content = message[names[0]] if names else None
    if not isinstance(content, str | list | None):
        raise InvalidInput(f"'{names[0]}' must be a string, a list of parts or null")
    parts = content if isinstance(content, list) else [content]
    used += [[part] for part in parts if isinstance(part, dict) and part.get("type") == "tool_use"]
    text = spoken_text(content)
    if not text.strip():
        return None
    fields = {
        "role": message.get("role"),
        "text": text,
        "actor": message.get("actor") or message.get("name") or "",
        "tools_used": [tool for tools in used if isinstance(tools, list) for tool in tools],
    }
    if message.get("at") is not None:
        fields["at"] = message["at"]
    return msgspec.convert(fields, schemas.TurnBody)


def _turn(scope: Scope, turn: schemas.TurnBody, user: str, at: str) -> IncomingTurn:
    if (turn.text is UNSET) == (turn.content is UNSET):
        raise InvalidInput("give each turn a 'text' or a 'content'", field=f"{at}.text")
    text = turn.content if turn.text is UNSET else turn.text
    assert isinstance(text, str)
    speaker = checks.check_short(turn.role, f"{at}.role", _ROLE_CHARS)
    if not speaker:
        raise InvalidInput("give each turn a 'role'", field=f"{at}.role")
    role: str = role_of(speaker)
    actor = checks.check_short(turn.actor, f"{at}.actor", _NAME_CHARS)
    if role == "person":
        # A word that is no role may be a speaker's name; else no person is known to have said it.
        actor = actor or (speaker if is_given_name(speaker) else "")
        role = "user" if actor and not is_outside(speaker) else "tool"
    elif role == "agent":
        role = "assistant"
    text = checks.check_text(text, scope.settings.limits.max_text_bytes, field=f"{at}.text")
    text = without_recalled(text)
    if not actor and role == "user":
        actor, text = _labelled(text)
    return IncomingTurn(
        role=role,
        text=text,
        actor=actor or (user if role == "user" else ""),
        at=scope.now if turn.at is UNSET else checks.check_time(turn.at, field=f"{at}.at"),
        tools=_tools(turn),
        position=None if turn.position is UNSET else turn.position,
    )


def _labelled(text: str) -> tuple[str, str]:
    """The speaker of "Ada: I like tea", or "", and the rest."""
    head = text[:_NAME_CHARS].partition("\n")[0]
    first = utterances(head)[:1] if ":" in head or "：" in head else ()
    if not first or first[0].role != "person" or not head.endswith(first[0].text):
        return "", text
    rest = text[len(head) - len(first[0].text) :]
    return first[0].speaker, rest


def _tools(turn: schemas.TurnBody) -> tuple[str, ...]:
    names = (tool if isinstance(tool, str) else _tool_name(tool) for tool in turn.tools_used)
    short = (checks.check_short(name, "tools_used", _NAME_CHARS) for name in names)
    return tuple(dict.fromkeys(name for name in short if name))[:_MOST_TOOLS]


def _tool_name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function")
    return str((function if isinstance(function, Mapping) else tool).get("name") or "")
