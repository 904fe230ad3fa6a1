"""Prepares text for the full-text index, and queries in the same way."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from .han import simplified
from .records import SPOKEN_CONTEXT, Memory

# Scripts without blanks between words. Hangul has blanks, but appends particles to words.
_UNSPACED: Final = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana and iteration marks
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"
    "]+"
)

# Porter's stemmer takes this name for "in"; its other spelling has a stem of its own.
_INES: Final = re.compile(r"\bin[eé]s\b", re.IGNORECASE)
# The Unicode categories that the index treats as parts of a word; `_` does not separate words.
_IN_WORDS: Final = frozenset({"Mn", "Mc", "Co"})
_ASCII_WORD: Final = re.compile(r"\w+")


def index_text(text: str) -> str:
    """`text` as it is indexed: NFKC, with runs of unspaced scripts cut into overlapping pairs.

    A run of one character is unchanged. Queries are cut by the same function, so that any part
    of a run of two or more characters is found.
    """
    if text.isascii():
        # Most texts end here.
        return _INES.sub("Inez", text) if "ines" in text.lower() else text
    return _INES.sub("Inez", _UNSPACED.sub(_pairs, unicodedata.normalize("NFKC", text)))


def index_words(text: str) -> list[str]:
    """The words of `text`, cut as the index cuts them, so that each is found again."""
    cut = index_text(text)
    ascii_only = cut.isascii()
    words = _ASCII_WORD.findall(cut.lower()) if ascii_only else cut.translate(_LETTERS).split()
    return [word for word in words if word.strip("_")] if "_" in cut else words


class _Letters(dict[int, str]):
    """Each character in lower case, or a blank if it is of no word; filled as they come.

    The index uses an older version of Unicode than Python, and does not fold newer capitals. Unlike
    `casefold`, this keeps "ß", as the index does.
    """

    def __missing__(self, code: int) -> str:
        char = letter = chr(code)
        if unicodedata.ucd_3_2_0.category(char) in {"Lu", "Lt"}:
            letter = char.lower()
        in_word = char == "_" or char.isalnum() or unicodedata.category(char) in _IN_WORDS
        self[code] = result = letter if in_word else " "
        return result


_LETTERS: Final = _Letters()


def is_unspaced(name: str) -> bool:
    """Whether a name is longer than one character and has some of a script without blanks."""
    return len(name) > 1 and not name.isascii() and index_text(name).split() != name.split()


def fold(word: str) -> str:
    """`word` in lower case, without accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFD", word.lower())
    return "".join(part for part in parts if not unicodedata.combining(part))


def _pairs(match: re.Match[str]) -> str:
    run = simplified(match.group())
    if len(run) == 1:
        return f" {run} "
    return " " + " ".join(run[i : i + 2] for i in range(len(run) - 1)) + " "


def indexed_columns(memory: Memory) -> tuple[str, str, str]:
    """The values of the index's columns `text`, `subject` and `tags` for `memory`.

    Behind the tags are the words that were said beside it, by which it is found too.
    """
    body = f"{memory.text}\n{memory.outcome}" if memory.outcome else memory.text
    beside = memory.data.get(SPOKEN_CONTEXT) if isinstance(memory.data, dict) else None
    others = beside.split() if isinstance(beside, str) else []
    return body, memory.subject, " ".join((*memory.tags, *others))
