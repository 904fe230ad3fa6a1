"""Counting uses, a moment after the answers."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

from thermocline.daemon.store import uses
from thermocline.daemon.store.uses import UseCounter


async def test_uses_are_counted_by_a_memory_that_is_closed_while_it_counts_them(monkeypatch):
    monkeypatch.setattr(uses, "_COUNT_SECONDS", 0.0)
    reading, answered = asyncio.Event(), asyncio.Event()
    written: list[Any] = []

    async def read(_query: Callable[[sqlite3.Connection], int]) -> int:
        reading.set()
        await answered.wait()
        return 1000

    async def write(operation: Any) -> None:
        written.append(operation)

    counter = UseCounter("default", write, read)
    counter.note(["one"], 40)
    await reading.wait()
    closing = asyncio.create_task(counter.finish())
    await asyncio.sleep(0)
    answered.set()
    await closing
    assert [answer.used for answer in written[0].keywords["answers"]] == [("one",)]
