"""Bits of many items, searched by Hamming distance.

The items are compared by every second bit first, then the nearest by all. Of each second bit there
is one number with a bit for each item, so that one operation on such numbers works on all items at
once: 100,000 items of 256 bits are searched in a millisecond, without a package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

# One bit in this many has a plane.
_STEP: Final = 2
# The items that are compared by all bits, at least, and for each that is sought.
_COMPARED: Final = 256
_COMPARED_FOR_EACH: Final = 5
# The items whose bits are turned at once, as one text.
_TURNED: Final = 8_192
_BYTE: Final = 8
# Most bytes of a mask are empty; a search for 1 passes over these in C.
_FILLED: Final = bytes(byte > 0 for byte in range(256))
# The bits that each byte has.
_BITS: Final = [[bit for bit in range(_BYTE) if byte >> bit & 1] for byte in range(256)]


class BitPlanes(msgspec.Struct, frozen=True, gc=False):
    """The bits of items, which are named by their places from 0 on. Nothing in it changes."""

    size: int
    width: int  # the number of bits of each item
    planes: tuple[int, ...]  # for every second bit, the first first, its values by place
    rows: bytes  # all bits of the items by place, each in as many bytes
    there: int  # which places have an item

    @classmethod
    def of(cls, numbers: Sequence[int], width: int) -> BitPlanes:
        """The items of some numbers with `width` bits each."""
        bits = range(0, width, _STEP)
        planes = [0] * len(bits)
        for first in range(0, len(numbers), _TURNED):
            part = numbers[first : first + _TURNED]
            # The last item is written first, as the highest bit of each plane.
            text = "".join([format(number, f"0{width}b") for number in reversed(part)])
            for at, bit in enumerate(bits):
                planes[at] |= int(text[bit::width], 2) << first
        length = _bytes_of(width)
        rows = b"".join([number.to_bytes(length, "big") for number in numbers])
        return cls(len(numbers), width, tuple(planes), rows, (1 << len(numbers)) - 1)

    @property
    def count(self) -> int:
        """The number of items."""
        return self.there.bit_count()

    def with_added(self, other: BitPlanes) -> BitPlanes:
        """These items and others of the same width, whose places follow."""
        size = self.size
        pairs = zip(self.planes, other.planes, strict=True)
        planes = tuple(mine | its << size for mine, its in pairs)
        there = self.there | other.there << size
        return BitPlanes(size + other.size, self.width, planes, self.rows + other.rows, there)

    def without(self, places: Iterable[int]) -> BitPlanes:
        """The same without the items at some places, which are not used again."""
        gone = 0
        for place in places:
            gone |= 1 << place
        return msgspec.structs.replace(self, there=self.there & ~gone)

    def nearest(self, number: int, limit: int) -> list[int]:
        """The places of `limit` items whose bits differ little from those of `number`.

        The nearest first. They are those that differ least, unless many differ as little in every
        second bit.
        """
        compared = self._nearest_by_planes(number, max(_COMPARED, _COMPARED_FOR_EACH * limit))
        length, rows, read = _bytes_of(self.width), self.rows, int.from_bytes
        apart = {
            place: (read(rows[length * place : length * (place + 1)], "big") ^ number).bit_count()
            for place in compared
        }
        return sorted(compared, key=apart.__getitem__)[:limit]

    def _nearest_by_planes(self, number: int, limit: int) -> list[int]:
        everywhere = (1 << self.size) - 1
        bits = format(number, f"0{self.width}b")[::_STEP]
        differences = [
            plane ^ everywhere if bit == "1" else plane
            for plane, bit in zip(self.planes, bits, strict=True)
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


def _bytes_of(width: int) -> int:
    return (width + _BYTE - 1) // _BYTE


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
    places: list[int] = []
    data = mask.to_bytes((mask.bit_length() + _BYTE - 1) // _BYTE, "little")
    filled = data.translate(_FILLED)
    at = filled.find(1)
    while at >= 0 and len(places) < limit:
        places += [_BYTE * at + bit for bit in _BITS[data[at]]]
        at = filled.find(1, at + 1)
    return places[:limit]
