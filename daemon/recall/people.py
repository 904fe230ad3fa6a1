"""Finds the known people whom a text names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from ..language import vocabulary
from ..memory.indexing import fold as fold_word
from ..memory.indexing import is_unspaced
from ..memory.stemming import STOP_WORDS
from ..store.records.names import NAME_WORD

# Stands in place of text that was removed; no name or date extends across it.
REMOVED: Final = "\0"
_POSSESSIVE: Final = re.compile(r"['’](?:s\b)?", re.IGNORECASE)


class _Name(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    full: str
    plain: bool


# Names by their first word, longest first.
_Names: TypeAlias = Mapping[str, Sequence[_Name]]


class Named(msgspec.Struct, frozen=True):
    """The people in a text, as they are known, in order; and the words that name them there."""

    people: tuple[str, ...]
    words: tuple[str, ...]


def find_people(text: str, known: Iterable[str]) -> Named:
    """The people whose full name is in `text`, or whose first name is and is unique.

    Case and accents make no difference, except for names that are also words ("Will", "May"):
    these count only with a capital letter within a sentence, or in the possessive.
    """
    result: dict[str, None] = {}
    naming: list[str] = []
    known = sorted(set(known))
    for name in sorted(filter(is_unspaced, known), key=len, reverse=True):
        if name in text:
            result[name] = None
            naming += NAME_WORD.findall(name)
    names = _by_first_word(known)
    words = list(NAME_WORD.finditer(text))
    at = 0
    while at < len(words):
        match = _match(text, words, at, names)
        if match is None or not _meant(text, words, at):
            at += 1
            continue
        name, length = match
        result[name] = None
        naming += (word.group() for word in words[at : at + length])
        at += length
    return Named(tuple(result), tuple(naming))


def _by_first_word(names: Iterable[str]) -> _Names:
    by_first: dict[str, list[_Name]] = {}
    for full in names:
        words = tuple(fold_word(word) for word in NAME_WORD.findall(full))
        if words:
            plain = full.replace(" ", "").isalpha()
            by_first.setdefault(words[0], []).append(_Name(words, full, plain))
    for result in by_first.values():
        result.sort(key=lambda name: -len(name.words))
    return by_first


def _match(
    text: str, words: Sequence[re.Match[str]], at: int, names: _Names
) -> tuple[str, int] | None:
    """The name that begins at a word, and its number of words.

    No name extends across removed text.
    """
    candidates = names.get(fold_word(words[at].group()), ())
    for name in candidates:
        length = len(name.words)
        if REMOVED in text[words[at].start() : words[min(at + length, len(words)) - 1].start()]:
            continue
        if tuple(fold_word(word.group()) for word in words[at : at + length]) == name.words:
            return name.full, length
    if len(candidates) == 1 and candidates[0].plain and len(candidates[0].words[0]) > 1:
        return candidates[0].full, 1
    return None


def _meant(text: str, found: Sequence[re.Match[str]], at: int) -> bool:
    word = found[at]
    key = fold_word(word.group())
    if not any(
        key in words
        for words in (
            STOP_WORDS,
            vocabulary.words("also_words"),
            vocabulary.words("months"),
            vocabulary.words("days"),
        )
    ):
        return True
    owns = _POSSESSIVE.match(text, word.end()) is not None
    return owns or (at > 0 and word.group()[0].isupper())
