"""Which of the people that an agent knows a question names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from ..memory.indexing import index_text
from ..memory.names import ALSO_WORDS
from ..memory.stop_words import STOP_WORDS
from .dates.tokens import fold
from .dates.words import MONTHS, WEEKDAYS

_WORD: Final = re.compile(r"[^\W_]+")
_POSSESSIVE: Final = re.compile(r"['’](?:s\b)?", re.IGNORECASE)


class _Name(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    full: str
    plain: bool


class Roster(msgspec.Struct, frozen=True):
    """Known people, ready to be found: by their first word, and those in unspaced scripts."""

    by_first: dict[str, tuple[_Name, ...]]
    unspaced: tuple[str, ...]

    @property
    def words(self) -> Collection[str]:
        """The first words of all names, folded."""
        return self.by_first.keys()


class Named(msgspec.Struct, frozen=True):
    """The people found, as they are known, in order; their words; and the text without them."""

    people: tuple[str, ...]
    words: tuple[str, ...]
    rest: str


def roster(names: Iterable[str]) -> Roster:
    """What `find_people` needs to know of `names`; worth keeping while they don't change."""
    by_first: dict[str, list[_Name]] = {}
    unspaced: list[str] = []
    for full in sorted({name for name in names if name.strip()}):
        if index_text(full).split() != full.split() and len(full) > 1 and not full.isascii():
            unspaced.append(full)
        words = tuple(fold(word) for word in _WORD.findall(full))
        if words:
            plain = full.replace(" ", "").isalpha()
            by_first.setdefault(words[0], []).append(_Name(words, full, plain))
    longest_first = {
        first: tuple(sorted(found, key=lambda name: -len(name.words)))
        for first, found in by_first.items()
    }
    return Roster(longest_first, tuple(sorted(unspaced, key=len, reverse=True)))


def find_people(text: str, known: Roster) -> Named:
    """The people whose full name stands in `text`, or whose first name does and is no other's.

    Case and accents make no difference, except for names that are also words ("Will", "May"):
    these count where they are written large within a sentence, or in the possessive.
    """
    found: dict[str, None] = {}
    cuts: list[tuple[int, int]] = []
    for name in known.unspaced:
        at = text.find(name)
        if at >= 0:
            found[name] = None
            cuts.append((at, at + len(name)))
    words = list(_WORD.finditer(text))
    at = 0
    while at < len(words):
        match = _match(words, at, known)
        if match is None or not _meant(text, words, at):
            at += 1
            continue
        name, length = match
        found[name] = None
        cuts.append((words[at].start(), _end(text, words[at + length - 1].end())))
        at += length
    return Named(tuple(found), *_cut(text, cuts))


def _match(words: Sequence[re.Match[str]], at: int, known: Roster) -> tuple[str, int] | None:
    """The name that begins at a word, and how many words of the text it takes."""
    candidates = known.by_first.get(fold(words[at].group()), ())
    for name in candidates:
        length = len(name.words)
        if tuple(fold(word.group()) for word in words[at : at + length]) == name.words:
            return name.full, length
    if len(candidates) == 1 and candidates[0].plain and len(candidates[0].words[0]) > 1:
        return candidates[0].full, 1
    return None


def _meant(text: str, found: Sequence[re.Match[str]], at: int) -> bool:
    word = found[at]
    key = fold(word.group())
    if not any(key in words for words in (STOP_WORDS, ALSO_WORDS, MONTHS, WEEKDAYS)):
        return True
    owns = _POSSESSIVE.match(text, word.end()) is not None
    return owns or (at > 0 and word.group()[0].isupper())


def _end(text: str, at: int) -> int:
    possessive = _POSSESSIVE.match(text, at)
    return possessive.end() if possessive else at


def _cut(text: str, cuts: list[tuple[int, int]]) -> tuple[tuple[str, ...], str]:
    words: list[str] = []
    rest: list[str] = []
    kept_from = 0
    for start, end in sorted(cuts):
        if start >= kept_from:
            words += _WORD.findall(text[start:end])
            rest.append(text[kept_from:start])
            kept_from = end
    return tuple(words), " ".join((*rest, text[kept_from:]))
