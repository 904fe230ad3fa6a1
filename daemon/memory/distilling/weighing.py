"""How much a sentence says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..metadata import extract
from ..names import people
from ..stop_words import NOT_TOPICS
from ..vocabulary import MONTHS, word_set
from .signals import Signal

_WORTH: Final[dict[Signal, float]] = {
    "correction": 3.5,
    "decision": 3.0,
    "preference": 3.0,
    "solution": 3.0,
    "report": 2.5,
    "commitment": 2.0,
    "error": 2.0,
    "claim": 1.5,
}
_COST: Final[dict[Signal, float]] = {
    "greeting": 8.0,
    "offer": 3.0,
    "question": 2.5,
    "request": 1.2,
    "hedge": 1.0,
}
# No text is about them, but "on Tuesday" says something.
_DAYS: Final = (MONTHS - {"may", "march"}) | word_set(
    "monday mondays tuesday tuesdays wednesday wednesdays thursday thursdays friday fridays",
    "saturday saturdays sunday sundays tomorrow weekdays weekends",
)
# Without a word of content even a decision says little: "let's do it".
_BARE: Final = 0.5
_FILLED: Final = 0.25
_SHARE_OF_FURTHER: Final = 0.4
_WORD_WORTH: Final = 0.15
_MANY_WORDS: Final = 8
_TOO_MANY_WORDS: Final = 45
_LONGEST: Final = 600
_DATED: Final = re.compile(
    r"\b(?:yesterday|tomorrow|(?:last|next|this) (?:week(?:end)?|month|year|spring|summer|autumn"
    r"|fall|winter|\w+day)|\w+ (?:days?|weeks?|months?|years?) ago|since (?:\w+day|19|20))",
    re.IGNORECASE,
)
_VAGUE: Final = re.compile(r"(?:it|this|that|they|he|she|there|those|these)\b", re.IGNORECASE)
_TO_ANOTHER: Final = re.compile(
    r"(?:(?:must|it must) (?:be|have)|any|(?:and |but |so )?(?:you|your|you['’]\w+))\b",
    re.IGNORECASE,
)
_MARKED: Final = re.compile(
    r"(?:final |key )?(?:decision|decided|agreed|important|lesson|conclusion|result|outcome"
    r"|takeaway"
    r"|remember|fact)s?(?: learned)?:",
    re.IGNORECASE,
)
WORD: Final = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


def worth(text: str, signals: frozenset[Signal]) -> float:
    """How much a sentence says: below 1 hardly anything, a decision with a number 4 and more.

    What it does counts most, a second thing that it does for less; then its words of content,
    numbers, names of people and references. Questions, greetings, offers and doubts cost.
    """
    text = text[:_LONGEST]
    content = _content(text)
    gains = sorted((_WORTH[signal] for signal in signals if signal in _WORTH), reverse=True)
    value = sum(gains[:1]) + _SHARE_OF_FURTHER * sum(gains[1:3])
    value *= min(1.0, _BARE + _FILLED * content)
    value -= sum(_COST[signal] for signal in signals if signal in _COST)
    return value + _WORD_WORTH * min(content, _MANY_WORDS) + sum(_extras(text, content))


def _content(text: str) -> int:
    """How many words `text` has that could be a topic."""
    words = WORD.findall(text)
    if not text.isascii() and len(words) < len(text) // 4:
        return len(text) // 3
    stems = [_stem(word) for word in words]
    return sum(stem not in NOT_TOPICS or stem in _DAYS for stem in stems)


def _extras(text: str, content: int) -> Iterator[float]:
    if text.count(" ") > _TOO_MANY_WORDS:
        yield -0.5
    if any(map(str.isdigit, text)):
        yield 0.7
    if people(text):
        yield 0.5
    if _DATED.search(text):
        yield 0.5
    found = extract(text)
    if found.urls or found.commands or found.paths:
        yield 1.0
    if text.endswith((":", "：")):
        yield -1.0
    if _VAGUE.match(text):
        yield -0.4 if content > 2 else -2.0
    if _MARKED.match(text):
        yield 1.5
    if _TO_ANOTHER.match(text):
        yield -1.5


def _stem(word: str) -> str:
    return re.split("['’]", word.casefold(), maxsplit=1)[0]
