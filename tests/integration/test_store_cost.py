"""What a use costs: what is queued for the replica, and what is derived anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thermocline.daemon.runtime.fingerprint import NOWHERE
from thermocline.daemon.store import outbox
from thermocline.daemon.store.database import meta
from thermocline.daemon.store.database.connection import derived
from thermocline.daemon.store.records import agent_entries, key_values, memories, uses
from thermocline.daemon.store.records.agent_entries import OwnPart

MOST_QUEUED_BYTES = 1_000


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
