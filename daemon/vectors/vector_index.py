"""The vectors that answer for one agent: their signs in memory, the vectors in the file.

A search takes the items whose signs agree most with the question (`bit_planes`), reads the vectors
of these few from the file, and orders them by their cosines.
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

import msgspec

from ..errors import StoreDamaged
from ..memory.bit_planes import BitPlanes
from ..memory.vectors import MOST_NEAR, Nearness, bit_count, cosine_to, numbers_of, sign_bits
from . import vector_file
from .vector_file import EncodedText, Generation

# The items whose signs agree most, of which the cosines are computed.
_COMPARED: Final = 32


class _Loaded(msgspec.Struct, frozen=True):
    """The bits of a generation. Nothing in it changes, so that any thread may read it."""

    generation: Generation
    keys: array[int]
    bits: BitPlanes


class VectorIndex:
    """Compares questions with the items of one agent.

    About 40 bytes an item with 256 dimensions. Its methods block, and may be called on any thread.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / vector_file.FILE_NAME
        self._loaded: _Loaded | None = None
        # Of all that changes `_loaded`; readers of it need none.
        self._changing = threading.Lock()
        self._reading = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._left = False
        self.damaged = False  # whether the file could not be read since `unload`

    @property
    def generation(self) -> Generation | None:
        """The generation that is loaded, if it has a vector."""
        loaded = self._loaded
        return loaded.generation if loaded is not None and loaded.bits.there else None

    @property
    def is_loaded(self) -> bool:
        """Whether a generation is loaded, even without a vector."""
        return self._loaded is not None

    @property
    def is_sparse(self) -> bool:
        """Whether most of the places are no longer used: loading it again makes it smaller."""
        loaded = self._loaded
        return loaded is not None and 2 * loaded.bits.count < loaded.bits.size

    def load(self, model: str) -> None:
        """Load the generation that answers for `model`; `sqlite3.Error` without a sound file."""
        with self._changing:
            if self._left:
                return
            db = vector_file.open_reader(self._path)
            loaded = None
            try:
                generation = vector_file.answering(vector_file.read_generations(db), model)
                if generation is not None:
                    keys, bits = vector_file.read_bits(db, generation)
                    planes = BitPlanes.of(bits, bit_count(generation.dimensions))
                    loaded = _Loaded(generation, keys, planes)
            except BaseException:
                db.close()
                raise
            with self._reading:
                self._disconnect()
                self._db, self._loaded = db, loaded

    def add(self, generation: Generation, texts: Collection[EncodedText]) -> None:
        """Add what was stored in a generation, if it is the loaded one."""
        vectors = {text.key: text.vector for text in texts if text.vector is not None}
        with self._changing:
            loaded = self._loaded
            if loaded is not None and loaded.generation == generation:
                # They are there already if they were stored just before it was loaded.
                loaded = _without(loaded, vectors.keys())
                bits = [*map(sign_bits, vectors.values())]
                added = BitPlanes.of(bits, len(loaded.bits.planes))
                keys = loaded.keys + array("q", vectors)
                self._loaded = _Loaded(generation, keys, loaded.bits.with_added(added))

    def drop(self, keys: Iterable[int]) -> None:
        """Remove some items."""
        with self._changing:
            if self._loaded is not None:
                self._loaded = _without(self._loaded, frozenset(keys))

    def nearness(self, vector: bytes) -> Question | None:
        """How near the items are to a question with this vector; None if none is loaded."""
        loaded = self._loaded
        if loaded is None or len(vector) != loaded.generation.dimensions:
            return None
        return Question(self, loaded, vector)

    def nearest(self, keys: Iterable[int]) -> dict[int, dict[int, float]]:
        """The other items nearest to each of some items, with their cosines."""
        generation = self.generation
        vectors = [] if generation is None else self.read(generation, keys)
        result: dict[int, dict[int, float]] = {}
        for key, vector in vectors:
            question = self.nearness(vector)
            near = [] if question is None else question.nearest(MOST_NEAR + 1)
            result[key] = {other: cosine for other, cosine in near if other != key}
        return result

    def read(self, generation: Generation, keys: Iterable[int]) -> list[tuple[int, bytes]]:
        """The vectors of some items; none if the file cannot be read any more."""
        with self._reading:
            if self._db is None:
                return []
            try:
                return vector_file.read_vectors(self._db, generation, keys)
            except sqlite3.Error:
                self.damaged = True
                return []

    def require_sound(self) -> None:
        """Raise `StoreDamaged` if the file is damaged."""
        if self.damaged:
            raise StoreDamaged(f"cannot read {self._path}")

    def unload(self) -> None:
        """Forget what is loaded, and close the file."""
        with self._changing, self._reading:
            self._loaded, self.damaged = None, False
            self._disconnect()

    def leave(self) -> None:
        """Close the file for good."""
        self._left = True
        self.unload()

    def _disconnect(self) -> None:
        if self._db is not None:
            db, self._db = self._db, None
            db.close()


def _without(loaded: _Loaded, keys: AbstractSet[int]) -> _Loaded:
    if keys.isdisjoint(loaded.keys):
        return loaded
    places = [place for place, key in enumerate(loaded.keys) if key in keys]
    return _Loaded(loaded.generation, loaded.keys, loaded.bits.without(places))


class Question(Nearness):
    """The items of an index and one question, as they were when it was asked."""

    def __init__(self, index: VectorIndex, loaded: _Loaded, vector: bytes) -> None:
        self._index = index
        self._loaded = loaded
        self._vector = vector

    def nearest(self, limit: int) -> list[tuple[int, float]]:
        """The nearest items; see `Nearness`."""
        loaded = self._loaded
        places = loaded.bits.nearest(numbers_of(self._vector), max(_COMPARED, limit))
        vectors = self._index.read(loaded.generation, [loaded.keys[place] for place in places])
        cosine = cosine_to(self._vector)
        near = [(key, cosine(vector)) for key, vector in vectors]
        return sorted(near, key=lambda item: (-item[1], item[0]))[:limit]
