"""Raw text to a fact, or to several, to a summary of a few words: all by rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

import msgspec
from msgspec.structs import replace

from ..metadata import extract, merge
from ..names import people
from ..records import Distilled, Metadata
from ..vocabulary import word_set
from .actions import actions_of
from .alike import Seen
from .clauses import condensed
from .distilled import ONGOING, SUMMARY_BYTES, distilled_size
from .feelings import emotion_of
from .fitting import fitted, no_longer
from .outcomes import outcome_of
from .plain import printable
from .shortening import shortened, utf8_bytes
from .signals import signals_of
from .statements import SaidSentence, corrects, statements
from .topics import topics_of
from .weighing import worth

MAX_BYTES: Final = 100
AGGRESSION: Final = 0.7
# What a statement must be worth to be kept: a plain sentence with a few words of content at no
# aggression, one that also states, reports or names something at the usual one.
_LEAST_WORTH: Final = 0.6
_WORTH_PER_AGGRESSION: Final = 1.5
# The number of statements that are read of a very long text.
_MOST_TOLD: Final = 500
_ARTICLES: Final = word_set("a an the my our")
# "Die" and "los" are articles in one language, and more in others.
_OTHER_ARTICLES: Final = word_set("der die das den dem le la les el los las")
_ENGLISH: Final = word_set("and are for has is it my of our the to we with")
_NOT_FELT: Final = frozenset({"agent", "system", "tool"})


class Stages(msgspec.Struct, frozen=True):
    """A text on its way: its size, what was distilled, the summary, and their sizes in bytes.

    A text that is shorter than `distilled_size` of what was distilled is its own fact: the size
    is the text's, and nothing grows.
    """

    original_size: int
    distilled: Distilled
    distilled_size: int
    core_summary: str
    core_size: int

    @property
    def compression_ratio(self) -> float:
        """How many times larger the text was than what was distilled, 1 or more; 0 if empty."""
        return self.original_size / self.distilled_size if self.original_size else 0.0


def distil(text: str, *, aggression: float = AGGRESSION, max_bytes: int = MAX_BYTES) -> Distilled:
    """The one thing that `text` is most worth remembering for.

    Args:
        text: a conversation with labelled speakers or any other text, in any language. A blank
            one gives an empty fact.
        aggression: 0 to 1; how much is taken off a sentence, see `statements`.
        max_bytes: the limit of `distilled_size`, from 16 on.
    """
    text = printable(text)
    said = statements(text, aggression)
    if not said:
        return Distilled(fact=shortened(" ".join(text.split()), max_bytes - 11))
    best = max(said, key=lambda statement: statement.worth)
    told = [statement for statement in said if statement.worth > 0 or statement is best]
    if len(told) > _MOST_TOLD:
        least = sorted(statement.worth for statement in told)[-_MOST_TOLD]
        told = [statement for statement in told if statement.worth >= least][-_MOST_TOLD:]
        told = told if best in told else [best, *told]
    emotion = emotion_of(s.said for s in said[-_MOST_TOLD:] if s.role not in _NOT_FELT)
    outcome = outcome_of(_ended(said))
    whole = replace(_distilled(best, told, extract(text)), emotion=emotion, outcome=outcome)
    return no_longer(fitted(whole, max_bytes), text, max_bytes)


def facts(
    text: str, *, aggression: float = AGGRESSION, max_bytes: int = MAX_BYTES
) -> list[Distilled]:
    """Every statement of `text` worth keeping, in order; not what is repeated or corrected later.

    A reference of the text that stands in none of them goes with the best of them; a text with
    references alone gives one fact. `aggression` also says how much a statement must be worth.
    """
    text = printable(text)
    kept = worth_keeping(statements(text, aggression), aggression)
    everything = extract(text)
    if not kept:
        return [distil(text, max_bytes=max_bytes)] if everything != Metadata() else []
    own = [extract(statement.said) for statement in kept]
    best = max(range(len(kept)), key=lambda place: kept[place].worth)
    own[best] = merge(own[best], _without(everything, own))
    return [
        no_longer(fitted(_distilled(statement, [statement], found), max_bytes), text, max_bytes)
        for statement, found in zip(kept, own, strict=True)
    ]


def best(found: Sequence[Distilled], text: str) -> Distilled:
    """The fact of `text` that says most; where none was found, what the text is distilled to."""
    if not found:
        return distil(text)
    return max(found, key=lambda one: worth(one.fact, signals_of(one.fact)))


def worth_keeping(
    said: Iterable[SaidSentence], aggression: float = AGGRESSION
) -> list[SaidSentence]:
    """Those that say enough to be kept, in order; not what is repeated or corrected later."""
    least = _LEAST_WORTH + _WORTH_PER_AGGRESSION * aggression
    seen = Seen()
    kept: list[SaidSentence] = []
    for statement in said:
        if statement.worth >= least and seen.add(statement.text):
            if "correction" in statement.signals:
                kept = [other for other in kept if not corrects(statement, other)]
            kept.append(statement)
    return kept


def core_summary(distilled: Distilled, max_bytes: int = SUMMARY_BYTES) -> str:
    """The fact in a few words, with its outcome if there is room, in at most `max_bytes` UTF-8.

    Articles go first, then clauses; the cut is between words wherever one fits.
    """
    fact = distilled.fact.removesuffix("…")
    if utf8_bytes(fact) > max_bytes:
        fact = _without_articles(fact)
    ending = f" ({distilled.outcome})" if distilled.outcome != ONGOING else ""
    if ending and fact and utf8_bytes(fact + ending) <= max_bytes:
        return fact + ending
    return condensed(fact, max_bytes, utf8_bytes, mark="")


def stages(text: str, *, aggression: float = AGGRESSION, max_bytes: int = MAX_BYTES) -> Stages:
    """All three stages of a text, with their sizes."""
    return stages_of(text, distil(text, aggression=aggression, max_bytes=max_bytes))


def stages_of(text: str, distilled: Distilled) -> Stages:
    """The stages of a text that was distilled already, by rules or by a model."""
    original = len(text.encode("utf-8", "replace"))
    core = core_summary(distilled, min(SUMMARY_BYTES, original))
    size = min(original, distilled_size(distilled))
    return Stages(original, distilled, size, core, utf8_bytes(core))


def _without_articles(fact: str) -> str:
    words = fact.split()
    english = any(word in _ENGLISH for word in words)
    articles = _ARTICLES if english else _OTHER_ARTICLES
    kept = [word for word in words[1:] if word not in articles]
    if words[0].lower() not in articles:
        kept.insert(0, words[0])
    return " ".join(kept) or fact


def _distilled(best: SaidSentence, told: Sequence[SaidSentence], found: Metadata) -> Distilled:
    others = [statement for statement in told if statement is not best]
    ordered = [best, *others]
    named = _people(best, others)
    content = " ".join(statement.text for statement in told if "greeting" not in statement.signals)
    return Distilled(
        fact=best.text,
        emotion=emotion_of(s.said for s in told if s.role not in _NOT_FELT),
        people=named,
        topics=topics_of(content, best.text, people=(*named, *_speakers(told))),
        actions=actions_of(s.text for s in ordered if "question" not in s.signals),
        outcome=outcome_of(_ended(told)),
        urls=found.urls,
        commands=found.commands,
        paths=found.paths,
    )


def _ended(told: Iterable[SaidSentence]) -> Iterable[str]:
    """What may tell how it ended."""
    return (one.said for one in told if not one.signals & {"question", "offer"})


def _people(best: SaidSentence, others: Iterable[SaidSentence]) -> tuple[str, ...]:
    """The people that are spoken of; who speaks is one only where the fact is about them."""
    others = list(others)
    speakers = _speakers([best, *others])
    named = dict.fromkeys(people(best.text, speakers))
    elsewhere = chain.from_iterable(people(statement.said) for statement in others)
    folded = {part.casefold() for name in speakers for part in (name, name.split()[0])}
    named.update(dict.fromkeys(name for name in elsewhere if name.casefold() not in folded))
    return tuple(named)


def _speakers(told: Iterable[SaidSentence]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(statement.speaker for statement in told if statement.speaker))


def _without(everything: Metadata, own: Iterable[Metadata]) -> Metadata:
    """The references of the whole text that no part has by itself."""
    own = list(own)
    return Metadata(
        urls=_rest(everything.urls, (part.urls for part in own)),
        commands=_rest(everything.commands, (part.commands for part in own)),
        paths=_rest(everything.paths, (part.paths for part in own)),
    )


def _rest(values: tuple[str, ...], taken: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    had = frozenset(chain.from_iterable(taken))
    return tuple(value for value in values if value not in had)
