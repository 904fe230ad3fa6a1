"""Bits of many items, searched by Hamming distance.

Of each bit there is one number with a bit for each item, so that one operation on such numbers
works on all items at once: 100,000 items of 256 bits are compared in milliseconds, without a
package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

# The items whose bits are turned at once, as one text.
_TURNED: Final = 8_192
_BYTE: Final = 8
# A search in C: most bytes of a mask are empty.
_NOT_EMPTY: Final = re.compile(rb"[^\0]")


class BitPlanes(msgspec.Struct, frozen=True, gc=False):
    """The bits of items, which are named by their places from 0 on. Nothing in it changes.

    Attributes:
        size: the number of places.
        planes: for each bit, the first first, its values by place.
        there: which places have an item.
    """

    size: int
    planes: tuple[int, ...]
    there: int

    @classmethod
    def of(cls, numbers: Sequence[int], width: int) -> BitPlanes:
        """The items of some numbers with `width` bits each."""
        planes = [0] * width
        for first in range(0, len(numbers), _TURNED):
            part = numbers[first : first + _TURNED]
            # The last item is written first, as the highest bit of each plane.
            text = "".join([format(number, f"0{width}b") for number in reversed(part)])
            for bit in range(width):
                planes[bit] |= int(text[bit::width], 2) << first
        return cls(len(numbers), tuple(planes), (1 << len(numbers)) - 1)

    @property
    def count(self) -> int:
        """The number of items."""
        return self.there.bit_count()

    def with_added(self, other: BitPlanes) -> BitPlanes:
        """These items and others of the same width, whose places follow."""
        size = self.size
        pairs = zip(self.planes, other.planes, strict=True)
        planes = tuple(mine | its << size for mine, its in pairs)
        return BitPlanes(size + other.size, planes, self.there | other.there << size)

    def without(self, places: Iterable[int]) -> BitPlanes:
        """The same without the items at some places, which are not used again."""
        gone = 0
        for place in places:
            gone |= 1 << place
        return BitPlanes(self.size, self.planes, self.there & ~gone)

    def nearest(self, number: int, limit: int) -> list[int]:
        """The places of the `limit` items whose bits differ least from those of `number`."""
        everywhere, width = (1 << self.size) - 1, len(self.planes)
        differences = [
            plane ^ everywhere if bit == "1" else plane
            for plane, bit in zip(self.planes, format(number, f"0{width}b"), strict=True)
        ]
        near, tied = 0, self.there
        for digits in reversed(_added(differences)):
            larger = tied & digits
            smaller = tied ^ larger
            if near.bit_count() + smaller.bit_count() >= limit:
                tied = smaller
            else:
                near |= smaller
                tied = larger
        places = _places(near, limit)
        return places + _places(tied, limit - len(places))


def _added(planes: list[int]) -> list[int]:
    """The sum of the planes at each place: a plane for each binary digit, the lowest first.

    Three planes become one of their sum and one of what is carried, as in a circuit that adds.
    """
    digits = []
    while planes:
        carried = []
        while len(planes) > 2:
            one, two, three = planes.pop(), planes.pop(), planes.pop()
            either = one ^ two
            planes.append(either ^ three)
            carried.append(one & two | either & three)
        if len(planes) > 1:
            one, two = planes
            carried.append(one & two)
            planes = [one ^ two]
        digits.append(planes[0])
        planes = carried
    return digits


def _places(mask: int, limit: int) -> list[int]:
    """The first `limit` places that a mask has."""
    places: list[int] = []
    data = mask.to_bytes((mask.bit_length() + _BYTE - 1) // _BYTE, "little")
    for found in _NOT_EMPTY.finditer(data):
        if len(places) >= limit:
            break
        first, byte = _BYTE * found.start(), found[0][0]
        places += [first + bit for bit in range(_BYTE) if byte >> bit & 1]
    return places[:limit]
