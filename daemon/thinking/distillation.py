"""Distils a text by a model or by rules; both keep its references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

import msgspec

from ..language import distilling as rules
from ..language.cues import NEUTRAL
from ..language.speech import role_of
from ..llm.model import Part
from ..llm.replies import one_line, one_of, short_list
from ..memory.metadata import extract, merge
from ..memory.records import Distilled, Metadata, Outcome
from .model_or_rules import AskOptions, Derived, ModelOrRules

# A model gets only what the rules keep of a longer text.
_LONGEST: Final = 24_000
_REDUCED_BYTES: Final = 400
_MOST_FACTS: Final = 32
_TOKENS_FOR_SEVERAL: Final = 4_000
_MOST_PEOPLE: Final = 5
_MOST_TOPICS: Final = 5
_MOST_ACTIONS: Final = 3
_ITEM_CHARS: Final = 60
_SEVERAL: Final = Part(
    "task",
    "Make a list: every statement that is worth remembering is a fact of its own, in the order of"
    f" the text, {_MOST_FACTS} at most. Of what is said twice or corrected later, keep the last.",
    quoted=False,
    stable=True,
)


class Measure(msgspec.Struct, frozen=True):
    """How much to leave of a text; see `language.distilling`."""

    aggression: float = 0.7
    max_bytes: int = 100


class FactReply(msgspec.Struct, frozen=True):
    """A model's reply about one fact."""

    fact: str
    emotion: str = NEUTRAL
    people: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    outcome: str = "ongoing"


async def distil(
    text: str, measure: Measure, model: ModelOrRules, options: AskOptions
) -> Derived[Distilled]:
    """The one thing that `text` is most worth remembering for."""
    given = await _given(text, measure, model, options)
    return await model.think(
        options,
        model.question("distil", Part("text", given)),
        FactReply,
        lambda told: _distilled(told, text, extract(text), measure),
        lambda: model.rules.run(len(text), rules.distil, text, **msgspec.structs.asdict(measure)),
    )


async def facts(
    text: str, measure: Measure, model: ModelOrRules, options: AskOptions
) -> Derived[list[Distilled]]:
    """Every statement of `text` worth keeping, in the order of the text."""
    given = await _given(text, measure, model, options)
    return await model.think(
        options,
        model.question("distil", _SEVERAL, Part("text", given), max_tokens=_TOKENS_FOR_SEVERAL),
        list[FactReply],
        lambda told: _several(told[:_MOST_FACTS], text, extract(text), measure),
        lambda: model.rules.run(len(text), rules.facts, text, **msgspec.structs.asdict(measure)),
    )


async def best(found: Sequence[Distilled], text: str, model: ModelOrRules) -> Distilled:
    """The fact of `text` that says most; without facts, what the rules distil."""
    return await model.rules.run(len(text), rules.best, found, text)


async def _given(text: str, measure: Measure, model: ModelOrRules, options: AskOptions) -> str:
    if len(text) <= _LONGEST or not model.is_asked("distil", options):
        return text[:_LONGEST]
    kept = await model.rules.run(
        len(text), rules.facts, text, aggression=measure.aggression, max_bytes=_REDUCED_BYTES
    )
    return "\n".join(distilled.fact for distilled in kept)[:_LONGEST]


def _distilled(
    told: FactReply, text: str, references: Metadata, measure: Measure
) -> Distilled | None:
    fact = one_line(told.fact)
    if not fact:
        return None
    whole = Distilled(
        fact=fact,
        emotion=one_line(told.emotion, _ITEM_CHARS).lower() or NEUTRAL,
        outcome=one_of(told.outcome, get_args(Outcome), "ongoing"),
        urls=references.urls,
        commands=references.commands,
        paths=references.paths,
        people=_people(told.people),
        topics=short_list(told.topics, _MOST_TOPICS, _ITEM_CHARS),
        actions=short_list(told.actions, _MOST_ACTIONS, _ITEM_CHARS),
    )
    fitted = rules.fitted(whole, measure.max_bytes)
    return rules.no_longer(fitted, text, measure.max_bytes)


def _people(values: Sequence[str]) -> tuple[str, ...]:
    named = (value for value in values if role_of(one_line(value)) == "person")
    return short_list(named, _MOST_PEOPLE, _ITEM_CHARS)


def _several(
    told: Sequence[FactReply], text: str, references: Metadata, measure: Measure
) -> list[Distilled] | None:
    """The facts, each with its own references; the first one gets the remaining references."""
    found = [one for one in told if one_line(one.fact)]
    if not found:
        # A reply without facts is valid, unless a reference would be lost.
        return [] if references == Metadata() else None
    own = [_standing_in(references, one.fact) for one in found]
    own[0] = merge(own[0], rules.without(references, own))
    made = (_distilled(one, text, mine, measure) for one, mine in zip(found, own, strict=True))
    return [distilled for distilled in made if distilled is not None]


def _standing_in(references: Metadata, text: str) -> Metadata:
    lists = msgspec.structs.asdict(references)
    return Metadata(**{name: tuple(v for v in found if v in text) for name, found in lists.items()})
