"""What the daemon notes for itself, and what damage to it does."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import msgspec
import pytest
from store_parts import transaction

from thermocline.daemon.store.database import meta


class Count(msgspec.Struct):
    number: int


@pytest.fixture
def db(remembered: Callable[..., sqlite3.Connection]) -> sqlite3.Connection:
    return remembered([])


def note(db: sqlite3.Connection, **values: object) -> None:
    tx = transaction(db, 1.0)
    for key, value in values.items():
        meta.write(tx, key, value)


def spoil(db: sqlite3.Connection, key: str, content: bytes) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, CAST(? AS TEXT))", (key, content))


@pytest.mark.parametrize(
    "content", [b"", b"{not json", b"[]", b"5", b'{"number": "x"}', b"\xff", b"[" * 100_000]
)
def test_damage_is_as_if_nothing_had_been_noted(db, content):
    note(db, day1=Count(1), day3=Count(3))
    spoil(db, "day2", content)
    assert meta.read(db, "day2", Count) is None
    assert meta.latest(db, "day", 9, Count) == {"1": Count(1), "3": Count(3)}
    note(db, day2=Count(2))
    assert meta.read(db, "day2", Count) == Count(2)
