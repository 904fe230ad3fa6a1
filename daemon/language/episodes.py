"""Summarises a finished conversation in one or two sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ..memory.own_files import EpisodeOutcome
from ..memory.records import Outcome
from .cues import Signal, outcome_of
from .distilling import topics_of
from .names import people
from .sentences import shortened, utf8_bytes
from .statements import SaidSentence, spoken
from .turn_text import Turn, utterance_of

MIN_TAGS: Final = 3
MAX_TAGS: Final = 5
_SENTENCE_BYTES: Final = 160
_OUTCOMES: Final[dict[Outcome, EpisodeOutcome]] = {
    "positive": "resolved",
    "negative": "unresolved",
    "pending": "unresolved",
    "ongoing": "informational",
}
_GOAL: Final[frozenset[Signal]] = frozenset({"question", "request", "error"})
# A promise is a goal only if it comes first.
_FIRST_GOAL: Final = _GOAL | {"commitment"}
_RESULT: Final[frozenset[Signal]] = frozenset(
    {"solution", "report", "decision", "correction", "preference", "claim"}
)
_FIRST: Final = 3


class Episode(msgspec.Struct, frozen=True):
    """The topic of a conversation, and its outcome.

    Attributes:
        summary: one or two sentences; empty for an empty conversation.
        tags: three to five words, or fewer.
        outcome: informational if there was no problem to solve.
    """

    summary: str
    tags: tuple[str, ...]
    outcome: EpisodeOutcome


def summarise_episode(turns: Sequence[Turn]) -> Episode:
    """The summary of a conversation: the request, and its result."""
    said = spoken(tuple(map(utterance_of, turns)))
    told = [one for one in said if "greeting" not in one.signals and one.role != "system"]
    if not told:
        return Episode(" ".join(one.text for one in said[:1]), _tags(said), "informational")
    goal = _goal(told)
    result = _result(told, goal)
    sentences = dict.fromkeys(filter(None, (_sentence(goal, asks=True), _sentence(result))))
    ended = outcome_of([s.said for s in said if not s.signals & {"question", "offer"}])
    return Episode(" ".join(sentences), _tags(told), _OUTCOMES[ended])


def _goal(told: Sequence[SaidSentence]) -> SaidSentence:
    """The goal of the conversation: the first statement that asks, or reports a problem."""
    first = [one for one in told if one.role != "agent"][:_FIRST] or list(told[:1])
    asking = (one for at, one in enumerate(first) if one.signals & (_GOAL if at else _FIRST_GOAL))
    return next(asking, first[0])


def _result(told: Sequence[SaidSentence], goal: SaidSentence) -> SaidSentence | None:
    """The statement after the goal that says most of the result; among equals the later."""
    begin = next(place for place, one in enumerate(told) if one is goal) + 1
    later = [one for one in told[begin:] if "question" not in one.signals]
    ranked = (
        (one.worth + place / len(later) + bool(one.signals & _RESULT), place)
        for place, one in enumerate(later)
    )
    worth, place = max(ranked, default=(0.0, 0))
    return later[place] if worth > 0 else None


def _sentence(statement: SaidSentence | None, *, asks: bool = False) -> str:
    if statement is None:
        return ""
    text = shortened(statement.text, _SENTENCE_BYTES, utf8_bytes)
    if text.endswith(":"):
        return ""  # It introduces code or a table.
    if asks and statement.signals & {"question", "request"}:
        who = statement.speaker or "User"
        text = f"{who} asked: {text}"
    if not text or text.endswith((".", "!", "?", "…", "。", "？", "！")):
        return text
    return text + ("。" if "\u3000" <= text[-1] <= "\u9fff" else ".")


def _tags(told: Sequence[SaidSentence]) -> tuple[str, ...]:
    speakers = {one.speaker for one in told if one.speaker}
    text = " ".join(one.text for one in told)
    named = tuple(people(text, speakers))
    topics = topics_of(text, "", people=(*named, *speakers), most=MAX_TAGS)
    others = [name.casefold() for name in named if name not in speakers]
    signals = [signal for one in told for signal in sorted(one.signals & (_FIRST_GOAL | _RESULT))]
    tags = list(dict.fromkeys([*topics, *others, *signals]))
    return tuple(tags[: max(len(topics), MIN_TAGS)])
