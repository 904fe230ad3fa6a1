"""Corrections that say only the value: "sorry, at 4, not 3", taken into what they correct."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from .similarity import words
from .stop_words import NOT_TOPICS, STOP_WORDS

_INSTEAD: Final = re.compile(
    r"(?P<new>.{1,300}?)[,;]? (?:and |und |y )?(?:not|nicht|no|instead of|rather than|statt) "
    r"(?P<old>[^,;。]{1,60})[.!。]?$",
    re.IGNORECASE,
)
_INSTEAD_UNSPACED: Final = re.compile(
    r"(?:.{0,40}?)是(?P<new>[^,,。]{1,30})[,,]\s?(?:而)?不是(?P<old>[^,,。]{1,30})[。.!]?$"
)
_NUMBER: Final = re.compile(r"(?<![\w.:])[\w.:/-]*\d[\w.:/-]*(?<![.:-])")
# "The 3rd" of April.
_ORDINAL: Final = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
_LEAD: Final = frozenset(
    {
        "sorry", "no", "oh", "wait", "actually", "correction", "nein", "ach", "doch", "eigentlich",
        "moment", "perdón", "perdona", "corrección", "es", "is", "it", "it's", "that", "that's",
        "ist", "um", "at", "on", "uhr", "the", "los", "las", "la", "el", "a", "am",
    }
)  # fmt: skip


class Correction(msgspec.Struct, frozen=True):
    """What a correction makes of what it corrects.

    Attributes:
        place: of the text that it corrects.
        text: that text with the right value, or the correction where it says all by itself.
    """

    place: int
    text: str


def correction_of(said: str, earlier: Sequence[str]) -> Correction | None:
    """The newest of the `earlier` texts that `said` corrects; None where it is none of them."""
    found = _INSTEAD.match(said) or _INSTEAD_UNSPACED.match(said)
    if found is None:
        return None
    new, old = _value(found["new"]), _value(found["old"])
    about = _about(found["new"], new)
    for place in range(len(earlier) - 1, -1, -1):
        text = earlier[place]
        if new and old and (span := _standing(old, text)) is not None:
            if about and not about & frozenset(words(text)):
                continue
            return Correction(place, text[: span[0]] + new + text[span[1] :])
        if not (new and old) and _takes_back(found["old"], text):
            return Correction(place, said)
    return None


def _value(part: str) -> str:
    """The one number of a part, or its last word where the script has no blanks."""
    if not part.isascii() and " " not in part.strip() and not _NUMBER.search(part):
        return part.strip()
    numbers = _NUMBER.findall(part)
    return _ORDINAL.sub("", str(numbers[0])) if len(numbers) == 1 else ""


def _about(part: str, value: str) -> frozenset[str]:
    """What a correction says beyond its value."""
    if not value or value == part.strip():
        return frozenset()
    return frozenset(words(part.replace(value, " "))) - _LEAD - STOP_WORDS - NOT_TOPICS


def _standing(value: str, text: str) -> tuple[int, int] | None:
    """Where a value stands in a text by itself, the last time."""
    if value.isascii():
        spans = [one.span() for one in _NUMBER.finditer(text) if _ORDINAL.sub("", one[0]) == value]
        return spans[-1] if spans else None
    at = text.rfind(value)
    return (at, at + len(value)) if at >= 0 else None


def _takes_back(old: str, text: str) -> bool:
    """Whether a text says all that is denied."""
    denied = frozenset(words(old)) - STOP_WORDS - NOT_TOPICS - _LEAD
    return bool(denied) and denied <= frozenset(words(text))
