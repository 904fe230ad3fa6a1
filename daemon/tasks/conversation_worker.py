"""Schedules when the turns of a conversation are read, and when it is summarised."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Final, TypeAlias

import msgspec

from ..config.settings import Observe, Settings
from ..errors import ModelUnavailable, NotFound, ShuttingDown, ThermoclineError
from ..llm.model import Model, read_prompts
from ..runtime.problems import Problems, fault_of
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.records import conversations
from ..store.records.conversations import Conversation
from .extraction import Extracted, extract_next
from .model_or_rules import AskOptions, ModelOrRules
from .new_memories import AskNear
from .summaries import sum_up, write_entry

_log = logging.getLogger(__name__)
_TROUBLE: Final = "observe_trouble"
_FAILED: Final = "read_failed"
# The maximum number of conversations read at once; the others wait.
_AT_ONCE: Final = 4
# Turns without a pause are read after this multiple of the pause.
_LONGEST_TALK: Final = 10
# The attempts with a failing model before the rules summarise. After an error of the disk it is
# retried forever, at least this often.
_TRIES: Final = 3
# The pause after a failure; it doubles with each further one in a row.
_RETRY_SECONDS: Final = 60.0
_LONGEST_RETRY: Final = 900.0

Key: TypeAlias = tuple[str, str]


class _Due(msgspec.Struct):
    """The due times of a conversation, on the monotonic clock."""

    read_at: float | None  # when to read it; None if there is nothing to read
    read_latest: float  # the deadline for reading, even without a pause
    close_at: float  # when it counts as over
    failures: int = 0  # the failures in a row

    @property
    def next(self) -> float:
        return self.close_at if self.read_at is None else min(self.read_at, self.close_at)


class ConversationWorker:
    """Reads buffered turns after a pause, and summarises finished conversations, in the background.

    The buffers are on disk, so that the daemon continues after a restart. `near` asks what is near
    in meaning to a new memory.
    """

    def __init__(
        self,
        agents: Agents,
        model: ModelOrRules,
        observe: Callable[[], Observe],
        problems: Problems,
        zone: dt.tzinfo,
        near: AskNear | None = None,
    ) -> None:
        self._agents = agents
        self._near = near
        self._model = model
        self._observe = observe
        self._problems = problems
        self._zone = zone
        self._due: dict[Key, _Due] = {}
        self._busy: dict[Key, asyncio.Lock] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._unscheduled: set[str] = set()  # agents whose buffers were not read yet
        self._schedule_at = 0.0
        self._woken = asyncio.Event()
        self._room = asyncio.Semaphore(_AT_ONCE)

    def on_turns(self, agent: str, conversation: Conversation) -> None:
        """Schedule turns that were just buffered."""
        observe, now = self._observe(), time.monotonic()
        known = self._due.get((agent, conversation.id))
        over = conversation.ended_at is not None
        if over:
            due = _Due(now if conversation.unread else None, now, now)
        else:
            latest = now + _LONGEST_TALK * observe.debounce_seconds
            if known is not None and known.read_at is not None:
                latest = known.read_latest
            read_at = min(now + observe.debounce_seconds, latest) if conversation.unread else None
            due = _Due(read_at, latest, now + 60 * observe.episode_idle_minutes)
        self._due[agent, conversation.id] = due
        self._woken.set()

    async def read_now(
        self, agent: str, store: AgentStore, conversation: Conversation, options: AskOptions
    ) -> list[Extracted]:
        """Read all unread turns, without waiting for a pause.

        A conversation that is over is summed up too, if `options` ask for a model or for none.

        Raises:
            ThermoclineError: the memory cannot be read or written; what was read is stored.
            InvalidInput: the endpoint is not an address.
        """
        async with self._lock((agent, conversation.id)):
            read = await self._read(store, [conversation], options)
            if conversation.ended_at is not None and options != AskOptions():
                await self._close(store, conversation.id, options, patient=False)
            return read

    async def run(self) -> None:
        """Do what is due until cancelled, first what an earlier daemon left."""
        self._unscheduled = set(await asyncio.to_thread(self._agents.names))
        while True:
            if self._unscheduled and self._schedule_at <= time.monotonic():
                await self._schedule_buffered()
            self._woken.clear()
            now = time.monotonic()
            for key, due in list(self._due.items()):
                if due.next <= now and key not in self._tasks:
                    self._start(key, due)
            waiting = [due.next for key, due in self._due.items() if key not in self._tasks]
            if self._unscheduled:
                waiting.append(self._schedule_at)
            seconds = max(0.0, min(waiting) - now) if waiting else None
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken.wait()

    async def close(self) -> None:
        """Cancel running work; it remains in the buffers."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _lock(self, key: Key) -> asyncio.Lock:
        return self._busy.setdefault(key, asyncio.Lock())

    def _start(self, key: Key, due: _Due) -> None:
        task = asyncio.create_task(self._attend(key, due), name=f"conversation of {key[0]}")
        self._tasks[key] = task
        task.add_done_callback(lambda _task: self._ended(key))

    def _ended(self, key: Key) -> None:
        del self._tasks[key]
        lock = self._busy.get(key)
        if key not in self._due and lock is not None and not lock.locked():
            del self._busy[key]
        self._woken.set()

    async def _schedule_buffered(self) -> None:
        """Schedule the buffered conversations of the agents that were not read yet."""
        self._schedule_at = time.monotonic() + _RETRY_SECONDS
        unreadable: set[str] = set()
        for agent in await asyncio.to_thread(self._with_turns, list(self._unscheduled)):
            try:
                async with self._agents.use(agent, create=False, quietly=True) as store:
                    for conversation in await store.read(conversations.waiting):
                        self._schedule(agent, conversation, store.now)
            except NotFound:
                continue
            except ShuttingDown:
                return
            except (ThermoclineError, OSError):
                # Opening it already reports why it cannot be read.
                unreadable.add(agent)
        self._unscheduled = unreadable

    def _with_turns(self, agents: Iterable[str]) -> list[str]:
        """Those that may have buffered turns; to open every memory would take far longer."""
        folders = {name: self._agents.place(name).folder for name in agents}
        return [name for name, folder in folders.items() if conversations.are_waiting(folder)]

    def _schedule(self, agent: str, conversation: Conversation, wall: float) -> None:
        observe, now = self._observe(), time.monotonic()
        # After the clock was set back the pause is at most one more pause.
        silent = max(0.0, wall - conversation.last_at)
        over = conversation.ended_at is not None or conversation.entry is not None
        read_at = now + max(0.0, observe.debounce_seconds - silent) if conversation.unread else None
        close_at = now if over else now + max(0.0, 60 * observe.episode_idle_minutes - silent)
        due = _Due(read_at, now + _LONGEST_TALK * observe.debounce_seconds, close_at)
        self._due.setdefault((agent, conversation.id), due)

    async def _attend(self, key: Key, due: _Due) -> None:
        agent, name = key
        subject = f"{agent}/{name}"
        try:
            async with (
                self._room,
                self._agents.use(agent, create=False, quietly=True) as store,
            ):
                left = await self._look_after(store, name, due)
        except NotFound:
            # The folder of the agent was removed.
            left = None
        except ShuttingDown:
            return
        except Exception as error:  # noqa: BLE001 - the turns stay in the buffer
            if isinstance(error, ThermoclineError):
                why, hint = error.message, error.hint or "it will be retried"
            else:
                why, where = fault_of(error)
                hint = "this is a bug: the log has the details"
                _log.error(
                    "a conversation was not read: %s\n%s", why, where, extra={"action": _FAILED}
                )
            text = f"cannot read a conversation of '{agent}': {why}"
            self._problems.report(_TROUBLE, subject, text, hint)
            left = self._later(due)
        else:
            self._problems.clear(_TROUBLE, subject)
        if self._due.get(key) is not due:
            return  # More turns have arrived meanwhile.
        if left is None:
            del self._due[key]
        else:
            self._due[key] = left

    def _later(self, due: _Due) -> _Due:
        pause = min(_RETRY_SECONDS * 2 ** min(due.failures, 16), _LONGEST_RETRY)
        at = time.monotonic() + pause
        read_at = None if due.read_at is None else at
        return _Due(read_at, at, max(at, due.close_at), due.failures + 1)

    async def _look_after(self, store: AgentStore, name: str, due: _Due) -> _Due | None:
        """Do what is due for one conversation; return its next due times, if any."""
        now = time.monotonic()
        over = due.close_at <= now
        conversation = await _find(store, name)
        if conversation is not None and conversation.entry is not None:
            await write_entry(store, conversation)
            conversation = await _find(store, name)
        if conversation is None:
            return None
        paused = due.read_at is not None and due.read_at <= now
        if conversation.unread and (over or paused):
            await self._read_waiting(store, (store.place.agent, name))
        if over:
            async with self._lock((store.place.agent, name)):
                closed = await self._close(store, name, AskOptions())
            if not closed:
                return _Due(None, now, time.monotonic() + _RETRY_SECONDS)
        conversation = await _find(store, name)
        if conversation is None:
            return None
        observe = self._observe()
        read_at = now + observe.debounce_seconds if conversation.unread else None
        return _Due(
            read_at,
            due.read_latest,
            now + 60 * observe.episode_idle_minutes if over else due.close_at,
        )

    async def _read_waiting(self, store: AgentStore, key: Key) -> None:
        """Read a conversation, together with all others of its agent that are not being read.

        One question to a model then serves them all.
        """
        agent, name = key
        async with AsyncExitStack() as locks:
            # Sequential for each agent, so that turns that arrive meanwhile are read together.
            await locks.enter_async_context(self._lock((agent, "")))
            await locks.enter_async_context(self._lock(key))
            waiting = [
                conversation
                for conversation in await store.read(conversations.waiting)
                if conversation.unread
            ]
            own = [item for item in waiting if item.id == name]
            if not own:
                return
            others = [other for other in waiting if not self._lock((agent, other.id)).locked()]
            for other in others:
                await locks.enter_async_context(self._lock((agent, other.id)))
            try:
                await self._read(store, [*own, *others], AskOptions())
            except Exception:
                if not others:
                    raise
                # A failure of one conversation must not block the others.
                await self._read(store, own, AskOptions())

    async def _read(
        self, store: AgentStore, waiting: Sequence[Conversation], options: AskOptions
    ) -> list[Extracted]:
        results: list[Extracted] = []
        zone, near = self._zone, self._near
        while extracted := await extract_next(store, waiting, self._model, options, zone, near):
            results += extracted
        return results

    async def _close(
        self, store: AgentStore, name: str, options: AskOptions, *, patient: bool = True
    ) -> bool:
        """Summarise a conversation; False if the model is to be asked again later."""
        conversation = await _find(store, name)
        if conversation is None or conversation.unread:
            return True
        if conversation.entry is None:
            patient = patient and conversation.tries < _TRIES
            try:
                await sum_up(store, conversation, self._model, options, patient=patient)
            except ModelUnavailable:
                await store.write(partial(conversations.failed, key=name))
                return False
            conversation = await _find(store, name)
        if conversation is not None and conversation.entry is not None:
            await write_entry(store, conversation)
        return True


async def _find(store: AgentStore, name: str) -> Conversation | None:
    return await store.read(partial(conversations.find, key=name))


class Thinking(msgspec.Struct, frozen=True):
    """The parts that use a model."""

    model: ModelOrRules  # asks a model, or uses the rules
    worker: ConversationWorker  # reads conversations, with the model or the rules

    async def close(self) -> None:
        await self.worker.close()
        await self.model.rules.close()


def build_thinking(
    model: Model,
    agents: Agents,
    settings: Callable[[], Settings],
    problems: Problems,
    zone: dt.tzinfo,
    near: AskNear,
) -> Thinking:
    """Build the parts around a model; see `ConversationWorker`. Reads the prompts; blocking."""
    tasks = ModelOrRules(model, read_prompts(), lambda: settings().llm.min_chars)
    worker = ConversationWorker(agents, tasks, lambda: settings().observe, problems, zone, near)
    return Thinking(tasks, worker)
