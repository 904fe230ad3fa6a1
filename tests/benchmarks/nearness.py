"""Search by vectors: its time, its memory, its file, and how many of the nearest it finds.

The vectors are drawn at random around common directions. Those of a real encoder are harder: a
static one has its nearest less far from the rest.
"""

import random
import sqlite3
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from measuring import Row, milliseconds, timed
from recall import queries, ratio

from thermocline.daemon.config.settings import Tuning
from thermocline.daemon.memory.vectors import MOST_NEAR, cosine_to
from thermocline.daemon.recall.recall import Request
from thermocline.daemon.recall.recall import recall as recalled
from thermocline.daemon.recall.sources import MEMORIES
from thermocline.daemon.store.database.memory_database import connect_reader
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
_QUERIES = 150
_WARM_UP = 20


def nearness(folder: Path, size: int) -> Iterator[Row]:
    """Fill a file as the background work does, and search it."""
    folder.mkdir(parents=True)
    numbers = random.Random(size)
    directions = [numbers.randbytes(_DIMENSIONS) for _ in range(_DIRECTIONS)]
    items = {key: _near(numbers, directions) for key in range(0, 16 * size, 16)}
    file = VectorFile(folder)
    yield timed(f"vectors: store {_BATCH}", _fill(file, items))
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


def beside_words(folder: Path, state: Path) -> Iterator[Row]:
    """Recall with a vector of each memory in turns with words alone, in one process.

    `state` is the folder of a filled agent that no daemon has open; an encoder is not asked.
    """
    numbers = random.Random(1)
    directions = [numbers.randbytes(_DIMENSIONS) for _ in range(_DIRECTIONS)]
    db = connect_reader(state / "memory.db")
    rows = [row for (row,) in db.execute("SELECT row FROM memories")]
    file = VectorFile(folder)
    _fill(file, {MEMORIES.key(row): _near(numbers, directions) for row in rows})
    index = VectorIndex(folder)
    index.load(_MODEL)
    words: list[float] = []
    vectors: list[float] = []
    for asked in queries(_WARM_UP + _QUERIES).values():
        for place, query in enumerate(asked):
            request = Request(text=query, now=time.time())
            near = index.nearness(_near(numbers, directions))
            both = [(words, request), (vectors, msgspec.structs.replace(request, nearness=near))]
            # Whoever is first has colder caches of the processor.
            for times, one in both[:: 1 if place % 2 else -1]:
                taken = milliseconds([lambda one=one: _answer(db, one)])
                times.extend(taken if place >= _WARM_UP else ())
    yield ratio("recall with vectors", vectors, words, 1.5)
    index.leave()
    file.leave()
    db.close()


def _answer(db: sqlite3.Connection, request: Request) -> None:
    db.execute("BEGIN")
    recalled(db, request, Tuning())
    db.execute("ROLLBACK")


def _fill(file: VectorFile, items: Mapping[int, bytes]) -> list[float]:
    """Store vectors by their keys, and return the milliseconds of each batch."""
    generation = file.begin(Generation(0, _MODEL, _DIMENSIONS, "", bytes([1]) * _DIMENSIONS))
    texts = [EncodedText(key, 0, vector) for key, vector in items.items()]
    parts = [texts[first : first + _BATCH] for first in range(0, len(texts), _BATCH)]
    puts = milliseconds(lambda part=part: file.put(generation, part) for part in parts)
    file.rest()
    return puts


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
