"""Which statements of a long text were made before, in much the same words."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ..similarity import exact_key, shingles
from ..statement import read

_ALIKE: Final = 0.6
# A shingle in more statements than these tells none apart.
_COMMON: Final = 32


class Seen:
    """The statements so far, found again by what they share; takes time with their length.

    Two are alike when they share most of their words in the same order, all of their numbers,
    and both or neither deny.
    """

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._sizes: list[int] = []
        self._marks: list[tuple[frozenset[str], bool]] = []
        self._by_shingle: dict[str, list[int]] = {}

    def add(self, text: str) -> bool:
        """Remember `text`; whether it is new, being like none before."""
        key = exact_key(text)
        found = shingles(text)
        statement = read(text)
        numbers = frozenset(word for word in statement.words if any(map(str.isdigit, word)))
        marks = (numbers, bool(statement.negations))
        if key in self._keys or self._like_another(found, marks):
            return False
        self._keys.add(key)
        place = len(self._sizes)
        self._sizes.append(len(found))
        self._marks.append(marks)
        for shingle in found:
            places = self._by_shingle.setdefault(shingle, [])
            if len(places) < _COMMON:
                places.append(place)
        return True

    def _like_another(self, found: frozenset[str], marks: tuple[frozenset[str], bool]) -> bool:
        shared = Counter(place for shingle in found for place in self._by_shingle.get(shingle, ()))
        return any(
            self._marks[place] == marks
            and both >= _ALIKE * (len(found) + self._sizes[place] - both)
            for place, both in shared.items()
        )
