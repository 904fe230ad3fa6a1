"""Signs of many items: what a search finds is what comparing each item finds."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.bit_planes import BitPlanes

WIDTH = 12
NUMBERS = st.lists(st.integers(0, 2**WIDTH - 1), max_size=60)


def question_of(number: int, width: int, values: list[int] | None = None) -> list[int]:
    """A vector with the signs of a number, and these values without their sign."""
    signs = [1 if bit == "1" else -1 for bit in format(number, f"0{width}b")]
    return [sign * value for sign, value in zip(signs, values or [1] * width, strict=True)]


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
    places = planes.nearest(question_of(question, WIDTH), limit)
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
        places = planes.nearest(question_of(question, width), 64)
        assert len({*places}) == len(places) == 64
        assert width == 1 or {*range(5_000, 5_040)} <= {*places}


def test_the_dimensions_in_which_the_question_is_largest_decide():
    width, large = 256, 32
    values = [100 if place < large else 1 for place in range(width)]
    question = Random(1).getrandbits(width)
    apart_in_large = question ^ ((1 << large) - 1) << (width - large)
    apart_in_small = question ^ ((1 << 40) - 1) << (width - large - 40)
    planes = BitPlanes.of([apart_in_large] * 9 + [apart_in_small], width)
    assert planes.nearest(question_of(question, width, values), 1) == [9]
