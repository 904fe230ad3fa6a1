"""What other processes receive and read of a restore: the same as is read here, and no less."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from daemon_process import wait_until
from machine import is_gone
from sealing import RECOVERY_KEY, DeviceKeys, owner

from thermocline.daemon.cloud import command, digests, join
from thermocline.daemon.cloud.digests import Held
from thermocline.daemon.cloud.join import Outcome, RestoreRequest
from thermocline.daemon.errors import StoreDamaged
from thermocline.sync import (
    Clocks,
    Device,
    FileRemote,
    Pending,
    Remote,
    Replica,
    Result,
    Row,
    SqlStatement,
    TryLater,
    Usage,
    stamp_at,
    turso,
    version_of,
)
from thermocline.sync.page_process import PageSource, ProcessReplica
from thermocline.sync.replica import Page

AGENT = "default"
ROWS = 40
DEADLINE_SECONDS = 60.0
# JSON has it, and what the processes exchange has not.
VERY_LARGE = 1 << 70


class Counting:
    """A remote that counts what is asked here, and can be out of reach from here."""

    def __init__(self, inner: Remote) -> None:
        self.inner = inner
        self.asked = 0
        self.is_away = False

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        self.asked += 1
        if self.is_away:
            raise TryLater("offline")
        return await self.inner.batch(statements)

    async def close(self) -> None:
        await self.inner.close()


def pending(number: int, **data: Any) -> Pending:
    fields = {
        "text": f"Ana likes number {number} — ça et là",
        "created_at": 1.5,
        "updated_at": 1.5,
    } | data
    row = Row(
        kind="memory",
        id=f"m{number:03d}",
        data=dict(sorted(fields.items())),
        clocks=Clocks((stamp_at(1e9 + number), "d"), {"text": (stamp_at(2e9), "e")}),
    )
    return Pending(row, version_of(row) or "", None)


async def fill(remote: Remote, *, sealed: bool, **data: Any) -> Replica:
    """The replica of an agent, with its rows, one of them with more data."""
    keys = DeviceKeys("d", owner())
    replica = keys.replica(remote, AGENT) if sealed else Replica(remote, AGENT)
    await replica.prepare(time.time())
    if sealed:
        await keys.publish(remote)
    rows = [pending(number) for number in range(ROWS)]
    rows[7] = pending(7, **data)
    await replica.push(await replica.batch(rows), Device("d", "d"), 0, time.time())
    return replica


@pytest.fixture(params=[True, False], ids=["sealed", "plain"])
def sealed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=["file", "server"])
async def place(request: pytest.FixtureRequest, tmp_path: Path, sealed: bool) -> Any:
    """A filled replica, whose remote counts, and from where another process receives it."""
    url = f"file:{tmp_path / 'replica.db'}"
    inner: Remote = FileRemote(tmp_path / "replica.db")
    if request.param == "server":
        url = request.getfixturevalue("sqld").url
        inner = await turso.connect(url)
    remote = Counting(inner)
    replica = await fill(remote, sealed=sealed, data={"of": VERY_LARGE})
    yield replica, PageSource(url, None, AGENT, owner().encoded() if sealed else b""), remote
    await remote.close()


async def started(replica: ProcessReplica, remote: Counting) -> None:
    """Wait until the process delivers pages."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        asked = remote.asked
        await replica.page(0, 1)
        if remote.asked == asked:
            return
        await asyncio.sleep(0.01)
    pytest.fail("the process delivers nothing")


async def test_pages_are_those_received_here_before_and_after_it_has_started(place):
    here, source, remote = place
    used: list[Usage] = []
    expected = [await here.page(first, first + 5) for first in range(0, ROWS, 5)]
    assert sum(len(page.rows) for page in expected) == ROWS
    with ProcessReplica(here, source, used.append) as replica:
        assert await replica.page(0, ROWS) == await here.page(0, ROWS)
        await started(replica, remote)
        pages = [replica.page(first, first + 5) for first in range(0, ROWS, 5)]
        assert await asyncio.gather(*pages) == expected
    assert source.url.startswith("file:") or sum(usage.rows_read for usage in used) >= ROWS


