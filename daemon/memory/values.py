"""Statements of one value: "the gate code is 4711", "the museum opens at 9:00".

What comes before the value ends in an opener: "is", "opens", or a noun such as "code". A number
changes wherever the rest stays; a word only where the noun can have no other beside it, as
"the sky is blue" and "the sky is clear" agree well.
"""

from __future__ import annotations

import re
from typing import Final

from .statement import Difference, Statement
from .vocabulary import (
    CONNECTING,
    COPULAS,
    FUNCTION_ENDS,
    FUNCTIONS,
    LINKS,
    MONTHS,
    NO_VALUES,
    NOW,
    NUMBER_WORDS,
    STATE_VERBS,
    WORD_FUNCTIONS,
)

_DIGIT: Final = re.compile(r"\d")


def value_slot(words: tuple[str, ...]) -> int | None:
    """Where the value of "the gate code is 4711" begins: after its first opener, or None."""
    for place, word in enumerate(words):
        if _opens(words, place, word):
            return place + 1
    return None


def value_changed(parts: Difference, older: Statement, newer: Statement) -> bool:
    """Whether `older` and `newer`, which differ in `parts`, give one thing two values."""
    if len(parts.before) < 2:
        return False
    if not all(CONNECTING.isdisjoint(value[1:]) for value in (parts.older, parts.newer)):
        return False
    if _is_number(parts.older) and _is_number(parts.newer):
        return _number_changed(parts)
    return _word_changed(parts, older, newer)


def _number_changed(parts: Difference) -> bool:
    opener = len(parts.before) - 1
    while opener > 0 and (parts.before[opener] in LINKS or parts.before[opener] in MONTHS):
        opener -= 1
    # "Task code 5 is done": there the number only tells which task.
    if parts.after and parts.before[opener] in FUNCTIONS:
        return False
    if not _opens(parts.before, opener, parts.before[opener]):
        return False
    units = [tuple(filter(_is_unit, value)) for value in (parts.older, parts.newer)]
    return units[0] == units[1] or _has_function(parts.before, opener)


def _word_changed(parts: Difference, older: Statement, newer: Statement) -> bool:
    opener = len(parts.before) - 1
    while opener > 0 and parts.before[opener] in NOW:
        opener -= 1
    if not _has_function(parts.before, opener):
        return False
    if not NO_VALUES.isdisjoint(parts.older + parts.newer):
        return False
    # "The boss is Ada", then "the boss is away": only two names exclude each other.
    if parts.before[opener - 1] in WORD_FUNCTIONS or "favorite" in parts.before:
        return True
    return _is_name(parts.older[0], older) and _is_name(parts.newer[0], newer)


def _is_name(word: str, statement: Statement) -> bool:
    return word in statement.names or "@" in word


def _opens(words: tuple[str, ...], place: int, word: str) -> bool:
    """Whether a value may follow `word`: "is", "costs", or "code" itself."""
    if place == 0:
        return False
    if word in COPULAS or word in STATE_VERBS or word in FUNCTIONS:
        return True
    return "".join(words[max(0, place - 5) : place + 1]).endswith(FUNCTION_ENDS)


def _has_function(words: tuple[str, ...], opener: int) -> bool:
    """Whether the opener is a copula right after a noun of which there is one value."""
    if words[opener] not in COPULAS:
        return False
    noun_end = "".join(words[max(0, opener - 5) : opener])
    return (
        words[opener - 1] in FUNCTIONS
        or noun_end.endswith(FUNCTION_ENDS)
        or "favorite" in words[:opener]
    )


def _is_number(value: tuple[str, ...]) -> bool:
    return any(_DIGIT.search(word) or word in NUMBER_WORDS for word in (value[0], value[-1]))


def _is_unit(word: str) -> bool:
    """Whether a word beside a number says of what it is one: "2 cats" is not about "3 dogs"."""
    return not (_DIGIT.search(word) or word in NUMBER_WORDS or word in MONTHS or word in LINKS)
