"""Bits of many items: what a search finds is what comparing each item finds."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.bit_planes import BitPlanes

WIDTH = 12
NUMBERS = st.lists(st.integers(0, 2**WIDTH - 1), max_size=60)


def distances(numbers: list[int], places: list[int], question: int) -> list[int]:
    return sorted((numbers[place] ^ question).bit_count() for place in places)


@given(
    NUMBERS, NUMBERS, st.sets(st.integers(0, 119)), st.integers(0, 2**WIDTH - 1), st.integers(0, 70)
)
def test_the_nearest_are_those_with_the_fewest_differences(first, more, gone, question, limit):
    numbers = first + more
    gone &= {*range(len(numbers))}
    planes = BitPlanes.of(first, WIDTH).with_added(BitPlanes.of(more, WIDTH)).without(gone)
    there = [place for place in range(len(numbers)) if place not in gone]
    assert planes.count == len(there)
    places = planes.nearest(question, limit)
    assert len({*places}) == len(places)
    assert {*places} <= {*there}
    assert distances(numbers, places, question) == distances(numbers, there, question)[:limit]


def test_the_nearest_among_many_items_of_any_width():
    for width in [1, 64, 384]:
        random = Random(width)
        question = random.getrandbits(width)
        others = [random.getrandbits(width) for _ in range(9_000)]
        near = [question ^ (1 << random.randrange(width)) for _ in range(40)]
        planes = BitPlanes.of(others[:5_000] + near + others[5_000:], width)
        places = planes.nearest(question, 64)
        assert len({*places}) == 64
        assert width == 1 or {*range(5_000, 5_040)} == {*places[:40]}
