"""The vectors of one open agent, kept in step with its texts."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias, TypeVar

import msgspec

from ..errors import StoreDamaged
from ..llm.encoder import MOST_TEXTS, Encoder, Encoding, EncodingCost, same_encoder
from ..memory.vectors import Nearness
from ..recall.sources import CHUNKS, SOURCES, Source
from ..schemas.status import VectorStatus
from ..store.agent_store import AgentStore
from ..store.database.transaction import Event
from .vector_file import EncodedText, Generation, VectorFile, answering
from .vector_index import VectorIndex

T = TypeVar("T")
# An item's key, the version of its text, and the text.
_Text: TypeAlias = tuple[int, int, str]
# The texts that are compared with the file at once, within milliseconds.
_SLICE: Final = 1_000
_LAST_ROW: Final = (1 << 59) - 1
# Between two comparisons: in seconds, and as a multiple of the work of the last.
_COMPARED_SECONDS: Final = 1.0
_COMPARED_TIMES: Final = 20.0
_PROGRESS_SECONDS: Final = 1.0
# The pause after a piece of work, as a multiple of its time.
_PAUSE_TIMES: Final = 4.0
# What takes longer waits for a server or for a process to start, and is little work.
_LONGEST_PAUSE_SECONDS: Final = 1.0
_NOTHING: Final = ("", array("q"))
_ENCODED: Final = {source.name: source for source in SOURCES if source.encoded}


class AgentVectors:
    """Compares the texts of an open agent with its vectors, and encodes what is missing.

    Whatever happened while nobody looked, be it a kill, an import or a restored copy, shows in the
    comparison: the file names the version of each text. Its methods are called on the event loop,
    `compare` and `encode` by one task each.
    """

    def __init__(
        self, store: AgentStore, encoder: Encoder, publish: Callable[[str, Event], None]
    ) -> None:
        self.store = store
        self._encoder = encoder
        self._publish = publish
        self._file = VectorFile(store.place.folder)
        self._index = VectorIndex(store.place.folder)
        # Held while the file is compared or changed.
        self._lock = asyncio.Lock()
        # The model for which everything below was looked up.
        self._model = ""
        # Counts how often the database was opened: another one may number its rows otherwise.
        self._opened = 0
        self._generations: list[Generation] = []
        # That of the model; None before its first vectors.
        self._current: Generation | None = None
        # The sources to compare, and how often one changed.
        self._changed = set(_ENCODED)
        self._changes = 0
        self._compare_after = 0.0
        # By source: the number of texts, and the keys of those without a vector, newest first.
        self._total: dict[str, int] = {}
        self._missing: dict[str, array[int]] = {}
        # Those that are with the encoder now.
        self._in_flight: Sequence[int] = ()
        self._is_doubtful = self._is_resting = False
        self._published = 0.0
        store.leave_vectors = self.leave

    @property
    def status(self) -> VectorStatus:
        """The progress, as far as it is known."""
        generation = answering(self._generations, self._model)
        answers = "" if generation is None or generation == self._current else generation.model
        left = sum(map(len, self._missing.values())) + len(self._in_flight)
        # How many changed is not known before the comparison.
        left = max(left, int(self.is_waiting))
        total = sum(self._total.values())
        return VectorStatus(self._model, max(0, total - left), left, answers)

    @property
    def is_waiting(self) -> bool:
        """Whether texts changed that are not compared yet."""
        return bool(self._changed)

    @property
    def needs_comparison(self) -> bool:
        """Whether `compare` has something to do now."""
        if not self._is_looked_up or self._index.damaged or self._may_compare:
            return True
        return not (self._changed or self._is_resting or self.needs_encoding or self._in_flight)

    @property
    def needs_encoding(self) -> bool:
        """Whether `encode` has something to do."""
        return self._is_looked_up and (self._is_doubtful or any(self._missing.values()))

    def changed(self, event: str) -> None:
        """Note an event of the agent: its texts may have changed."""
        chunks = {CHUNKS.name}
        self._changes += 1
        self._changed |= chunks if event.startswith("files.") else _ENCODED.keys() - chunks

    async def near(self, text: str) -> Nearness | str:
        """How near the items are to a question, or why words answer alone."""
        if not self._index.is_loaded:
            await self._load()
        generation = self._index.generation
        if generation is None:
            return "no memory is encoded yet"
        encoding = await self._encoder.encode_query(text, model=generation.model)
        vector = None if encoding is None else encoding.vectors[0]
        if encoding is None or vector is None:
            return f"{generation.model} did not encode the question in time"
        question = self._index.nearness(vector)
        if question is None or not same_encoder(encoding, _identity(generation)):
            self._is_doubtful = True
            return f"{generation.model} is another model now, which encodes all memories again"
        return question

    async def nearest(self, keys: Sequence[int]) -> dict[int, dict[int, float]]:
        """The nearest items of some items, with their cosines."""
        if not self._index.is_loaded:
            await self._load()
        return await asyncio.to_thread(self._index.nearest, keys)

    async def compare(self) -> None:
        """Find texts without a vector and delete vectors without a text, or finish.

        A damaged file is replaced.
        """
        async with self._lock:
            with suppress(StoreDamaged):
                self._index.require_sound()
                if not self._is_looked_up:
                    await self._look_up(self._encoder.model or "")
                if self._may_compare:
                    await self._compare()
                elif not (self._changed or self.needs_encoding or self._in_flight):
                    await self._finish()
                return
            await asyncio.to_thread(self._index.unload)
            await asyncio.to_thread(self._file.remove)
            self._model = ""

    async def encode(self) -> None:
        """Encode some of the texts without a vector; `ModelUnavailable` if the model cannot now."""
        began, model, changes = time.monotonic(), self._model, self._changes
        name, keys = next(((name, keys) for name, keys in self._missing.items() if keys), _NOTHING)
        some = self._in_flight = keys[:MOST_TEXTS]
        del keys[:MOST_TEXTS]
        try:
            texts = await self.store.read(partial(_texts, name, some))
            encoding = await self._encoder.encode([text for _, _, text in texts], model=model)
            async with self._lock:
                await self._take(encoding, [(key, version) for key, version, _ in texts])
        except BaseException:
            if some:
                rest = self._missing.get(name, ())
                self._missing[name] = array("q", sorted([*some, *rest], reverse=True))
            raise
        finally:
            self._in_flight = ()
        self._is_doubtful = False
        if changes != self._changes:
            # One of the texts may have been deleted meanwhile.
            self._changed |= {name} & _ENCODED.keys()
        self._publish_progress(at_once=False)
        await _pause(began)

    async def leave(self) -> None:
        """Close the files for good."""
        await asyncio.to_thread(self._index.leave)
        await asyncio.to_thread(self._file.leave)

    @property
    def _is_looked_up(self) -> bool:
        return self._model == self._encoder.model and self._opened == self.store.opened

    @property
    def _may_compare(self) -> bool:
        return bool(self._changed) and time.monotonic() >= self._compare_after

    async def _look_up(self, model: str) -> None:
        """Begin with another model, or another file."""
        self._generations = await self._use(self._file.generations)
        same = [generation for generation in self._generations if generation.model == model]
        self._current = same[-1] if same else None
        # Another model may have the name by now; and its process is then up for the first question.
        self._is_doubtful = self._current is not None
        self._missing, self._total = {}, {}
        self._compare_all()
        self._model, self._opened = model, self.store.opened
        await self._load_again()

    def _compare_all(self) -> None:
        self._changed, self._compare_after = set(_ENCODED), 0.0

    async def _compare(self) -> None:
        changed, seconds = self._changed, 0.0
        self._changed = set()
        try:
            for name in _ENCODED:
                if name in changed:
                    seconds += await self._compare_source(_ENCODED[name])
        except BaseException:
            self._changed |= changed
            raise
        self._compare_after = time.monotonic() + max(_COMPARED_SECONDS, _COMPARED_TIMES * seconds)

    async def _compare_source(self, source: Source) -> float:
        """Compare all texts of a source; the seconds that it took, without the pauses."""
        missing, total, last, seconds = array("q"), 0, _LAST_ROW, 0.0
        while last >= 0:
            began = time.monotonic()
            texts = await self.store.read(partial(_versions, source, last), is_long=True)
            first = source.rows([texts[-1][0]])[0] if len(texts) == _SLICE else 0
            between = source.key(first), source.key(last)
            belongs = source.has_key("key")
            compare = partial(self._file.reconcile, self._current, texts, between, belongs)
            difference = await self._use(compare)
            if difference.gone:
                await asyncio.to_thread(self._index.drop, difference.gone)
            missing.extend(difference.missing)
            total += len(texts)
            last = first - 1
            seconds += time.monotonic() - began
            await _pause(began)
        under_way = frozenset(self._in_flight)
        self._missing[source.name] = array("q", (key for key in missing if key not in under_way))
        self._total[source.name] = total
        return seconds

    async def _take(self, encoding: Encoding, texts: Sequence[tuple[int, int]]) -> None:
        """Store vectors, in a generation of their own if the model is another one now."""
        if encoding.model != self._model:
            return
        if self._current is None or not same_encoder(encoding, _identity(self._current)):
            await self._change_generation(encoding)
        encoded = [
            EncodedText(key, version, vector)
            for (key, version), vector in zip(texts, encoding.vectors, strict=True)
        ]
        current = self._current
        if current is not None and encoded:
            await self._use(partial(self._file.put, current, encoded))
            await asyncio.to_thread(self._index.add, current, encoded)

    async def _change_generation(self, encoding: Encoding) -> None:
        if self._current is not None:
            self._compare_all()
        for generation in self._generations:
            if same_encoder(encoding, _identity(generation)):
                # The name stands for an earlier model again.
                await self._use(partial(self._file.keep_only, generation))
                break
        else:
            new = Generation(
                0, encoding.model, encoding.dimensions, encoding.revision, encoding.probe
            )
            generation = await self._use(partial(self._file.begin, new))
        self._generations = await self._use(self._file.generations)
        self._current = generation
        await self._load_again()

    async def _finish(self) -> None:
        """Let the model's vectors answer, now that none is missing, and delete those of others."""
        began = time.monotonic()
        if self._current is not None and len(self._generations) > 1:
            await self._use(partial(self._file.keep_only, self._current))
            self._generations = [self._current]
            await self._load_again()
        if not await self._use(self._file.sweep):
            if self._index.is_sparse:
                await self._load()
            await self._use(self._file.rest)
            self._is_resting = True
            self._publish_progress(at_once=True)
        await _pause(began)

    async def _load(self) -> None:
        # Without a file nothing is loaded.
        with suppress(sqlite3.Error):
            await asyncio.to_thread(self._index.load, self._encoder.model or "")

    async def _load_again(self) -> None:
        if self._index.is_loaded:
            await self._load()

    async def _use(self, work: Callable[[], T]) -> T:
        self._is_resting = False
        return await asyncio.to_thread(work)

    def _publish_progress(self, *, at_once: bool) -> None:
        now = time.monotonic()
        if at_once or now - self._published > _PROGRESS_SECONDS:
            self._published = now
            status = self.status
            event = Event("vectors.progress", {"encoded": status.encoded, "left": status.left})
            self._publish(self.store.place.agent, event)


