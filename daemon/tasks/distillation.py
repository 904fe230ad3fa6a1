"""Distils a text by a model or by rules; both keep its references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec

from ..config.settings import Distillation
from ..language.cues import NEUTRAL
from ..language.extraction import distilling as rules
from ..language.speech import role_of
from ..llm.model import Part
from ..llm.replies import one_line, one_of, short_list
from ..memory.metadata import extract, merge, within
from ..memory.records import Distilled, Metadata, Outcome
from .model_or_rules import AskOptions, Derived, ModelOrRules

# A model gets only what the rules keep of a longer text.
_LONGEST: Final = 24_000
_REDUCED_BYTES: Final = 400
_MOST_FACTS: Final = 32
_MOST_TEXTS: Final = 20
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


_EACH_SEVERAL: Final = msgspec.structs.replace(
    _SEVERAL,
    text=f"There are several texts: give each fact the number of its text. {_SEVERAL.text}",
)
_EACH: Final = msgspec.structs.replace(
    _SEVERAL, text="There are several texts: make a list with one fact for each, with its number."
)


class FactReply(msgspec.Struct, frozen=True):
    """A model's reply about one fact."""

    fact: str
    emotion: str = NEUTRAL
    people: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    outcome: str = "ongoing"


class NumberedFact(FactReply, frozen=True, kw_only=True):
    """A model's reply about one fact of one of several texts."""

    text: int


def groups_of(texts: Sequence[str]) -> list[list[str]]:
    """The texts in groups that fit into one question."""
    groups: list[list[str]] = []
    room = 0
    for text in texts:
        room -= len(text)
        if room < 0 or len(groups[-1]) == _MOST_TEXTS:
            groups.append([])
            room = _LONGEST - len(text)
        groups[-1].append(text)
    return groups


async def distil(
    text: str, measure: Distillation, model: ModelOrRules, options: AskOptions
) -> Derived[Distilled]:
    """The one thing that `text` is most worth remembering for."""
    excerpt = await _short(text, measure, model, options)
    return await model.think(
        options,
        model.question("distil", Part("text", excerpt)),
        FactReply,
        lambda reply: _distilled(reply, text, extract(text), measure),
        lambda: model.rules.run(len(text), rules.distil, text, **_limits(measure)),
    )


async def facts(
    text: str, measure: Distillation, model: ModelOrRules, options: AskOptions
) -> Derived[list[Distilled]]:
    """Every statement of `text` worth keeping, in the order of the text."""
    excerpt = await _short(text, measure, model, options)
    return await model.think(
        options,
        model.question("distil", _SEVERAL, Part("text", excerpt), max_tokens=_TOKENS_FOR_SEVERAL),
        list[FactReply],
        lambda replies: _several(replies[:_MOST_FACTS], text, extract(text), measure),
        lambda: _by_rules(text, measure, model, every=True),
    )


async def together(
    texts: Sequence[str],
    measure: Distillation,
    model: ModelOrRules,
    options: AskOptions,
    *,
    every: bool,
) -> list[Derived[list[Distilled]]]:
    """The one fact of each text, or `every` fact of it, by one question to a model.

    A text that the model leaves out is distilled by the rules.
    """

    async def by_rules() -> list[list[Distilled] | None]:
        return [None for _ in texts]

    def made(replies: Sequence[NumberedFact]) -> list[list[Distilled] | None]:
        facts: list[list[Distilled] | None] = []
        for number, text in enumerate(texts, 1):
            own = [reply for reply in replies if reply.text == number]
            several = _several(own[:_MOST_FACTS], text, extract(text), measure)
            facts.append(several if every or several is None else several[:1] or None)
        return facts

    thought = await model.think(
        options,
        model.question(
            "distil",
            _EACH_SEVERAL if every else _EACH,
            *(Part(f"text {number}", text) for number, text in enumerate(texts, 1)),
            max_tokens=_TOKENS_FOR_SEVERAL,
        ),
        list[NumberedFact],
        made,
        by_rules,
    )
    derived: list[Derived[list[Distilled]]] = []
    spent = thought.spent
    for text, facts in zip(texts, thought.value, strict=True):
        if facts is not None:
            derived.append(Derived(facts, "llm", "", spent))
        else:
            why = thought.why or "the model left this text out"
            plain = await _by_rules(text, measure, model, every=every)
            derived.append(Derived(plain, "rule", why, spent))
        spent = None
    return derived


def _limits(measure: Distillation) -> dict[str, Any]:
    return {"aggression": measure.aggression, "max_bytes": measure.max_distilled_bytes}


async def _by_rules(
    text: str, measure: Distillation, model: ModelOrRules, *, every: bool
) -> list[Distilled]:
    limits = _limits(measure)
    if every:
        return await model.rules.run(len(text), rules.facts, text, **limits)
    return [await model.rules.run(len(text), rules.distil, text, **limits)]


async def best(facts: Sequence[Distilled], text: str, model: ModelOrRules) -> Distilled:
    """The fact of `text` that says most; without facts, what the rules distil."""
    return await model.rules.run(len(text), rules.best, facts, text)


async def _short(text: str, measure: Distillation, model: ModelOrRules, options: AskOptions) -> str:
    if len(text) <= _LONGEST or not model.is_asked("distil", options):
        return text[:_LONGEST]
    facts = await model.rules.run(
        len(text), rules.facts, text, aggression=measure.aggression, max_bytes=_REDUCED_BYTES
    )
    return "\n".join(distilled.fact for distilled in facts)[:_LONGEST]


def _distilled(
    reply: FactReply, text: str, references: Metadata, measure: Distillation
) -> Distilled | None:
    fact = one_line(reply.fact)
    if not fact:
        return None
    people = (name for name in reply.people if role_of(one_line(name)) == "person")
    whole = Distilled(
        fact=fact,
        emotion=one_line(reply.emotion, _ITEM_CHARS).lower() or NEUTRAL,
        outcome=one_of(reply.outcome, get_args(Outcome), "ongoing"),
        urls=references.urls,
        commands=references.commands,
        paths=references.paths,
        people=short_list(people, _MOST_PEOPLE, _ITEM_CHARS),
        topics=short_list(reply.topics, _MOST_TOPICS, _ITEM_CHARS),
        actions=short_list(reply.actions, _MOST_ACTIONS, _ITEM_CHARS),
    )
    fitted = rules.fitted(whole, measure.max_distilled_bytes)
    return rules.no_longer(fitted, text, measure.max_distilled_bytes)


def _several(
    replies: Sequence[FactReply], text: str, references: Metadata, measure: Distillation
) -> list[Distilled] | None:
    usable = [reply for reply in replies if one_line(reply.fact)]
    if not usable:
        # A reply without facts is valid, unless a reference would be lost.
        return [] if references == Metadata() else None
    own = [within(references, fact_reply.fact) for fact_reply in usable]
    own[0] = merge(own[0], rules.without(references, own))
    made = (_distilled(reply, text, mine, measure) for reply, mine in zip(usable, own, strict=True))
    return [distilled for distilled in made if distilled is not None]
