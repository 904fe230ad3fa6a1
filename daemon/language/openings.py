"""How what an expression finds must begin: a test before the search, at which most texts end.

Expressions for cues have hundreds of alternatives, and are looked for in every text; that none of
their beginnings is in it shows in a tenth of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from operator import add
from typing import Final, TypeAlias

_WORD: Final = re.compile(r"\w+")
_GROUP: Final = re.compile(r"\((\?(?:P<\w+>|<?[=!]|.))?")
_CLASS: Final = re.compile(r"\[(\^?\]?(?:\\.|[^\]\\])*)\]", re.DOTALL)
# A class that has more than single characters.
_WIDE: Final = re.compile(r"\^|\\|.-.", re.DOTALL)
_REPEATED: Final = re.compile(r"([?*+]|\{\d+(?:,\d*)?\})[?+]?")
_ASSERTIONS: Final = frozenset({"^", "$", r"\b", r"\B", r"\A", r"\Z"})
# The beginnings in a shorter text are kept.
_SHORT: Final = 400
# Characters by which an opening is found, and of the longest.
_LENGTH: Final = 3
_BEGINNING: Final = 6
_LONGEST: Final = 8
_ANYTHING: Final = "\0"
# Characters that come first, or behind `_ANYTHING` later, and whether these are all that is known.
_Item: TypeAlias = tuple[str, bool]
_NOTHING: Final[_Item] = ("", False)


# A name, an expression, and what stands before it; see `Finder`.
Entry: TypeAlias = tuple[str, str, str | None]


class Finder:
    """Finds which of some expressions match somewhere in a text.

    Each is compiled when one of its openings first stands in a text.

    Args:
        entries: a name, an expression, and what must be true before what it finds, which then ends
            with a word too and, if it begins with a letter, begins a word; None: it may be a part
            of a word.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: list[tuple[str, str]] = []
        # By their first characters: openings, with the numbers of their entries.
        self._openings: dict[str, list[tuple[str, int]]] = {}
        # The same of those that begin a word, by up to `_BEGINNING` characters.
        self._of_words: dict[str, list[tuple[str, int]]] = {}
        self._short: list[tuple[str, int]] = []
        for number, (name, expression, before) in enumerate(entries):
            of_words = before is not None
            whole = rf"{before}(?:{expression})(?!\w)" if of_words else expression
            self._entries.append((name, whole))
            for begin, _ in sorted(_of_group(expression, 0)[0]):
                text = begin.removeprefix(_ANYTHING)
                if of_words and begin[:1].isalnum():
                    self._of_words.setdefault(text[:_BEGINNING], []).append((text, number))
                elif len(text) >= _LENGTH:
                    self._openings.setdefault(text[:_LENGTH], []).append((text, number))
                else:
                    self._short.append((text, number))
        self._keys = frozenset(self._openings)

    def names_in(self, text: str) -> Iterator[str]:
        """The names of those that match, each once."""
        possible = [number for item, number in self._short if item in text]
        # Of a long text, a set of all its runs takes longer than looking for a few.
        if len(text) > len(self._keys):
            keys = frozenset([key for key in self._keys if key in text])
        else:
            keys = self._keys & _openings_in(text)
        for key in keys:
            possible += [number for item, number in self._openings[key] if item in text]
        words = self._of_words
        if len(text) > len(words):
            items = (item for key in words if key in text for item in words[key])
            possible += [number for item, number in items if item in text]
        else:
            for key, start in _kept(text) if len(text) < _SHORT else _beginnings_in(text):
                if key in words:
                    possible += [
                        number for item, number in words[key] if text.startswith(item, start)
                    ]
        names: set[str] = set()
        for number in sorted(set(possible)):
            name, expression = self._entries[number]
            if name not in names and _compiled(expression).search(text):
                names.add(name)
                yield name

    def any_in(self, text: str) -> bool:
        """Whether any matches."""
        return next(self.names_in(text), None) is not None


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


@lru_cache(128)
def _openings_in(text: str) -> frozenset[str]:
    """All runs of three characters."""
    return frozenset(map(add, map(add, text, text[1:]), text[2:]))


def _beginnings_in(text: str) -> Iterator[tuple[str, int]]:
    """The first characters of each word, up to `_BEGINNING` with what follows, and its place."""
    for match in _WORD.finditer(text):
        start = match.start()
        for end in range(start + 1, start + _BEGINNING + 1):
            yield text[start:end], start


@lru_cache(16)
def _kept(text: str) -> Sequence[tuple[str, int]]:
    """`_beginnings_in`, which the next finder needs, too."""
    return tuple(_beginnings_in(text))


def _of_group(source: str, at: int) -> tuple[set[_Item], int]:
    """How the alternatives begin that stand at a place, and where they end."""
    items: set[_Item] = set()
    current = {_NOTHING}
    while at < len(source) and source[at] != ")":
        if source[at] == "|":
            items |= current
            current, at = {_NOTHING}, at + 1
        else:
            following, at = _of_element(source, at)
            current = {_joined(item, more) for item in current for more in following}
    return items | current, at


def _of_element(source: str, at: int) -> tuple[set[_Item], int]:
    """How a group, a class or a character begins, with the times it is repeated."""
    if group := _GROUP.match(source, at):
        items, at = _of_group(source, group.end())
        kind, at = group[1] or "?:", at + 1
        if kind == "?=":
            # What is seen ahead must be there, whatever follows.
            items = {(text, True) if text.strip(_ANYTHING) else _NOTHING for text, _ in items}
        elif kind.endswith(("!", "=")):
            items = {_NOTHING}
        elif kind != "?:" and not kind.startswith("?P<"):
            items = {(_ANYTHING, False)}
    elif listed := _CLASS.match(source, at):
        characters = [_ANYTHING] if _WIDE.search(listed[1]) else [*listed[1]]
        items, at = {(character, False) for character in characters}, listed.end()
    else:
        element = source[at : at + 1 + (source[at] == "\\")]
        is_wide = element == "." or (len(element) > 1 and element[1].isalnum())
        text = "" if element in _ASSERTIONS else _ANYTHING if is_wide else element[-1]
        items, at = {(text, False)}, at + len(element)
    if times := _REPEATED.match(source, at):
        at = times.end()
        if times[1] != "?":
            items = {(text, bool(text.strip(_ANYTHING))) for text, _ in items}
        if times[1][0] in "?*" or times[1].startswith("{0"):
            items = items | {_NOTHING}
    return items, at


def _joined(item: _Item, more: _Item) -> _Item:
    text, is_closed = item
    if is_closed or more == _NOTHING:
        return item
    if not text.strip(_ANYTHING) and more[0].startswith(_ANYTHING):
        return more
    if more[0].startswith(_ANYTHING):
        return text, True
    joined = text + more[0]
    return joined[:_LONGEST], more[1] or len(joined) >= _LONGEST
