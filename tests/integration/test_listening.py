"""Conversations in the background: pauses, ends, restarts, failures."""

import asyncio
import datetime as dt
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from daemon_process import until
from scripted_model import ScriptedModel
from store_parts import make_agents

from thermocline.daemon.config.settings import Observe
from thermocline.daemon.errors import ModelUnavailable
from thermocline.daemon.llm.model import read_prompts
from thermocline.daemon.runtime.problems import Problems
from thermocline.daemon.store.records import conversations
from thermocline.daemon.store.records.conversations import IncomingTurn
from thermocline.daemon.tasks.conversation_worker import ConversationWorker
from thermocline.daemon.tasks.model_or_rules import ModelOrRules

TEA = "I prefer oolong tea in the morning"
KEPT = TEA
NEVER = 3_600.0


class House:
    """Agents, a listener that can be started and stopped, and a model."""

    def __init__(self, folder: Path, threads: ThreadPoolExecutor) -> None:
        self.folder = folder
        self.problems = Problems()
        self.model = ScriptedModel({})
        self.observe = Observe(debounce_seconds=0.02, episode_idle_minutes=NEVER)
        self.agents = make_agents(folder, threads, problems=self.problems)
        self.listener = self.fresh()

    def fresh(self) -> ConversationWorker:
        """A listener as a daemon that starts has it."""
        asked = ModelOrRules(self.model, read_prompts())
        return ConversationWorker(
            self.agents, asked, lambda: self.observe, self.problems, dt.UTC, retry_seconds=0.02
        )

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """The listener runs while the block does."""
        task = asyncio.create_task(self.listener.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.listener.close()

    async def hear(
        self, *texts: str, agent: str = "default", name: str = "c", ended: bool = False
    ) -> None:
        said = [IncomingTurn("user", text, "Ada", at=time.time()) for text in texts]
        async with self.agents.use(agent, create=True) as store:
            heard = await store.write(
                lambda tx: conversations.buffer_turns(tx, name, said, ended=ended, writer="uid:1")
            )
        assert heard is not None
        self.listener.on_turns(agent, heard)

    async def texts(self, agent: str = "default") -> list[str]:
        async with self.agents.use(agent, create=True) as store:
            return await store.read(
                lambda db: [t for (t,) in db.execute("SELECT text FROM memories ORDER BY row")]
            )

    async def waiting(self, agent: str = "default") -> int:
        async with self.agents.use(agent, create=True) as store:
            return len(await store.read(conversations.waiting))

    def entries(self, agent: str = "default") -> list[str]:
        path = self.folder / "agents" / agent / "memory" / "episodes.jsonl"
        return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


@pytest.fixture
async def house(tmp_path: Path, threads: ThreadPoolExecutor) -> AsyncIterator[House]:
    made = House(tmp_path, threads)
    yield made
    await made.agents.close()


async def test_turns_are_read_after_a_pause(house):
    house.observe = Observe(debounce_seconds=NEVER, episode_idle_minutes=NEVER)
    async with house.listening():
        await house.hear(TEA)
        assert await house.texts() == []
    house.observe = Observe(debounce_seconds=0.02, episode_idle_minutes=NEVER)
    house.listener = house.fresh()
    async with house.listening():
        await until(lambda: has(house, KEPT), "the turn was read")
    assert await house.waiting() == 1
    assert house.entries() == []


async def has(house: House, text: str, agent: str = "default") -> bool:
    return text in await house.texts(agent)


async def test_who_talks_without_a_pause_is_read_all_the_same(house):
    house.observe = Observe(debounce_seconds=0.03, episode_idle_minutes=NEVER)
    async with house.listening():
        await house.hear(TEA)

        async def read_while_talking() -> bool:
            await house.hear("and so on")
            return KEPT in await house.texts()

        await until(read_while_talking, "it was read under way")


async def test_what_is_wrong_with_one_conversation_holds_up_no_other(house):
    await house.hear("We decided to use Postgres for billing", name="one")
    await house.hear(TEA, name="two")
    async with house.agents.use("default", create=True) as store:
        spoil = "UPDATE turns SET tools = 'no JSON' WHERE conversation = 'one'"
        await store.write(lambda tx: tx.db.execute(spoil) and None)
    house.listener = house.fresh()
    async with house.listening():
        await until(lambda: has(house, KEPT), "the other was read")


async def summed_up(house: House, agent: str = "default") -> bool:
    return not await house.waiting(agent) and bool(house.entries(agent))


async def test_an_entry_that_was_not_written_is_written_by_the_next_daemon(house):
    place = house.folder / "agents" / "default" / "memory" / "episodes.jsonl"
    place.mkdir(parents=True)
    async with house.listening():
        await house.hear(TEA, ended=True)
        await until(lambda: told(house), "the trouble was told")
        assert await house.waiting() == 1
    house.listener = house.fresh()
    place.rmdir()
    async with house.listening():
        await until(lambda: summed_up(house), "it was written")
    assert len(house.entries()) == 1
    assert [text for text in await house.texts() if text == KEPT] == [KEPT]


async def told(house: House) -> bool:
    return [one.code for one in house.problems.current()] == ["observe_trouble"]


async def test_a_model_that_fails_is_asked_again_and_in_the_end_the_rules_sum_up(house):
    house.model = ScriptedModel({"episode": [ModelUnavailable("late")] * 9})
    house.listener = house.fresh()
    async with house.listening():
        await house.hear(TEA, ended=True)
        await until(lambda: summed_up(house), "it was summed up")
    assert len(house.model.asked) == 4


async def test_what_nobody_has_thought_of_is_told_and_the_turns_wait(house, caplog):
    told = {"summary": "By a model.", "tags": ["tea"], "outcome": "resolved"}
    house.model = ScriptedModel({"episode": [UnicodeError(TEA), told]})
    house.listener = house.fresh()
    async with house.listening():
        await house.hear(TEA, ended=True)
        await until(lambda: summed_up(house), "it was summed up")
        await until(lambda: not house.problems.current(), "the trouble is over")
    assert "By a model." in house.entries()[0]
    assert "a conversation was not read: UnicodeError" in caplog.text
    assert TEA not in caplog.text
