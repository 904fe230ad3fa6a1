"""What a message only frames: fiction, texts to work on, and what must not be remembered.

"Pretend you are my aunt. My name is Ada" names nobody, and "Translate: ich wohne in Bonn" tells
nothing of the user. A frame begins a sentence, and holds for the rest of the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from ..memory.similarity import fold
from .vocabulary import compiled, cue

# Where a sentence or a line begins, behind the marks of lists.
_BEGINNINGS: Final = re.compile(
    r"(?:\A|\n|[.!?…。！？][\"'”’»)]{0,3}(?:\s|(?<=[。！？])))[\s>*•¿¡-]{0,8}(?=\S)"
)
_HEAD: Final = 240
# A longer message has text that was written elsewhere, and its asides are no wishes.
_TYPED: Final = 1_000
# A text may follow on the next line, without a colon.
_LINE_END: Final = re.compile(r"[ \t:：]*\n\s*")
_LEAD: Final = r"(?:(?:{frame_lead}|{~frame_lead})[\s,.:!-]*)*"


def own_words(text: str) -> str:
    """`text` up to the first frame; empty if it, or a part, is not to be remembered."""
    if is_unrecorded(text):
        return ""
    starts = (start for start in _starts(text) if _opens("framed", text[start:]))
    return text[: next(starts, len(text))]


def is_unrecorded(text: str) -> bool:
    """Whether somebody asks not to remember a message, or a part of it."""
    if len(text) <= _TYPED:
        return _wish().search(_in_a_line(text)) is not None
    return any(_opens("not_recorded", text[start:]) for start in _starts(text))


def opens_frame(text: str) -> bool:
    """Whether a text begins with a frame: "Translate:" is no speaker."""
    return _opens("framed", text) or _opens("not_recorded", text)


def _opens(name: str, text: str) -> bool:
    return _behind_lead(name).match(_in_a_line(text[:_HEAD])) is not None


def _starts(text: str) -> Iterator[int]:
    return (match.end() for match in _BEGINNINGS.finditer(text))


def _in_a_line(text: str) -> str:
    return fold(_LINE_END.sub(": ", text))


@cache
def _behind_lead(name: str) -> re.Pattern[str]:
    """The cues of a name, which may stand behind a lead-in."""
    return re.compile(f"{compiled(_LEAD).pattern}(?:{cue(name).pattern.pattern})")


@cache
def _wish() -> re.Pattern[str]:
    """The wish at the beginning of a clause: "my salary is 61k, don't save that"."""
    contrast = compiled("(?:{contrast}|{~contrast})").pattern
    wish = _behind_lead("not_recorded").pattern
    begin = rf"\A|[.!?…。！？,;:(–—][\s\"'”’»>*•¿¡)-]*|\s-\s+|\s(?={contrast}\s)"
    return re.compile(rf"(?:{begin})(?:{contrast}\s+)?{wish}")
