"""The vectors of an agent's texts: made in the background, kept in step, replaced by others."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
from concept_vectors import vector
from daemon_process import until
from store_parts import add_memories, make_agents

from thermocline.daemon.errors import ModelUnavailable
from thermocline.daemon.llm.encoder import PROBE, Encoding
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.vectors import quantised
from thermocline.daemon.recall.sources import SOURCES
from thermocline.daemon.runtime.problems import Problems
from thermocline.daemon.schemas.status import VectorStatus
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database.transaction import Event
from thermocline.daemon.store.records import key_values, memories
from thermocline.daemon.vectors import agent_vectors
from thermocline.daemon.vectors.vector_file import FILE_NAME
from thermocline.daemon.vectors.vectors import Vectors

# So many that directions of two words are near each other by chance in no test.
DIMENSIONS = 256


class Encoder:
    """An encoder without a process; its vectors are made of the words of a text.

    Attributes:
        weights: of a model; other ones are another model under the same name.
        open: what holds up passages while it is not set.
        closes_after: the number of passages after which it closes.
        passages: how often each text was encoded.
    """

    def __init__(self) -> None:
        self.model: str | None = "ollama/first"
        self.weights: dict[str, str] = {}
        self.failure: str | None = None
        self.open = asyncio.Event()
        self.open.set()
        self.closes_after: int | None = None
        self.passages: Counter[str] = Counter()
        self.largest = 0

    def _vector(self, text: str, model: str) -> bytes | None:
        return quantised(vector(text, DIMENSIONS, model + self.weights.get(model, "")))

    def _encoding(self, texts: Sequence[str], model: str) -> Encoding:
        probe = self._vector(PROBE, model)
        assert probe is not None
        return Encoding(
            model, DIMENSIONS, "", probe, tuple(self._vector(text, model) for text in texts)
        )

    async def encode(self, texts: Sequence[str], *, model: str) -> Encoding:
        if self.closes_after is not None and self.passages.total() >= self.closes_after:
            self.closes_after = None
            self.open.clear()
        await self.open.wait()
        if self.failure is not None:
            raise ModelUnavailable(self.failure)
        self.passages.update(texts)
        self.largest = max(self.largest, len(texts))
        return self._encoding(texts, model)

    async def encode_query(self, text: str, *, model: str) -> Encoding | None:
        return self._encoding([text], model)


class Desk:
    """Agents with vectors, in the test's own process."""

    def __init__(self, folder: Path, threads: ThreadPoolExecutor) -> None:
        self.folder = folder
        self.threads = threads
        self.encoder = Encoder()
        self.problems = Problems()
        self.events: list[Event] = []
        self.start()

    def start(self) -> None:
        """A daemon that starts has nothing in memory."""
        self.agents = make_agents(
            self.folder,
            self.threads,
            problems=self.problems,
            publish=lambda *event: self.vectors.on_event(*event),  # noqa: PLW0108 - made below
        )
        self.vectors = Vectors(
            self.agents,
            self.encoder,
            self.folder / "agents",
            publish=lambda _agent, event: self.events.append(event),
            problems=self.problems,
        )

    @property
    def file(self) -> Path:
        return self.folder / "agents" / "default" / FILE_NAME

    @asynccontextmanager
    async def running(self) -> AsyncIterator[AgentStore]:
        """The background work runs, and the agent is open, while the block does."""
        tasks = [
            asyncio.create_task(work) for work in (self.vectors.follow(), self.vectors.encode())
        ]
        try:
            async with self.agents.use("default", create=True) as store:
                yield store
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.agents.close()
            self.start()

    def status(self) -> VectorStatus:
        status = self.vectors.status("default")
        assert status is not None
        return status

    def stored(self) -> Counter[str]:
        """The number of vectors by model."""
        with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as db:
            with suppress(sqlite3.Error):
                query = "SELECT model FROM encoders JOIN vectors ON encoder = encoders.id"
                return Counter(model for (model,) in db.execute(query))
            return Counter()

    async def settled(self, number: int) -> None:
        """Wait until this many texts are encoded, and none is left."""

        def is_settled() -> bool:
            model = self.encoder.model or ""
            status = self.vectors.status("default")
            return (
                status == VectorStatus(model, number, 0)
                and self.file.exists()
                and self.stored() == {model: number}
            )

        await until(is_settled, f"{number} texts are encoded")

    async def nearest(self, store: AgentStore, text: str) -> list[str]:
        """The texts nearest to a question."""
        near = await self.vectors.near(store, text)
        if near.nearness is None:
            return []
        nearness = near.nearness

        def read(db: sqlite3.Connection) -> list[str]:
            texts = []
            for key, _ in nearness.nearest(3):
                source = next(source for source in SOURCES if source.has(key))
                row = source.rows([key])[0]
                query = f"SELECT {source.text} FROM {source.table} WHERE row = ?"
                texts += [text for (text,) in db.execute(query, (row,))]
            return texts

        return await store.read(read)


