"""Distilling a text by a model, or by rules; its references survive either way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, get_args

import msgspec

from ..llm.model import Part
from ..memory import distilling as rules
from ..memory.distilling import Distilled
from ..memory.distilling.feelings import NEUTRAL
from ..memory.distilling.signals import signals_of
from ..memory.distilling.speech import role_of
from ..memory.distilling.weighing import worth
from ..memory.metadata import extract
from ..memory.records import Metadata, Outcome
from .asking import Mind, Thought, Wish
from .told import one_line, short_list

# Of a longer text a model is given what the rules think worth keeping.
_LONGEST: Final = 24_000
_REDUCED_BYTES: Final = 400
_MOST_FACTS: Final = 32
_TOKENS_FOR_SEVERAL: Final = 4_000
_MOST_PEOPLE: Final = 5
_MOST_TOPICS: Final = 5
_MOST_ACTIONS: Final = 3
_ITEM_CHARS: Final = 60
_OUTCOMES: Final = frozenset(get_args(Outcome))
_SEVERAL: Final = Part(
    "task",
    "Make a list: every statement that is worth remembering is a fact of its own, in the order of"
    f" the text, {_MOST_FACTS} at most. Of what is said twice or corrected later, keep the last.",
    quoted=False,
    stable=True,
)


class Measure(msgspec.Struct, frozen=True):
    """How much is to be left of a text: see `memory.distilling`."""

    aggression: float = 0.7
    max_bytes: int = 100


class Told(msgspec.Struct, frozen=True):
    """A model's reply about one fact."""

    fact: str
    emotion: str = NEUTRAL
    people: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    outcome: str = "ongoing"


async def distil(text: str, measure: Measure, mind: Mind, wish: Wish) -> Thought[Distilled]:
    """The one thing that `text` is most worth remembering for."""
    given = await _given(text, measure, mind, wish)
    return await mind.think(
        wish,
        mind.question("distil", Part("text", given)),
        Told,
        lambda told: _distilled(told, extract(text), measure),
        lambda: rules.distil(text, aggression=measure.aggression, max_bytes=measure.max_bytes),
    )


async def facts(text: str, measure: Measure, mind: Mind, wish: Wish) -> Thought[list[Distilled]]:
    """Every statement of `text` worth keeping, in the order of the text."""
    given = await _given(text, measure, mind, wish)
    return await mind.think(
        wish,
        mind.question("distil", _SEVERAL, Part("text", given), max_tokens=_TOKENS_FOR_SEVERAL),
        list[Told],
        lambda told: _several(told[:_MOST_FACTS], extract(text), measure),
        lambda: rules.facts(text, aggression=measure.aggression, max_bytes=measure.max_bytes),
    )


def best(found: Sequence[Distilled], text: str) -> Distilled:
    """The fact of `text` that says most; what the rules say where there is none."""
    if not found:
        return rules.distil(text)
    return max(found, key=lambda one: worth(one.fact, signals_of(one.fact)))


async def _given(text: str, measure: Measure, mind: Mind, wish: Wish) -> str:
    """What a model is given of a text."""
    if len(text) <= _LONGEST or not mind.is_asked("distil", wish):
        return text[:_LONGEST]
    return await asyncio.to_thread(_reduced, text, measure)


def _reduced(text: str, measure: Measure) -> str:
    kept = rules.facts(text, aggression=measure.aggression, max_bytes=_REDUCED_BYTES)
    return "\n".join(distilled.fact for distilled in kept)[:_LONGEST]


def _distilled(told: Told, references: Metadata, measure: Measure) -> Distilled | None:
    fact = one_line(told.fact)
    if not fact:
        return None
    outcome = told.outcome.strip().lower()
    whole = Distilled(
        fact=fact,
        emotion=one_line(told.emotion, _ITEM_CHARS).lower() or NEUTRAL,
        outcome=outcome if outcome in _OUTCOMES else "ongoing",  # type: ignore[arg-type]
        urls=references.urls,
        commands=references.commands,
        paths=references.paths,
        people=_people(told.people),
        topics=short_list(told.topics, _MOST_TOPICS, _ITEM_CHARS),
        actions=short_list(told.actions, _MOST_ACTIONS, _ITEM_CHARS),
    )
    return rules.fitted(whole, measure.max_bytes)


def _people(values: Sequence[str]) -> tuple[str, ...]:
    """Names without the labels of speakers."""
    named = (value for value in values if role_of(one_line(value)) == "person")
    return short_list(named, _MOST_PEOPLE, _ITEM_CHARS)


def _several(
    told: Sequence[Told], references: Metadata, measure: Measure
) -> list[Distilled] | None:
    """The facts, each with the references that stand in it; what stands in none is the first's."""
    found = [one for one in told if one_line(one.fact)]
    if not found:
        # No fact at all is an answer, unless a reference would be lost.
        return [] if references == Metadata() else None
    own = [_standing_in(references, one.fact) for one in found]
    own[0] = _with_rest(own, references)
    made = (_distilled(one, mine, measure) for one, mine in zip(found, own, strict=True))
    return [distilled for distilled in made if distilled is not None]


def _standing_in(references: Metadata, text: str) -> Metadata:
    return Metadata(
        **{name: tuple(v for v in values if v in text) for name, values in _by_kind(references)}
    )


def _with_rest(own: Sequence[Metadata], references: Metadata) -> Metadata:
    return Metadata(
        **{
            name: tuple(
                value
                for value in values
                if value in getattr(own[0], name)
                or not any(value in getattr(other, name) for other in own)
            )
            for name, values in _by_kind(references)
        }
    )


def _by_kind(references: Metadata) -> list[tuple[str, tuple[str, ...]]]:
    return list(msgspec.structs.asdict(references).items())
