"""What a store, and a use, costs: statements, functions, and what is queued for the replica."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, TypeAlias

import msgspec

import thermocline.daemon
import thermocline.sync
from thermocline.daemon.config.settings import Settings
from thermocline.daemon.operations import memories as operations
from thermocline.daemon.operations.access import Peer
from thermocline.daemon.operations.operation import Daemon, Scope
from thermocline.daemon.runtime.fingerprint import NOWHERE
from thermocline.daemon.schemas.memory import StoreBody
from thermocline.daemon.store import outbox
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.database import meta
from thermocline.daemon.store.database.connection import derived
from thermocline.daemon.store.records import agent_entries, key_values, memories, uses
from thermocline.daemon.store.records.agent_entries import OwnPart

OpenStore: TypeAlias = Callable[..., Awaitable[AgentStore]]
FOLDERS = tuple(str(Path(p)) for it in (thermocline.daemon, thermocline.sync) for p in it.__path__)
MOST_STATEMENTS = 13
MOST_FUNCTIONS = 168
MOST_QUEUED_BYTES = 1_000


class OneAgent:
    """In place of all agents: the one whose memory is open."""

    def __init__(self, store: AgentStore) -> None:
        self._store = store

    def use(self, _agent: str, **_options: bool) -> OneAgent:
        return self

    async def __aenter__(self) -> AgentStore:
        return self._store

    async def __aexit__(self, *_: object) -> None:
        return None


def caller_of(store: AgentStore) -> Callable[[], Scope]:
    settings = Settings()
    parts: dict[str, Any] = dict.fromkeys(Daemon.__struct_fields__)
    parts |= {"agents": OneAgent(store), "config": SimpleNamespace(settings=settings)}
    daemon = Daemon(**parts)
    peer = Peer(uid=1000, gid=1000, pid=1)
    return lambda: Scope(daemon, peer, "default", False, time.time(), settings)


async def test_a_store_is_few_statements_and_functions(open_store):
    """Of this project, from the decoded request to the encoded answer, comprehensions left out."""
    functions: set[tuple[str, str]] = set()
    counting = False

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if counting and event == "call" and code.co_filename.startswith(FOLDERS):
            functions.add((code.co_filename, code.co_qualname))

    threading.setprofile(profile)
    try:
        # No state file is written meanwhile.
        store = await open_store(delay_seconds=1_000.0)
    finally:
        threading.setprofile(None)
    scope = caller_of(store)
    words = ["the", "ferry", "to", "Norderney", "leaves", "at", "noon"]
    for number in range(1, len(words)):
        # All words have been stored before, as usual, but not this statement.
        body = StoreBody(text=f"{words[number]} and {words[number - 1]}", category="harbour/north")
        await operations.add(scope(), body=body)
    statements: list[str] = []
    await store.write(lambda tx: tx.db.set_trace_callback(statements.append))
    statements.clear()
    body = StoreBody(text=" ".join(words), category="harbour/north")
    before = sys.getprofile()
    sys.setprofile(profile)
    counting = True
    answer = await operations.add(scope(), body=body)
    counting = False
    sys.setprofile(before)
    await store.write(lambda tx: tx.db.set_trace_callback(None))
    assert msgspec.to_builtins(answer)["stored"]
    made = statements[: statements.index("COMMIT") + 1]
    assert made[0].startswith("BEGIN")
    # A statement is traced again for each trigger that it fires.
    made = [one for at, one in enumerate(made) if at == 0 or one != made[at - 1]]
    assert len(made) <= MOST_STATEMENTS, "\n".join(made)
    named = {one for one in functions if not one[1].endswith(">")}
    assert len(named) <= MOST_FUNCTIONS, "\n".join(sorted(map(": ".join, named)))


async def test_a_use_queues_a_short_row_however_many_memories_were_used(open_store, make_memory):
    store = await open_store()
    ids = [f"m{number:05d}" for number in range(2_000)]

    def fill(tx: Any) -> None:
        for number in range(2_000):
            memories.insert(tx, make_memory(number))
        uses.reinforce(tx, ids)

    await store.write(fill)
    await store.write(lambda tx: tx.db.execute("DELETE FROM outbox").rowcount)
    await store.write(lambda tx: uses.count_answers(tx, [ids[:5]]))
    assert await store.read(outbox.queued) == {}, "used within the hour"
    await store.write(lambda tx: uses.reinforce(tx, ids[:5]))
    waiting = await store.read(lambda db: outbox.pending(db, None, 100, 1_000_000))
    encoded = [(one.row.id, *one.row.encoded()) for one in waiting]
    assert len(encoded) == 5
    assert sum(len(part or "") for row in encoded for part in row) < MOST_QUEUED_BYTES
    counts = await store.read(lambda db: memories.find(db, ids[0]).access_count)
    assert counts == 2


async def test_counting_an_answer_leaves_what_is_derived_and_every_change_renews_it(
    open_store, make_memory
):
    store = await open_store(readers=1)
    made: list[int] = []

    async def number() -> int:
        def make() -> int:
            made.append(len(made))
            return len(made)

        return await store.read(lambda db: derived(db, "number", None, make))

    await store.write(lambda tx: memories.insert(tx, make_memory(0)))
    assert await number() == await number() == 1
    await store.write(lambda tx: uses.count_answers(tx, [[]]))
    assert await number() == 1
    used = ["m00000"]
    changes: list[Callable[[Any], object]] = [
        lambda tx: uses.count_answers(tx, [used]),
        lambda tx: memories.insert(tx, make_memory(1)),
        lambda tx: key_values.put(tx, "tea", "sencha"),
        lambda tx: agent_entries.take(tx, [OwnPart("knowledge", {"memory/KNOWLEDGE.md": NOWHERE})]),
        meta.move_counts,
    ]
    for times, change in enumerate(changes, 2):
        await store.write(change)
        assert await number() == times, times
