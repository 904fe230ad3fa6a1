"""Extracts what is worth remembering from the turns of a conversation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import count, takewhile
from typing import Final, get_args

import msgspec

from ..language.cues import category_of, is_health, is_injected, is_lasting
from ..language.extraction.extraction import (
    HEALTHY,
    NAMED,
    STANDS,
    Observation,
    extract_turns,
    profile_of,
)
from ..language.names import Mention, MentionedRelation
from ..language.sentences import sentences
from ..language.speech import is_command, own_words, without_cited
from ..llm.model import Part
from ..llm.replies import one_line, one_of, share_of, short_list
from ..memory.records import (
    DEFAULT_EVENT,
    INFERRED,
    OBSERVED,
    UNKNOWN_TYPE,
    USER_STATED,
    EntityType,
    Type,
)
from ..memory.scoring import IMPORTANCE_BY_EVENT, default_importance
from ..store.records.conversations import BufferedTurn, Conversation
from .model_or_rules import AskOptions, Derived, ModelOrRules

# ScalyClaw's rule: shorter turns and commands are skipped.
_LEAST_CHARS: Final = 20
_LONGEST_TURN: Final = 4_000
_LEAST_TEXT: Final = 8
_LONGEST_TEXT: Final = 2_000
_SHORT: Final = 120
_MOST: Final = 24
# ScalyClaw's; doubled for several conversations.
_REPLY_TOKENS: Final = 2_048
_MOST_TAGS: Final = 8
_TAG_CHARS: Final = 60
_MOST_ENTITIES: Final = 16
_TYPES: Final = frozenset(get_args(Type))
# Roles that are not speakers.
_UNSAID: Final = frozenset({"system", "developer", "tool", "function"})
_NAMES: Final = frozenset({"name", "preferred_name", "agent_name"})


class RelationReply(msgspec.Struct, frozen=True):
    """A relation in a model's reply."""

    relation: str
    target: str


class EntityReply(msgspec.Struct, frozen=True):
    """An entity in a model's reply."""

    name: str
    type: str = ""
    relations: tuple[RelationReply, ...] = ()


class ObservationReply(msgspec.Struct, frozen=True):
    """One observation in a model's reply; see `prompts/observe.txt`."""

    text: str
    type: str = "semantic"
    event: str = DEFAULT_EVENT
    subject: str = ""
    tags: tuple[str, ...] = ()
    importance: float | None = None
    source: str = ""
    turn: int | None = None
    replaces: int | None = None
    profile: str = ""
    value: str = ""
    entities: tuple[EntityReply, ...] = ()


class UnreadTurns(msgspec.Struct, frozen=True):
    """Consecutive turns of a conversation, and what was kept of it before."""

    conversation: Conversation
    turns: list[BufferedTurn]
    earlier: dict[str, str] = {}  # the texts of earlier memories, oldest first, with their ids


async def observe(
    talks: Sequence[UnreadTurns],
    known: Sequence[str],
    model: ModelOrRules,
    options: AskOptions,
    today: dt.date,
) -> Derived[list[list[Observation]]]:
    """What is worth remembering of each conversation, by at most one question to a model.

    `known` are existing memories that they may repeat or correct; `today` is the day that
    "tomorrow" is relative to.
    """
    read = [[_plain(turn) for turn in talk.turns if is_worth_reading(turn)] for talk in talks]
    numbers = count()
    numbered = [{next(numbers): turn for turn in turns} for turns in read]
    parts = (
        Part("day", f"The conversation takes place on {today:%A}, {today}.", quoted=False),
        Part(
            "known already",
            "\n".join(f"[{number}] {one_line(text)}" for number, text in enumerate(known, 1))
            or "nothing",
        ),
        *(
            Part("conversation", "\n".join(line_of(turn, n) for n, turn in turns.items()))
            for turns in numbered
            if turns
        ),
    )

    async def by_rules() -> list[list[Observation]]:
        return [
            await model.rules.run(
                sum(len(turn.text) for turn in talk.turns),
                extract_turns,
                [*talk.turns],
                list(talk.earlier),
            )
            for talk in talks
        ]

    return await model.think(
        options,
        model.question("observe", *parts, max_tokens=_REPLY_TOKENS * min(2, len(talks))),
        list[ObservationReply],
        lambda replies: observed(replies, numbered, known),
        by_rules,
    )


def options_for(
    talks: Sequence[UnreadTurns], model: ModelOrRules, options: AskOptions
) -> AskOptions:
    """A model is only asked if a user says something, and it is long enough."""
    read = [turn for talk in talks for turn in talk.turns if is_worth_reading(turn)]
    if not any(turn.role == "user" for turn in read):
        return AskOptions(model=False)
    return model.for_text(options, sum(len(turn.text) for turn in read))


def is_worth_reading(turn: BufferedTurn) -> bool:
    """Whether a turn may contain a fact: it is said, and not just a nod or a command."""
    text = own_turn(turn).text.strip()
    is_long = len(text) >= _LEAST_CHARS or is_lasting(text)
    return is_long and turn.role not in _UNSAID and not is_command(text)


