"""Asking the replica for what it alone holds: only where there is something, and not for long."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from devices import AGENT
from homes import Home

from thermocline.daemon.store import memories, remote_rows
from thermocline.sync import FileRemote, TryLater

MakeHome: TypeAlias = Callable[..., Home]


async def test_the_number_of_those_elsewhere_is_asked_of_the_database_only_after_a_change(
    make_home: MakeHome,
) -> None:
    home = make_home()
    await home.leave_half()
    async with home.device.agents.use(AGENT, create=True) as store:
        number = await store.elsewhere()
        asked: list[str] = []
        real = store.read

        async def read(what: Callable[[sqlite3.Connection], Any]) -> Any:
            asked.append("read")
            return await real(what)

        store.read = read  # type: ignore[method-assign]
        assert await store.elsewhere() == number
        assert asked == []
        note = await real(lambda db: remote_rows.find(db, "m00000"))
        assert note is not None
        await store.write(partial(memories.forget_note, note=note))
        assert await store.elsewhere() == number - 1
        assert asked == ["read"]


async def test_asking_ends_at_its_deadline_and_is_not_begun_while_the_replica_is_away(
    make_home: MakeHome, tmp_path: Path
) -> None:
    home = make_home()
    await home.leave_half()
    answer = await home.ask(["m00000", "m00001", "none"])
    assert (answer.asked, answer.answered, answer.why) == (True, True, "")
    assert sorted(row.id for row in answer.rows) == ["m00000", "m00001"]

    hanging = asyncio.Event()

    class Hanging(FileRemote):
        async def batch(self, _statements: Any) -> Any:
            await hanging.wait()

    await home.network._inner.close()
    home.network._inner = Hanging(tmp_path / "replica.db")
    late = await home.ask(["m00000"], seconds=0.02)
    assert (late.asked, late.answered, late.rows) == (True, False, ())
    assert late.why == "it did not answer within 20 ms"
    assert late.took_ms >= 20

    home.network.online = False
    following = await home.replicas.following(AGENT)
    following.replicator._wait(TryLater("offline"), 100.0)
    batches = home.network.batches
    away = await home.ask(["m00000"], seconds=30.0)
    assert (away.asked, away.answered, home.network.batches) == (False, False, batches)
    assert "cannot reach" in away.why
