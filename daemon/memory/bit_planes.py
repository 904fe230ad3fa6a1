"""The signs of many vectors, searched for those that are nearest to a question.

A vector is reduced to a bit for each dimension: whether its value there is not negative. The bits
of all items in one dimension are one number, a plane, with a bit for each item, so that one
operation on planes works on all items at once: 100,000 items are searched within a millisecond,
without a package.

A search looks at the dimensions in which the question's values are largest, which decide the angle
more than the others, and counts for each item in how many of them it has the question's sign. The
largest count twice. These counts are planes, too, one for each binary digit. The items with the
highest counts are near; the vectors themselves then say how near (`vectors.cosine_to`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec

# The dimensions that count, and those of them that count twice.
_COUNTED: Final = 72
_TWICE: Final = 24
# The items whose bits are turned into planes at once, as one text.
_TURNED: Final = 8_192
_BYTE: Final = 8
# Most bytes of a mask are empty; a search for 1 passes over these in C.
_FILLED: Final = bytes(byte > 0 for byte in range(256))
# The bits that each byte has.
_BITS: Final = [[bit for bit in range(_BYTE) if byte >> bit & 1] for byte in range(256)]


class BitPlanes(msgspec.Struct, frozen=True, gc=False):
    """The signs of items, which are named by their places from 0 on. Nothing in it changes."""

    size: int
    planes: tuple[int, ...]  # for each dimension, the bits of all items, the first item's lowest
    there: int  # which places have an item

    @classmethod
    def of(cls, signs: Sequence[int], dimensions: int) -> BitPlanes:
        """Items by their signs: numbers whose highest bit is the first dimension's."""
        planes = [0] * dimensions
        for first in range(0, len(signs), _TURNED):
            part = signs[first : first + _TURNED]
            # The last item is written first, as the highest bit of each plane.
            text = "".join([format(number, f"0{dimensions}b") for number in reversed(part)])
            for at in range(dimensions):
                planes[at] |= int(text[at::dimensions], 2) << first
        return cls(len(signs), tuple(planes), (1 << len(signs)) - 1)

    @property
    def count(self) -> int:
        """The number of items."""
        return self.there.bit_count()

    def with_added(self, other: BitPlanes) -> BitPlanes:
        """These items and others with as many dimensions, whose places follow."""
        size = self.size
        pairs = zip(self.planes, other.planes, strict=True)
        planes = tuple(mine | its << size for mine, its in pairs)
        return BitPlanes(size + other.size, planes, self.there | other.there << size)

    def without(self, places: Iterable[int]) -> BitPlanes:
        """The same without the items at some places, which are not used again."""
        gone = 0
        for place in places:
            gone |= 1 << place
        return msgspec.structs.replace(self, there=self.there & ~gone)

    def nearest(self, question: Sequence[int], limit: int) -> list[int]:
        """The places of the `limit` items whose signs agree most with a vector, in no order.

        `question` has at least as many dimensions as the items.
        """
        near, tied, left = 0, self.there, limit
        for digit in reversed(self._agreement(question)):
            higher = tied & digit
            if (count := higher.bit_count()) > left:
                tied = higher
            else:
                near, tied, left = near | higher, tied ^ higher, left - count
        return _places(near, limit) + _places(tied, left)

    def _agreement(self, question: Sequence[int]) -> list[int]:
        """In how much each item agrees with a vector: the binary digits, the lowest first."""
        largest = sorted(range(len(self.planes)), key=lambda at: -abs(question[at]))
        digits: list[int] = []
        carried: list[int] = []
        for counted in (largest[_TWICE:_COUNTED], largest[:_TWICE]):
            digit, carried = _digit(chain(carried, self._agreeing(question, counted)))
            digits.append(digit)
        while carried:
            digit, carried = _digit(iter(carried))
            digits.append(digit)
        return digits

    def _agreeing(self, question: Sequence[int], dimensions: Iterable[int]) -> Iterator[int]:
        """For each of some dimensions, the items that have the sign of a vector."""
        everywhere = (1 << self.size) - 1
        for at in dimensions:
            yield self.planes[at] ^ everywhere if question[at] < 0 else self.planes[at]


def _digit(planes: Iterator[int]) -> tuple[int, list[int]]:
    """The lowest digit of the sum of planes, and what is carried to the next, as planes.

    Three planes become one of their sum and one of what is carried, as in a circuit that adds.
    """
    digit, carried = 0, []
    for first in planes:
        second = next(planes, 0)
        either = digit ^ first
        if carry := digit & first | either & second:
            carried.append(carry)
        digit = either ^ second
    return digit, carried


def _places(mask: int, limit: int) -> list[int]:
    places: list[int] = []
    data = mask.to_bytes((mask.bit_length() + _BYTE - 1) // _BYTE, "little")
    filled = data.translate(_FILLED)
    at = filled.find(1)
    while at >= 0 and len(places) < limit:
        places += [_BYTE * at + bit for bit in _BITS[data[at]]]
        at = filled.find(1, at + 1)
    return places[:limit]
