"""Vectors of texts: eight bits a dimension, and the bits of their signs, which are compared first.

A vector is `bytes`, one signed byte for each dimension; its scale says nothing, only its direction.
The share of their signs that differ approximates the angle between two vectors (Charikar:
Similarity estimation techniques from rounding algorithms, 2002); `bit_planes` searches by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

# More dimensions are stored, and compared last; the first are enough to choose whom to compare.
MOST_BITS: Final = 384
_LARGEST: Final = 127
_SIGNS: Final = bytes(ord("1") if value < 128 else ord("0") for value in range(256))
# A signed byte as it is read without a sign, moved by half of the range to keep the order.
_HALF: Final = 128
_MOVED: Final = bytes(value ^ _HALF for value in range(256))


class Nearness(Protocol):
    """How near in meaning the items of one memory are to a question, as cosines from −1 to 1.

    An item is named by its key in recall; one without a vector is missing in the answers.
    """

    def nearest(self, limit: int) -> list[tuple[int, float]]:
        """The `limit` nearest items, approximately: key and cosine, the nearest first.

        May be called on any thread.
        """
        ...


# The number of items whose nearness counts.
MOST_NEAR: Final = 24


def nearer_than_rest(near: Mapping[int, float]) -> dict[int, float]:
    """How much nearer each of the nearest items is than what is not near, 0 to 1.

    Encoders differ in the cosine of texts that have nothing in common: it is at most that of the
    last of `MOST_NEAR`; of fewer, which may all be near, at most half of the first. `near` are the
    cosines of the nearest items by key, at most `MOST_NEAR`.
    """
    rest = min(near.values(), default=0.0)
    if len(near) < MOST_NEAR:
        rest = min(rest, max(near.values(), default=0.0) / 2)
    return {key: (value - rest) / ((1 - rest) or 1.0) for key, value in near.items()}


def quantised(numbers: Sequence[float]) -> bytes | None:
    """The vector of some numbers; None if they are all 0, or one is not finite."""
    largest = max(map(abs, numbers), default=0.0)
    if not largest or not math.isfinite(sum(numbers)):
        return None
    scale = _LARGEST / largest
    return bytes(round(number * scale) & 0xFF for number in numbers)


def bit_count(dimensions: int) -> int:
    """The number of `sign_bits` of a vector."""
    return min(dimensions, MOST_BITS)


def sign_bits(vector: bytes) -> int:
    """The signs of the first dimensions, a bit for each: 1 unless it is negative."""
    return int(vector[:MOST_BITS].translate(_SIGNS), 2)


def cosine_to(vector: bytes) -> Callable[[bytes], float]:
    """The cosine of the angle to this vector, as a function of others with as many dimensions."""
    # By the law of cosines: distances need no loop of ours, and do not change if all is moved.
    zero, moved = (_HALF,) * len(vector), tuple(vector.translate(_MOVED))
    length = math.dist(zero, moved)

    def compared(second: bytes) -> float:
        others = tuple(second.translate(_MOVED))
        its, apart = math.dist(zero, others), math.dist(moved, others)
        both = 2 * length * its
        return (length * length + its * its - apart * apart) / both if both else 0.0

    return compared


def cosine(first: bytes, second: bytes) -> float:
    """The cosine of the angle between two vectors with as many dimensions."""
    return cosine_to(first)(second)


def numbers_of(vector: bytes) -> list[int]:
    """The values of a vector, from −127 to 127."""
    return memoryview(vector).cast("b").tolist()
