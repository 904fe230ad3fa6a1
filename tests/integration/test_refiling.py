"""Filing many memories elsewhere at once, as a rebuild of the tree does."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.warm import record_size
from thermocline.daemon.store import memories, memory_rows, refiling, tree_rows
from thermocline.daemon.store.agent_store import AgentStore
from thermocline.daemon.store.refiling import Filed
from thermocline.daemon.store.transaction import Transaction

OpenStore: TypeAlias = Callable[..., Awaitable[AgentStore]]
MANY = 600


def filed(number: int) -> Filed:
    return Filed(f"m{number}", "there", "here" if number % 2 else "")


def insert(tx: Transaction) -> None:
    for number in range(MANY):
        memories.insert(
            tx,
            Memory(
                id=f"m{number}",
                text=f"something about the number {number}",
                category="here",
                created_at=tx.now,
                updated_at=tx.now,
            ),
        )


async def test_many_memories_are_filed_elsewhere_in_few_statements(open_store: OpenStore) -> None:
    store = await open_store()
    await store.write(insert)
    await store.write(lambda tx: tx.db.execute("DELETE FROM outbox").rowcount)
    told: list[str] = []

    def move(tx: Transaction) -> int:
        tree_rows.ensure(tx, "there")
        tx.db.set_trace_callback(told.append)
        moved = refiling.refile(tx, [*map(filed, range(MANY)), Filed("unknown", "there", "")])
        tx.db.set_trace_callback(None)
        return moved

    assert await store.write(move) == MANY
    # Each is told again for what triggers do.
    assert len(set(told)) < 40

    def read(db: sqlite3.Connection) -> None:
        found = {key: memory_rows.fetch(db, key) for key in ("m0", "m1", f"m{MANY - 1}")}
        assert [(m.category, m.original_category) for m in found.values() if m is not None] == [
            ("there", ""),
            ("there", "here"),
            ("there", "here"),
        ]
        warm = db.execute("SELECT id, size FROM memories WHERE archived_at IS NULL").fetchall()
        assert 0 < len(warm) < MANY
        for key, size in warm:
            memory = memory_rows.fetch(db, key)
            assert memory is not None
            assert size == record_size(memory)
        node = tree_rows.load(db)["there"]
        assert node.warm_count + node.cold_count == MANY
        marks = db.execute("SELECT count(*), min(filed_only) FROM outbox WHERE kind = 'memory'")
        assert marks.fetchone() == (MANY, 1)

    await store.read(read)
