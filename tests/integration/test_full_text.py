"""The full-text index of a real database, as it grows."""

import sqlite3

from thermocline.daemon.store.database import full_text
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.records import memories


async def test_an_index_that_has_grown_is_merged_into_one_part_and_then_left_alone(
    open_store, make_memory
):
    store = await open_store()
    for first in range(0, 600, 150):
        await store.write(lambda tx, first=first: stored(tx, make_memory, first, first + 150))
    assert await store.read(parts) > 1
    await store.run_maintenance()
    assert await store.read(parts) == 1
    assert await store.read(number_of_matches) == 600
    await store.write(lambda tx: stored(tx, make_memory, 600, 700))
    await store.run_maintenance()
    assert await store.read(parts) == 2


async def test_an_empty_index_needs_no_merging(open_store):
    store = await open_store()
    assert not await store.read(full_text.to_merge)


def stored(tx: Transaction, make_memory, first: int, last: int) -> None:
    for number in range(first, last):
        memories.insert(tx, make_memory(number))


def parts(db: sqlite3.Connection) -> int:
    query = "SELECT count(DISTINCT segid) FROM memory_fts_idx"
    return int(db.execute(query).fetchone()[0])


def number_of_matches(db: sqlite3.Connection) -> int:
    query = "SELECT count(*) FROM memory_fts WHERE memory_fts MATCH 'memory'"
    return int(db.execute(query).fetchone()[0])


async def test_an_index_that_was_merged_five_hundred_times_is_built_again(open_store, make_memory):
    store = await open_store()
    await store.write(lambda tx: stored(tx, make_memory, 0, 20))
    for number in range(1000, 1510):
        await store.write(lambda tx, number=number: stored(tx, make_memory, number, number + 1))
        await store.write(lambda tx: full_text.merge_step(tx.db, ("memory_fts",)))
    was_deep = await store.read(full_text.needs_rebuild)
    # Releases of SQLite from 3.41 on add no levels without end.
    assert was_deep or sqlite3.sqlite_version_info >= (3, 41)
    await store.run_maintenance()
    assert not await store.read(full_text.needs_rebuild)
    assert await store.read(number_of_matches) == 530
