"""Search by vectors: its time, its memory, its file, and how many of the nearest it finds.

The vectors are drawn at random around common directions. Those of a real encoder are harder: a
static one has its nearest less far from the rest.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from measuring import Row, milliseconds, timed

from thermocline.daemon.memory.vectors import MOST_NEAR, cosine_to
from thermocline.daemon.vectors.vector_file import EncodedText, Generation, VectorFile
from thermocline.daemon.vectors.vector_index import VectorIndex

_MODEL = "static:/benchmark"
_DIMENSIONS = 256
_DIRECTIONS = 500
_ASKED = 200
_COMPARED = 40
_LEAST_FOUND = 98.0
_NEAREST = 12
_BATCH = 64


def nearness(folder: Path, size: int) -> Iterator[Row]:
    """Fill a file as the background work does, and search it."""
    folder.mkdir(parents=True)
    numbers = random.Random(size)
    directions = [numbers.randbytes(_DIMENSIONS) for _ in range(_DIRECTIONS)]
    items = {key: _near(numbers, directions) for key in range(0, 16 * size, 16)}
    file = VectorFile(folder)
    generation = file.begin(Generation(0, _MODEL, _DIMENSIONS, "", bytes([1]) * _DIMENSIONS))
    keys = [*items]
    stored = [
        [EncodedText(key, 0, items[key]) for key in keys[first : first + _BATCH]]
        for first in range(0, size, _BATCH)
    ]
    puts = milliseconds(lambda part=part: file.put(generation, part) for part in stored)
    yield timed(f"vectors: store {_BATCH}", puts)
    file.rest()
    yield Row(what="vectors: file", unit="MB", p50=file.path.stat().st_size / 1e6)
    index = VectorIndex(folder)
    tracemalloc.start()
    yield timed("vectors: load the bits", milliseconds([lambda: index.load(_MODEL)]))
    held = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    yield Row(what="vectors: memory", unit="MB", p50=held, budget=size / 10_000)
    questions = [_near(numbers, directions) for _ in range(_ASKED)]
    yield timed("vectors: the nearest", milliseconds(_asking(index, one) for one in questions))
    shares = [_share(index, items, one) for one in questions[:_COMPARED]]
    what = f"vectors: of the {_NEAREST} nearest by cosine, found"
    yield Row(
        what=what,
        unit="%",
        p50=100 * sum(shares) / len(shares),
        budget=_LEAST_FOUND,
        at_least=True,
    )
    index.leave()
    file.leave()


def _asking(index: VectorIndex, question: bytes) -> Callable[[], object]:
    def ask() -> object:
        nearness = index.nearness(question)
        return None if nearness is None else nearness.nearest(MOST_NEAR)

    return ask


def _near(numbers: random.Random, directions: list[bytes]) -> bytes:
    """One of the directions with noise in place of a part of it."""
    vector = bytearray(numbers.choice(directions))
    noise = numbers.randrange(_DIMENSIONS // 4, _DIMENSIONS // 2)
    first = numbers.randrange(_DIMENSIONS - noise)
    vector[first : first + noise] = numbers.randbytes(noise)
    return bytes(vector)


def _share(index: VectorIndex, items: dict[int, bytes], question: bytes) -> float:
    """The share of the truly nearest that the index finds."""
    cosine = cosine_to(question)
    best = sorted(items, key=lambda key: -cosine(items[key]))[:_NEAREST]
    nearness = index.nearness(question)
    found = {key for key, _ in nearness.nearest(MOST_NEAR)} if nearness is not None else set()
    return len(found & {*best}) / _NEAREST
