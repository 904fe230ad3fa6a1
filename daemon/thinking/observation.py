"""Reads turns of a conversation for what is worth remembering."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Final, get_args

import msgspec

from ..language.cues import category_of, is_health, is_injected
from ..language.extraction import (
    HEALTHY,
    Observation,
    Turn,
    extract_turns,
    is_command,
    is_lasting,
    profile_of,
)
from ..language.names import EntityType, Mention, MentionedRelation
from ..llm.model import Part
from ..llm.replies import one_line, short_list
from ..memory.records import DEFAULT_EVENT, Type
from ..memory.scoring import IMPORTANCE_BY_EVENT, default_importance
from ..store.conversations import Heard
from .model_or_rules import AskOptions, Derived, ModelOrRules

# ScalyClaw's rule: shorter turns and commands are skipped.
_LEAST_CHARS: Final = 20
_LONGEST_TURN: Final = 4_000
_LEAST_TEXT: Final = 8
_LONGEST_TEXT: Final = 2_000
_SHORT: Final = 120
_MOST: Final = 24
_MOST_TAGS: Final = 8
_TAG_CHARS: Final = 60
_MOST_ENTITIES: Final = 16
_TYPES: Final = frozenset(get_args(Type))
_KINDS: Final = frozenset(get_args(EntityType))
_SOURCE: Final = "conversation"


class ToldRelation(msgspec.Struct, frozen=True):
    """How something is related to another, as a model says it."""

    relation: str
    target: str


class ToldEntity(msgspec.Struct, frozen=True):
    """Somebody or something that a model names."""

    name: str
    type: str = ""
    relations: tuple[ToldRelation, ...] = ()


class ToldObservation(msgspec.Struct, frozen=True):
    """A model's reply about one thing that is worth remembering."""

    text: str
    type: str = "semantic"
    event: str = DEFAULT_EVENT
    subject: str = ""
    tags: tuple[str, ...] = ()
    importance: float | None = None
    turn: int | None = None
    entities: tuple[ToldEntity, ...] = ()


async def observe(
    turns: Sequence[Heard],
    known: Sequence[str],
    model: ModelOrRules,
    options: AskOptions,
    today: dt.date,
    earlier: Sequence[str] = (),
) -> Derived[list[Observation]]:
    """What is worth remembering of some turns, by one question to a model at most.

    Args:
        turns: they follow each other.
        known: existing memories that the turns may repeat.
        model: what is asked.
        options: whether it is.
        today: the day that "tomorrow" is told from.
        earlier: what was kept of the same conversation before.
    """
    read = [turn for turn in turns if is_worth_reading(turn)]
    if not any(turn.role == "user" for turn in read):
        options = msgspec.structs.replace(options, model=False)
    parts = (
        Part("day", f"The conversation takes place on {today:%A}, {today}.", quoted=False),
        Part("known already", "\n".join(f"- {one_line(one)}" for one in known) or "nothing"),
        Part("conversation", "\n".join(map(line_of, read))),
    )
    return await model.think(
        options,
        model.question("observe", *parts),
        list[ToldObservation],
        lambda told: observed(told, read),
        lambda: model.rules.run(
            sum(len(turn.text) for turn in turns),
            extract_turns,
            [turn_of(turn) for turn in turns],
            earlier,
        ),
    )


def is_worth_reading(turn: Heard) -> bool:
    """Whether a turn may contain a fact: it is neither a nod nor a command."""
    text = turn.text.strip()
    told = len(text) >= _LEAST_CHARS or is_lasting(text)
    return told and not is_command(text)


def turn_of(heard: Heard) -> Turn:
    """A turn as the rules read it."""
    return Turn(heard.role, heard.text, heard.actor, heard.position, heard.at)


def line_of(turn: Heard) -> str:
    """A turn as a model reads it: its number, who speaks, with what, and what is said."""
    who = f"{turn.actor} ({turn.role})" if turn.actor else turn.role
    used = f" [used {', '.join(turn.tools)}]" if turn.tools else ""
    return f"[{turn.position}] {who}{used}: {turn.text.strip()[:_LONGEST_TURN]}"


def observed(told: Sequence[ToldObservation], turns: Sequence[Heard]) -> list[Observation]:
    """A model's observations within the limits of a memory, each with its turn."""
    found: list[Observation] = []
    for one in told[:_MOST]:
        text = one_line(one.text)
        if _LEAST_TEXT <= len(text) <= _LONGEST_TEXT and not is_injected(text):
            found.append(_observation(one, text, _turn(one.turn, turns)))
    return found


def _observation(told: ToldObservation, text: str, turn: Heard) -> Observation:
    event = told.event.strip().lower()
    event = event if event in IMPORTANCE_BY_EVENT else DEFAULT_EVENT
    return Observation(
        type=told.type if told.type in _TYPES else "semantic",  # type: ignore[arg-type]
        event=event,
        subject=one_line(told.subject, _SHORT),
        text=text,
        tags=short_list((tag.lower().lstrip("#") for tag in told.tags), _MOST_TAGS, _TAG_CHARS),
        importance=max(_importance(told.importance, event), HEALTHY if is_health(text) else 0.0),
        source=_SOURCE,
        entities=_mentions(told.entities),
        actor=turn.actor or (turn.role if turn.role in {"user", "assistant"} else ""),
        position=turn.position,
        at=turn.at,
        category=category_of(text, preference=event == "preference_learned") or "",
        profile=profile_of(turn_of(turn)),
    )


def _turn(number: int | None, turns: Sequence[Heard]) -> Heard:
    """The turn of a number; else the last turn of a person."""
    for turn in turns:
        if turn.position == number:
            return turn
    return next((turn for turn in reversed(turns) if turn.role == "user"), turns[-1])


def _importance(told: float | None, event: str) -> float:
    """What a model says, 0 to 1; some say 1 to 10 whatever they are told."""
    if told is None or not math.isfinite(told) or told < 0:
        return default_importance(event)
    return min(1.0, told / 10 if told > 1 else told)


def _mentions(named: Sequence[ToldEntity]) -> tuple[Mention, ...]:
    found = [mention for one in named[:_MOST_ENTITIES] if (mention := _mention(one)).name]
    return tuple(found)


def _mention(named: ToldEntity) -> Mention:
    kind = named.type.strip().lower()
    links = (
        MentionedRelation(one_line(link.relation, _SHORT).lower(), one_line(link.target, _SHORT))
        for link in named.relations[:_MOST_ENTITIES]
    )
    return Mention(
        one_line(named.name, _SHORT),
        kind if kind in _KINDS else "concept",  # type: ignore[arg-type]
        tuple(link for link in links if link.relation and link.target),
    )
