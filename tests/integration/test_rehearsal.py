"""Rehearsing a restore: what the replica would not give back is found, and nothing else is."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import restoring
from devices import Clock, Device
from restoring import NOW

from thermocline.daemon.problems import Problems
from thermocline.daemon.restoring.rehearsal import Job, Rehearsal, due_of, last_rehearsal, note
from thermocline.daemon.restoring.rehearse import rehearse
from thermocline.daemon.restoring.rehearsing import Rehearsals
from thermocline.daemon.store import key_values, memories, thinning
from thermocline.daemon.store.transaction import Rules
from thermocline.sync import FileRemote

FEW = 30


@pytest.fixture
async def device(tmp_path: Path, threads: Executor) -> AsyncIterator[Device]:
    """A device with a small life, which its replica has heard of."""
    remote = FileRemote(tmp_path / "replica.db")
    args = (tmp_path / "state", "mine", remote)
    device = Device(*args, now=Clock(NOW), threads=threads, rules=Rules())
    await restoring.live(device, FEW)
    await device.sync()
    yield device
    await device.stop()
    await remote.close()


async def rehearsed(device: Device, folder: Path, replica: Path | None = None) -> Rehearsal:
    """Rehearse, in this process."""
    return await rehearse(
        Job(
            agent="default",
            url=f"file:{(replica or folder) / 'replica.db'}",
            token=None,
            folder=str(folder / "rehearsal"),
            live=str(device.folder / "agents/default/memory.db"),
            device="mine",
        )
    )


def sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            assert db.execute(statement).rowcount, statement


async def test_a_replica_that_has_everything_is_verified(device: Device, tmp_path: Path) -> None:
    found = await rehearsed(device, tmp_path)
    assert (found.verified, found.faults) == (True, ())
    assert (found.missing, found.different, found.extra) == (0, 0, 0)
    assert found.rows > FEW


async def test_what_waits_to_be_sent_is_not_missing(device: Device, tmp_path: Path) -> None:
    await device.write(lambda tx: key_values.put(tx, "new", "unsent"))
    await device.write(lambda tx: key_values.put(tx, "colour", "changed"))
    await device.write(lambda tx: memories.delete(tx, memories.find(tx.db, "m00003")))
    found = await rehearsed(device, tmp_path)
    assert (found.verified, found.faults) == (True, ())


async def test_what_has_not_come_yet_is_not_too_much(
    device: Device, tmp_path: Path, threads: Executor
) -> None:
    args = (tmp_path / "other", "other", device.remote)
    other = Device(*args, now=Clock(NOW + 9), threads=threads, rules=Rules())
    await other.sync()
    await other.write(lambda tx: key_values.put(tx, "theirs", "new"))
    await other.write(lambda tx: key_values.put(tx, "colour", "theirs"))
    await other.write(lambda tx: memories.delete(tx, memories.find(tx.db, "m00003")))
    await other.sync()
    await other.stop()
    found = await rehearsed(device, tmp_path)
    assert (found.verified, found.faults) == (True, ())


async def test_what_only_the_replica_holds_is_compared_by_its_version(
    device: Device, tmp_path: Path
) -> None:
    link = await device.local.link()
    rows = await device.replica.fetch(["m00004", "m00006"])
    assert await device.write(lambda tx: thinning.leave(tx, rows, link.epoch)) == 2
    assert (await rehearsed(device, tmp_path)).verified
    sql(tmp_path / "replica.db", "UPDATE cold_memories SET clock = clock - 1 WHERE id = 'm00004'")
    sql(tmp_path / "replica.db", "DELETE FROM cold_memories WHERE id = 'm00006'")
    found = await rehearsed(device, tmp_path / "again", tmp_path)
    assert found.faults == (
        "1 row is not on the replica: memory m00006",
        "1 row is otherwise on the replica: memory m00004",
    )


LOSSES = {
    "missing": ("DELETE FROM cold_memories WHERE id = 'm00004'", "memory m00004"),
    "missing pair": ("DELETE FROM objects WHERE kind = 'kv' AND id = 'colour'", "kv colour"),
    "different": (
        "UPDATE cold_memories SET clock = clock - 1 WHERE id = 'm00004'",
        "memory m00004",
    ),
    "different pair": (
        "UPDATE objects SET digest = NULL, data = replace(data, 'green', 'grey') WHERE kind = 'kv'",
        "kv colour",
    ),
    "extra": (
        """INSERT INTO objects SELECT agent_id, kind, 'odd', data, 5, device, digest, seq
        FROM objects WHERE kind = 'kv' AND id = 'colour'""",
        "kv odd",
    ),
    "damaged": ("UPDATE objects SET data = data || ' ' WHERE id = 'colour'", "kv colour"),
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_what_the_replica_would_not_give_back_is_named(
    loss: str, device: Device, tmp_path: Path
) -> None:
    statement, named = LOSSES[loss]
    sql(tmp_path / "replica.db", statement)
    found = await rehearsed(device, tmp_path)
    assert not found.verified
    assert named in " ".join(found.faults)
    numbers = {"missing": found.missing, "different": found.different, "extra": found.extra}
    kind = "missing" if loss == "damaged" else loss.split(maxsplit=1)[0]
    assert numbers == {"missing": 0, "different": 0, "extra": 0} | {kind: 1}


async def test_a_memory_knows_when_it_was_rehearsed_last(device: Device) -> None:
    path = device.folder / "agents/default/memory.db"
    assert await device.read(last_rehearsal) is None
    found = due_of(path)
    assert found is not None
    assert (found.last, found.followed) == (None, True)
    done = Rehearsal(
        verified=True, rows=1, missing=0, different=0, extra=0, seconds=1.0, at=NOW, faults=()
    )
    await device.write(partial(note, rehearsal=done))
    assert await device.read(last_rehearsal) == done
    found = due_of(path)
    assert found is not None
    assert found.last == done


@pytest.mark.parametrize(
    ("days", "ago", "due"),
    [(7.0, None, True), (7.0, 6.9, False), (7.0, 7.1, True), (7.0, -1.0, True), (0.0, 99.0, False)],
)
async def test_it_is_due_when_the_days_have_passed(
    days: float, ago: float | None, due: bool, device: Device
) -> None:
    rehearsals = Rehearsals(
        device.agents,
        None,  # type: ignore[arg-type]
        state_dir=device.folder,
        device="mine",
        problems=Problems(),
        days=lambda: days,
        now=lambda: NOW,
    )
    if ago is not None:
        done = Rehearsal(
            verified=True, rows=1, missing=0, different=0, extra=0, seconds=1.0,
            at=NOW - ago * 86_400,
        )  # fmt: skip
        await device.write(partial(note, rehearsal=done))
    assert await rehearsals.is_due("default") is due
    assert not await rehearsals.is_due("nobody")


def leftovers(state: Path) -> list[Path]:
    return list(state.glob(".rehearsal-*"))


def children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def test_a_daemon_rehearses_when_it_is_asked_to(daemon: Any, calls_of: Callable[..., Any]) -> None:
    call = calls_of(daemon)
    call.store("Ana prefers tea")
    found = call.ok("POST", "/api/restore", {"verify": True})
    assert found["verified"], found
    assert found["rows"] >= 2
    assert leftovers(daemon.state) == []
    with closing(sqlite3.connect(daemon.folder() / "memory.db")) as db:
        noted = last_rehearsal(db)
    assert noted is not None
    assert msgspec.convert(found, Rehearsal) == noted
    refused = call("POST", "/api/restore", {"verify": False}).refusal()
    assert refused == (400, "invalid", "verify")
    assert call("POST", "/api/restore", {}).refusal()[0] == 400

    sql(daemon.folder() / "replica.db", "DELETE FROM cold_memories")
    found = call.ok("POST", "/api/restore", {"verify": True})
    assert (found["verified"], found["missing"]) == (False, 1)
    [problem] = [p for p in call.ok("GET", "/api/status")["problems"] if "give" in p["message"]]
    assert problem["code"] == "rehearsal_failed"


def test_a_killed_daemon_leaves_no_rehearsal_behind(
    daemon: Any, calls_of: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    call = calls_of(daemon)
    call.store("Ana prefers tea")
    call.ok("POST", "/api/sync")
    body = b'{"verify": true}'
    head = f"POST /api/restore HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with closing(wire(daemon)) as asking:
        asking.sendall(head.encode() + body)
        eventually(lambda: children(daemon.process.pid) != [], "the rehearsal runs")
        [child] = children(daemon.process.pid)
        os.kill(child, signal.SIGSTOP)
        eventually(lambda: leftovers(daemon.state) != [], "it has a folder")
        daemon.kill()
    os.kill(child, signal.SIGCONT)
    eventually(lambda: not Path(f"/proc/{child}").exists() or ended(child), "it has ended")
    daemon.start()
    assert leftovers(daemon.state) == []


def wire(daemon: Any) -> socket.socket:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.connect(str(daemon.socket))
    return found


def ended(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
