"""Cutting a statement down to a number of bytes where it hurts least."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

import msgspec

from ..vocabulary import word_set

MARK: Final = "…"
# A clause that fills less of the room than this says too little alone.
_WORTH_KEEPING: Final = 0.6
_CLAUSE_END: Final = re.compile(
    r"[,;:](?=\s)|\s[-–—]\s|—|[，、；：]"
    r"|\s(?=(?:because|since|so that|which|while|although|though|unless|after|before|when|where|who"
    r"|weil|damit|während|parce que|porque|потому что)\s)"
)
# Where a statement cannot end: what they join or lead to is gone.
_LEADING: Final = word_set(
    "a an the to of in on at for with and or but by from as that this my our is are was were be",
    "not no der die das und oder zu für mit le la les de du et ou à pour el los y o en con и в на",
)
_LOOSE: Final = " ,;:-–—("
_JOINERS: Final = "\u200d\ufe0e\ufe0f"

Measure = Callable[[str], int]


def json_bytes(text: str) -> int:
    """The bytes that `text` takes within a JSON text in UTF-8, without the quotes."""
    return len(msgspec.json.encode(text)) - 2


def utf8_bytes(text: str) -> int:
    """The bytes that `text` takes in UTF-8."""
    return len(text.encode())


def shortened(text: str, room: int, measure: Measure = json_bytes, mark: str = MARK) -> str:
    """`text` in at most `room` bytes, as `measure` counts them.

    It ends with a clause if that leaves enough of it, else with a word and `mark`; only a word
    that is too long by itself is cut, and no character ever is.
    """
    if measure(text) <= room:
        return text
    ends = [match.start() for match in _CLAUSE_END.finditer(text)]
    for end in reversed(ends):
        clause = text[:end].rstrip()
        if measure(clause) > room:
            continue
        whole = tidy(clause)
        if measure(whole) >= room * _WORTH_KEEPING and not _ends_open(whole):
            return whole
        break
    return _to_word(text, room, measure, mark)


def _to_word(text: str, room: int, measure: Measure, mark: str) -> str:
    inner = room - measure(mark)
    if inner < measure(mark):
        return _to_character(text, room, measure)
    whole = _to_character(text, inner, measure)
    end = len(whole) if text[len(whole) : len(whole) + 1].isspace() else whole.rfind(" ")
    kept = tidy(whole[: max(end, 0)])
    return (kept or whole) + mark


def tidy(text: str) -> str:
    """The beginning of a text without what leads on to its rest, or a quotation left open."""
    if text.count("`") % 2 and not text.startswith("`"):
        before = text[: text.rindex("`")]
        # Where little stands before the quotation, its beginning says more.
        text = before if len(before) * 2 > len(text) else text.replace("`", "")
    text = text.rstrip(_LOOSE)
    while _ends_open(text) and " " in text:
        text = text[: text.rfind(" ")].rstrip(_LOOSE)
    return text


def _to_character(text: str, room: int, measure: Measure) -> str:
    """The longest beginning of `text` that fits, whole characters only, accents included."""
    low, high = 0, min(len(text), max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    while 0 < low < len(text) and (_joins(text[low]) or text[low - 1] == "\u200d"):
        low -= 1
    return text[:low].rstrip()


def _joins(character: str) -> bool:
    """Whether a character belongs to the one before it."""
    return unicodedata.combining(character) > 0 or character in _JOINERS


def _ends_open(text: str) -> bool:
    last = text.rsplit(" ", 1)[-1]
    return last.casefold() in _LEADING
