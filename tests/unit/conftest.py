"""What tests of the store's and the recall's parts share: memories in a real database."""

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
from store_parts import transaction

from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store.database import chunk_database
from thermocline.daemon.store.database.memory_database import connect_writer, migrate
from thermocline.daemon.store.database.schema import MIGRATIONS
from thermocline.daemon.store.records import memories, tree_rows
from thermocline.daemon.store.records.memory_rows import index_new


@pytest.fixture(scope="session")
def _empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with all its tables: making them takes ten times as long as copying it."""
    path = tmp_path_factory.mktemp("empty") / "memory.db"
    with closing(connect_writer(path)) as db:
        migrate(db, path, MIGRATIONS)
    return path


@pytest.fixture
def remembered(
    tmp_path: Path, _empty_database: Path
) -> Iterator[Callable[..., sqlite3.Connection]]:
    """`remembered(memories)` is a database that holds them, the first in row 1."""
    opened: list[sqlite3.Connection] = []

    def make(stored: Iterable[Memory], now: float = 1_790_000_000.0) -> sqlite3.Connection:
        path = tmp_path / f"memory{len(opened)}.db"
        shutil.copyfile(_empty_database, path)
        db = connect_writer(path)
        opened.append(db)
        chunk_database.attach_none(db)
        db.execute("BEGIN IMMEDIATE")
        tx = transaction(db, now)
        for memory in stored:
            tree_rows.ensure(tx, memory.category)
            memories.insert(tx, memory)
        index_new(tx)
        db.execute("COMMIT")
        return db

    yield make
    for db in opened:
        db.close()


@pytest.fixture
def holding(
    remembered: Callable[..., sqlite3.Connection],
) -> Callable[[Memory], AbstractContextManager[sqlite3.Connection]]:
    """`with holding(memory) as db` is a database that has this memory meanwhile, and another.

    For hundreds of examples, one after the other: a database for each would take most of the time.
    """
    db = remembered([Memory(id="other", text="Ben has two cats", created_at=0.5, updated_at=0.5)])
    tx = transaction(db, 1_790_000_000.0)

    @contextmanager
    def hold(memory: Memory) -> Iterator[sqlite3.Connection]:
        held = memories.insert(tx, memory)
        index_new(tx)
        yield db
        memories.delete(tx, held)

    return hold