@pytest.fixture
async def desk(tmp_path: Path, threads: ThreadPoolExecutor) -> AsyncIterator[Desk]:
    made = Desk(tmp_path, threads)
    yield made
    await made.agents.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits longer than it must."""
    for name in ("_COMPARED_SECONDS", "_COMPARED_TIMES", "_PAUSE_TIMES", "_PROGRESS_SECONDS"):
        monkeypatch.setattr(agent_vectors, name, 0.0)
    for name in ("_IDLE_SECONDS", "_WORKING_SECONDS", "_AGAIN_SECONDS"):
        monkeypatch.setattr("thermocline.daemon.vectors.vectors." + name, 0.01)


async def fill(store: AgentStore, make_memory: Callable[..., Memory], *numbers: int) -> None:
    await add_memories(store, *map(make_memory, numbers))


async def test_what_is_stored_is_encoded_and_near(desk, make_memory):
    async with desk.running() as store:
        await fill(store, make_memory, *range(100))
        await store.write(lambda tx: key_values.put(tx, "boiler", "word777 in the cellar"))
        await desk.settled(101)
        assert (await desk.nearest(store, "word42"))[0].endswith("word42")
        assert (await desk.nearest(store, "word777 cellar"))[0].startswith("boiler")
        assert desk.encoder.largest <= agent_vectors.MOST_TEXTS
        whole = {"encoded": 101, "left": 0}
        await until(lambda: desk.events[-1].data == whole, "listeners know it")
    assert set(desk.encoder.passages.values()) == {1}


async def test_a_restart_encodes_nothing_twice_and_answers_at_once(desk, make_memory):
    async with desk.running() as store:
        await fill(store, make_memory, *range(70))
        await desk.settled(70)
    desk.encoder.passages.clear()
    async with desk.running() as store:
        assert (await desk.nearest(store, "word7"))[0].endswith("word7")
        await fill(store, make_memory, 70)
        await desk.settled(71)
    assert desk.encoder.passages == {make_memory(70).text: 1}


async def test_the_newest_is_encoded_first(desk, make_memory):
    async with desk.running() as store:
        desk.encoder.open.clear()
        await fill(store, make_memory, *range(200))
        await until(lambda: desk.status().left == 200, "all are missing")
        desk.encoder.failure = "it is away"
        desk.encoder.open.set()
        await until(lambda: bool(desk.problems.current()), "it failed")
        assert not desk.encoder.passages
        desk.encoder.failure = None
        await desk.settled(200)
    first = [*desk.encoder.passages][:64]
    assert first == [make_memory(number).text for number in range(199, 135, -1)]


async def test_a_forgotten_memory_leaves_no_vector(desk, make_memory):
    async with desk.running() as store:
        await fill(store, make_memory, 1, 2, 3)
        await desk.settled(3)
        (trace,) = [desk.encoder._vector(make_memory(2).text, "ollama/first")]
        assert trace is not None
        await until(lambda: trace in desk.file.read_bytes(), "it rests")
        # While the encoder is away, too.
        desk.encoder.failure = "it is away"
        await fill(store, make_memory, 4)
        await store.write(lambda tx: memories.forget(tx, make_memory(2).id))
        await until(lambda: desk.stored() == {"ollama/first": 2}, "the vector is gone")
        assert make_memory(2).text not in await desk.nearest(store, "word2")
        desk.encoder.failure = None
        await desk.settled(3)

        def traces() -> list[Path]:
            return [p for p in desk.file.parent.glob(f"{FILE_NAME}*") if trace in p.read_bytes()]

        await until(lambda: not traces(), "no file has the vector")


async def test_what_changed_while_nobody_looked_is_noticed(desk, make_memory):
    async with desk.running() as store:
        await fill(store, make_memory, *range(5))
        await desk.settled(5)
    model, desk.encoder.model = desk.encoder.model, None
    async with desk.agents.use("default", create=False) as store:
        old = make_memory(0)
        await store.write(lambda tx: memories.forget(tx, make_memory(1).id))
        new = make_memory(0, text="the boiler was replaced by word4000")
        await store.write(lambda tx: memories.replace(tx, memories.find(tx.db, old.id), new))
    await desk.agents.close()
    desk.start()
    desk.encoder.model = model
    desk.encoder.passages.clear()
    async with desk.running() as store:
        await desk.settled(4)
        assert (await desk.nearest(store, "word4000"))[0] == new.text
    assert desk.encoder.passages == {new.text: 1}


async def test_an_earlier_model_answers_until_the_last_is_encoded(desk, make_memory):
    async with desk.running() as store:
        await fill(store, make_memory, *range(130))
        await desk.settled(130)
        assert (await desk.nearest(store, "word99"))[0].endswith("word99")
        desk.encoder.open.clear()
        desk.encoder.model = "ollama/second"
        await until(lambda: desk.status().left == 130, "all are missing")
        assert desk.status() == VectorStatus("ollama/second", 0, 130, "ollama/first")
        assert (await desk.nearest(store, "word99"))[0].endswith("word99")
        await store.write(lambda tx: memories.forget(tx, make_memory(98).id))
        await until(lambda: desk.stored() == {"ollama/first": 129}, "gone in the old one")
        desk.encoder.closes_after = desk.encoder.passages.total() + 1
        desk.encoder.open.set()
        # One of the 64 was forgotten.
        await until(lambda: desk.status().encoded == 63, "a part is encoded")
        for number in (99, 129):
            # Whether it is among that part or not.
            word = f"word{number}"
            assert (await desk.nearest(store, word))[0].endswith(word)
        desk.encoder.open.set()
        await desk.settled(129)
        assert desk.status() == VectorStatus("ollama/second", 129, 0)
        assert (await desk.nearest(store, "word99"))[0].endswith("word99")
        await desk.settled(129)


async def test_a_model_that_changes_under_the_same_name_encodes_all_again(desk, make_memory):
    async with desk.running() as store:
        await fill(store, make_memory, *range(70))
        await desk.settled(70)
        desk.encoder.weights["ollama/first"] = "other"
        # Noticed by a question as well as by the next text.
        near = await desk.vectors.near(store, "word5")
        assert near.nearness is None
        assert "another model" in near.note
        await until(lambda: sum(desk.encoder.passages.values()) == 140, "all encoded again")
        await desk.settled(70)
        assert (await desk.nearest(store, "word5"))[0].endswith("word5")


async def test_an_encoder_that_is_away_is_reported_and_tried_again(desk, make_memory):
    async with desk.running() as store:
        desk.encoder.failure = "cannot reach it"
        await fill(store, make_memory, 1)
        await until(lambda: bool(desk.problems.current()), "it is reported")
        (problem,) = desk.problems.current()
        assert problem.message == "cannot encode the memories: cannot reach it"
        assert (await desk.vectors.near(store, "word1")).nearness is None
        desk.encoder.failure = None
        await desk.settled(1)
        await until(lambda: not desk.problems.current(), "the problem is over")


@pytest.mark.parametrize("content", [b"", b"nonsense" * 1000])
async def test_a_damaged_file_is_replaced(desk, make_memory, content):
    async with desk.running() as store:
        await fill(store, make_memory, *range(3))
        await desk.settled(3)
    desk.file.write_bytes(content)
    async with desk.running() as store:
        await desk.settled(3)
        assert (await desk.nearest(store, "word2"))[0].endswith("word2")
    assert sum(desk.encoder.passages.values()) == 6


async def test_damage_in_use_is_noticed_by_a_question(desk, make_memory):
    async with desk.running() as store:
        await fill(store, make_memory, *range(300))
        await desk.settled(300)
    data = bytearray(desk.file.read_bytes())
    with closing(sqlite3.connect(desk.file)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'vectors'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    data[(page - 1) * size : page * size] = b"\xff" * size
    desk.file.write_bytes(data)
    async with desk.running() as store:
        # Nobody reads the vectors themselves before.
        await desk.nearest(store, "word2")
        await desk.settled(300)
        assert (await desk.nearest(store, "word2"))[0].endswith("word2")