async def test_only_what_it_cannot_deliver_is_received_here(place):
    here, source, remote = place
    with ProcessReplica(here, source, lambda _: None) as replica:
        await started(replica, remote)
        remote.asked = 0
        remote.is_away = True
        assert len((await replica.page(8, ROWS)).rows) == ROWS - 8
        with pytest.raises(TryLater):
            await replica.page(0, 8)
        assert remote.asked == 1


async def test_a_page_that_nobody_awaits_any_more_is_not_taken_for_the_next(place):
    here, source, remote = place
    with ProcessReplica(here, source, lambda _: None) as replica:
        await started(replica, remote)
        left = [asyncio.create_task(replica.page(first, first + 1)) for first in range(4)]
        await asyncio.sleep(0)
        for task in left:
            task.cancel()
        assert await replica.page(20, 30) == await here.page(20, 30)


async def test_without_the_process_all_is_received_here(place):
    here, source, remote = place
    expected: Page = await here.page(0, ROWS)
    with ProcessReplica(here, source, lambda _: None) as replica:
        await started(replica, remote)
        replica.process.kill()
        replica.process.wait()
        assert await replica.page(0, ROWS) == expected
        assert await replica.page(0, ROWS) == expected
    wrong = PageSource("file:/nowhere/at/all", None, AGENT, source.keyring)
    with ProcessReplica(here, wrong, lambda _: None) as replica:
        assert await replica.page(0, ROWS) == expected


# Prints the number of the process, and ends as if killed, once it is told to.
STARTER = """
import os, sys
from pathlib import Path
from thermocline.sync import FileRemote
from thermocline.sync.page_process import PageSource, ProcessReplica
from thermocline.sync.replica import Replica
url, keyring = sys.argv[1], bytes.fromhex(sys.argv[2])
replica = Replica(FileRemote(Path(url.removeprefix("file:"))), "default")
started = ProcessReplica(replica, PageSource(url, None, "default", keyring), print)
started._started.result()
print(started.process.pid, flush=True)
sys.stdin.read()
os._exit(1)
"""


def test_it_ends_with_the_one_that_has_started_it(tmp_path):
    url = f"file:{tmp_path / 'replica.db'}"
    command = [sys.executable, "-c", STARTER, url, owner().encoded().hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert not is_gone(pid)
    wait_until(lambda: is_gone(pid), "the process has ended")


def restored(folder: Path, *, sealed: bool) -> Outcome:
    """What a restore of all rows has done."""
    asyncio.run(fill(FileRemote(folder / "replica.db"), sealed=sealed))
    url, key = f"file:{folder / 'replica.db'}", RECOVERY_KEY if sealed else None
    return command.from_replica(
        RestoreRequest(state_dir=folder / "state", url=url, recovery_key=key)
    )


def test_many_restored_rows_are_received_and_read_by_processes_that_end(
    tmp_path, monkeypatch, sealed
):
    began: list[ProcessReplica] = []
    read, held = digests.read_apart, []

    class Noted(ProcessReplica):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            began.append(self)

    def noted(*args: Any) -> Held | None:
        held.append(read(*args))
        return held[-1]

    monkeypatch.setattr(join, "WORTH_ROWS", ROWS)
    monkeypatch.setattr(command, "ProcessReplica", Noted)
    monkeypatch.setattr(digests, "read_apart", noted)
    assert [each.rows for each in restored(tmp_path, sealed=sealed).restored] == [ROWS]
    assert [each.process.returncode for each in began] == [-signal.SIGKILL]
    [one] = held
    assert one is not None
    [digest] = one.digests.values()
    assert digest.rows == ROWS


@pytest.mark.parametrize("reads", [True, False])
def test_a_row_that_is_not_as_received_is_found_whoever_reads_it(
    tmp_path, monkeypatch, sealed, reads
):
    read = digests.read_apart

    def damaged(database: Path, agent: str, ring: bytes) -> Held | None:
        with closing(sqlite3.connect(database, timeout=DEADLINE_SECONDS)) as db:
            db.execute("UPDATE memories SET text = 'swapped' WHERE id = 'm003'")
            db.commit()
        return read(database, agent, ring if reads else b"no keyring")

    monkeypatch.setattr(join, "WORTH_ROWS", ROWS)
    monkeypatch.setattr(digests, "read_apart", damaged)
    [error] = restored(tmp_path, sealed=sealed).failed.values()
    assert isinstance(error, StoreDamaged)
    assert "1 row is not as received" in error.message