def background_seconds(texts: int, cost: EncodingCost) -> float:
    """The time for texts, with the pauses in between."""
    calls = math.ceil(texts / MOST_TEXTS)
    seconds = cost.seconds_of(texts) / max(1, calls)
    return calls * (seconds + _pause_after(seconds))


async def _pause(began: float) -> None:
    await asyncio.sleep(_pause_after(time.monotonic() - began))


def _pause_after(seconds: float) -> float:
    return min(_PAUSE_TIMES * seconds, _LONGEST_PAUSE_SECONDS)


def _identity(generation: Generation) -> Encoding:
    return Encoding(generation.model, generation.dimensions, generation.revision, generation.probe)


def _versions(source: Source, last: int, db: sqlite3.Connection) -> list[tuple[int, int]]:
    """The key and the version of the last texts up to a row, the last first."""
    texts = _select(source, db, "row <= ?", last, f"LIMIT {_SLICE}")
    return [(key, version) for key, version, _ in texts]


def _texts(name: str, keys: Sequence[int], db: sqlite3.Connection) -> list[_Text]:
    if not keys:
        return []
    source = _ENCODED[name]
    rows = msgspec.json.encode(source.rows(keys)).decode()
    return [*_select(source, db, "row IN (SELECT value FROM json_each(?))", rows)]


def _select(
    source: Source, db: sqlite3.Connection, condition: str, value: object, limit: str = ""
) -> Iterator[_Text]:
    """The texts of a source that are encoded and fulfil a condition, the last first."""
    query = (
        f"SELECT row, text FROM (SELECT row, {source.text} AS text FROM {source.table}"
        f" WHERE {source.encoded}) WHERE trim(text) <> '' AND {condition} ORDER BY row DESC {limit}"
    )
    for row, text in db.execute(query, (value,)):
        yield source.key(row), zlib.crc32(text.encode("utf-8", "replace")), text