def line_of(turn: BufferedTurn, number: int | None = None) -> str:
    """A turn as a line for a model: number, speaker, tools and text."""
    who = f"{turn.actor} ({turn.role})" if turn.actor else turn.role
    used = f" [used {', '.join(turn.tools)}]" if turn.tools else ""
    number = turn.position if number is None else number
    return f"[{number}] {who}{used}: {turn.text.strip()[:_LONGEST_TURN]}"


def own_turn(turn: BufferedTurn) -> BufferedTurn:
    """A user's turn without what it only frames."""
    own = own_words(turn.text) if turn.role == "user" else turn.text
    return turn if own == turn.text else msgspec.structs.replace(turn, text=own)


def _plain(turn: BufferedTurn) -> BufferedTurn:
    """A turn, cut before an instruction to the model, and before what a user only frames."""
    turn = own_turn(turn)
    if not is_injected(turn.text):
        return turn
    trusted = takewhile(lambda sentence: not is_injected(sentence), sentences(turn.text))
    return msgspec.structs.replace(turn, text=" ".join(trusted))


def observed(
    replies: Sequence[ObservationReply],
    numbered: Sequence[dict[int, BufferedTurn]],
    known: Sequence[str] = (),
) -> list[list[Observation]]:
    """A model's observations within the limits of a memory, by conversation.

    `numbered` are the turns of each conversation by the numbers given to the model, `known` the
    memories given to it, in order.
    """
    observations: list[list[Observation]] = [[] for _ in numbered]
    # The first observation of a turn gets the facts about the owner that the rules find.
    seen: set[int] = set()
    wished = {item.turn for item in replies if item.profile == "preference"}
    for reply in replies[:_MOST]:
        text = one_line(reply.text)
        if not _LEAST_TEXT <= len(text) <= _LONGEST_TEXT or is_injected(text):
            continue
        at, number = _turn(reply.turn, numbered)
        turn = numbered[at][number]
        by_rules = profile_of(turn) if number not in seen else {}
        if number in wished:
            by_rules.pop("preference", None)
        seen.add(number)
        profile = by_rules | _profile(reply, text, turn)
        corrects = dict(enumerate(known, 1)).get(reply.replaces or 0, "")
        observations[at].append(_observation(reply, text, turn, profile, corrects))
    return observations


def _observation(
    reply: ObservationReply, text: str, turn: BufferedTurn, profile: dict[str, str], corrects: str
) -> Observation:
    event = one_of(reply.event, [*IMPORTANCE_BY_EVENT], DEFAULT_EVENT)
    least = max(
        HEALTHY if is_health(text) else 0.0,
        NAMED if profile.keys() - {"preference"} else STANDS if profile else 0.0,
        default_importance(event) if event == "correction" else 0.0,
    )
    return Observation(
        type=reply.type if reply.type in _TYPES else "semantic",  # type: ignore[arg-type]
        event=event,
        subject=one_line(reply.subject, _SHORT),
        text=text,
        tags=short_list((tag.lower().lstrip("#") for tag in reply.tags), _MOST_TAGS, _TAG_CHARS),
        importance=max(share_of(reply.importance, default_importance(event)), least),
        source=_source(reply, turn),
        entities=tuple(
            mention
            for entity in reply.entities[:_MOST_ENTITIES]
            if (mention := _mention(entity)).name
        ),
        actor=turn.actor or (turn.role if turn.role in {"user", "assistant"} else ""),
        position=turn.position,
        at=turn.at,
        category=category_of(text, preference=event == "preference_learned") or "",
        profile=profile,
        corrects=corrects,
    )


def _turn(number: int | None, numbered: Sequence[dict[int, BufferedTurn]]) -> tuple[int, int]:
    """The conversation and number of a turn; by default of the last turn of a user."""
    last = (0, 0)
    for at, turns in enumerate(numbered):
        for position, turn in turns.items():
            if position == number:
                return at, position
            if turn.role == "user":
                last = at, position
    return last


def _source(reply: ObservationReply, turn: BufferedTurn) -> str:
    """Only a user's own statement counts as stated by them."""
    if reply.source.strip().lower() == INFERRED:
        return INFERRED
    return USER_STATED if turn.role == "user" else OBSERVED


def _profile(reply: ObservationReply, text: str, turn: BufferedTurn) -> dict[str, str]:
    kind, value = reply.profile.strip().lower(), one_line(reply.value, _SHORT)
    if turn.role != "user" or turn.actor:
        return {}
    own = without_cited(turn).text
    if kind == "preference":
        # A quotation is not the user's wish.
        return {kind: value or one_line(text, _SHORT)} if len(own) == len(turn.text) else {}
    is_quoted = bool(value) and value.casefold() in own.casefold()
    return {kind: value} if kind in _NAMES and is_quoted else {}


def _mention(named: EntityReply) -> Mention:
    links = (
        MentionedRelation(one_line(link.relation, _SHORT).lower(), one_line(link.target, _SHORT))
        for link in named.relations[:_MOST_ENTITIES]
    )
    return Mention(
        one_line(named.name, _SHORT),
        one_of(named.type, get_args(EntityType), UNKNOWN_TYPE),
        tuple(link for link in links if link.relation and link.target),
    )
