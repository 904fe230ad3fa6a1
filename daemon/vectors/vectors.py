"""The vectors of all open agents: made in the background, and compared with questions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ..errors import ModelUnavailable, ShuttingDown, ThermoclineError
from ..llm.encoder import Encoder
from ..memory.vectors import Nearness
from ..recall.query import asked_in
from ..runtime.problems import Problems
from ..schemas.status import VectorStatus
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.database.transaction import Event
from . import vector_file
from .agent_vectors import AgentVectors

# Between two looks at the configuration, and at agents whose work is not done.
_IDLE_SECONDS: Final = 2.0
_WORKING_SECONDS: Final = 0.5
# The pause after a failure.
_AGAIN_SECONDS: Final = 10.0
_WAITING: Final = "vectors_waiting"
_REFUSED: Final = "vectors_not_written"


class Near(msgspec.Struct, frozen=True):
    """How near an agent's items are to a question."""

    nearness: Nearness | None = None  # compares them; None: words answer alone
    note: str = ""  # why words answer alone, for a person; "" if no encoder is configured


class Vectors:
    """Encodes what the open agents hold, and says how near it is to a question.

    While no encoder is configured, nothing is opened or written, and files of an earlier one are
    removed.
    """

    def __init__(
        self,
        agents: Agents,
        encoder: Encoder,
        folder: Path,
        *,
        publish: Callable[[str, Event], None],
        problems: Problems,
    ) -> None:
        self._agents = agents
        self._encoder = encoder
        self._folder = folder
        self._publish = publish
        self._problems = problems
        self._followed: dict[str, AgentVectors] = {}
        # The agents whose files the disk refuses; and when to ask the model, or them, again.
        self._refused: dict[str, float] = {}
        self._encode_after = 0.0
        self._is_removed = False
        self._soon, self._missing = asyncio.Event(), asyncio.Event()
        agents.followers.append(self._soon.set)

    async def near(self, store: AgentStore, text: str) -> Near:
        """How near the items of `store` are to what `text` asks.

        Waits `recall.embed_deadline_ms` at most.
        Never raises for an encoder that fails. The nearness may be used on any thread, and
        answers nothing once the agent is closed.
        """
        is_open = self._agents.open_stores().get(store.place.agent) is store
        compared = asked_in(text).strip()
        if self._encoder.model is None or not is_open or not compared:
            return Near()
        result = await self._of(store).near(compared)
        if isinstance(result, str):
            self._soon.set()
            return Near(note=f"found by words alone: {result}")
        return Near(result)

    async def nearness(self, store: AgentStore, text: str) -> Nearness | None:
        """`near` for callers that show no note."""
        return (await self.near(store, text)).nearness

    async def nearest(self, store: AgentStore, keys: Sequence[int]) -> dict[int, dict[int, float]]:
        """The cosines of the items nearest to some items, by their own vectors; {} without any."""
        vectors = self._followed.get(store.place.agent)
        return {} if vectors is None else await vectors.nearest(keys)

    def status(self, agent: str) -> VectorStatus | None:
        """The progress of an open agent; None while no encoder is configured."""
        vectors = self._followed.get(agent)
        return None if self._encoder.model is None or vectors is None else vectors.status

    def on_event(self, agent: str, event: Event) -> None:
        """Handle an event of an agent: its texts may have changed."""
        vectors = self._followed.get(agent)
        if vectors is not None:
            vectors.changed(event.type)
            self._soon.set()

    async def follow(self) -> None:
        """Compare the texts of the open agents with their vectors, until cancelled."""
        while True:
            self._soon.clear()
            await self._follow()
            due = [item for item in self._ready() if item[1].needs_comparison]
            for agent, vectors in due:
                await self._work(agent, vectors, vectors.compare)
                self._missing.set()
            if not due:
                waits = any(vectors.is_waiting for vectors in self._followed.values())
                await _wait(self._soon, _WORKING_SECONDS if waits else _IDLE_SECONDS)

    async def encode(self) -> None:
        """Encode what is missing, until cancelled. Storing never waits for it."""
        while True:
            self._missing.clear()
            due = [item for item in self._ready() if item[1].needs_encoding]
            if not due or time.monotonic() < self._encode_after:
                await _wait(self._missing, _IDLE_SECONDS)
                continue
            for agent, vectors in due:
                if not vectors.needs_encoding:
                    continue
                if not await self._work(agent, vectors, vectors.encode):
                    break
                self._problems.clear(_WAITING, "/vectors")
                self._soon.set()

    def _ready(self) -> list[tuple[str, AgentVectors]]:
        now = time.monotonic()
        items = self._followed.items()
        return [(agent, of) for agent, of in items if now >= self._refused.get(agent, 0.0)]

    def _of(self, store: AgentStore) -> AgentVectors:
        agent = store.place.agent
        vectors = self._followed.get(agent)
        if vectors is None or vectors.store is not store:
            vectors = AgentVectors(store, self._encoder, self._publish)
            self._followed[agent] = vectors
            self._soon.set()
        return vectors

    async def _follow(self) -> None:
        """Follow the open agents; without an encoder, remove every file."""
        if self._encoder.model is None:
            if not self._is_removed:
                await self._remove()
            return
        self._is_removed = False
        stores = self._agents.open_stores()
        for agent, vectors in list(self._followed.items()):
            if stores.get(agent) is not vectors.store:
                del self._followed[agent]
        for store in stores.values():
            self._of(store)

    async def _remove(self) -> None:
        for agent, vectors in self._followed.items():
            await vectors.leave()
            self._problems.clear(_REFUSED, agent)
        self._problems.clear(_WAITING, "/vectors")
        self._followed.clear()
        await asyncio.to_thread(self._remove_files)
        self._is_removed = True

    async def _work(
        self, agent: str, vectors: AgentVectors, step: Callable[[], Awaitable[None]]
    ) -> bool:
        """Do a piece of work for an agent; False: it failed, and is tried again later."""
        # Keeps the agent from being closed as idle.
        vectors.store.in_use += 1
        try:
            await step()
        except ModelUnavailable as error:
            self._encode_after = time.monotonic() + _AGAIN_SECONDS
            message = f"cannot encode the memories: {error.message}"
            self._problems.report(_WAITING, "/vectors", message, error.hint or "", lasting=False)
            return False
        except ThermoclineError as error:
            self._refused[agent] = time.monotonic() + _AGAIN_SECONDS
            if not isinstance(error, ShuttingDown):
                message = f"cannot keep the vectors of '{agent}': {error.message}"
                self._problems.report(_REFUSED, agent, message, error.hint or "", lasting=False)
            return False
        finally:
            vectors.store.in_use -= 1
        if self._refused.pop(agent, None) is not None:
            self._problems.clear(_REFUSED, agent)
        return True

    def _remove_files(self) -> None:
        for path in self._folder.glob(f"*/{vector_file.FILE_NAME}*"):
            with suppress(OSError):
                path.unlink()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    # Cancelled while the event is set, `asyncio.wait_for` of Python 3.11 would not end.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
