"""What only a remote that is a file has: a disk, other processes, and people who remove it."""

import asyncio
import gc
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from thermocline.sync.failures import Refused, SchemaMissing, SyncError, TryLater
from thermocline.sync.file_remote import FileRemote
from thermocline.sync.ports import SqlStatement

TABLE = [SqlStatement("CREATE TABLE IF NOT EXISTS t (a)")]
INSERT = [SqlStatement("INSERT INTO t VALUES (1)")]
COUNT = [SqlStatement("SELECT count(*) FROM t")]


@pytest.fixture
async def open_remote() -> AsyncIterator[Callable[..., FileRemote]]:
    """Makes remotes, and closes them after the test."""
    async with AsyncExitStack() as stack:

        def make(path: Path, busy_seconds: float = 5.0) -> FileRemote:
            remote = FileRemote(path, busy_seconds)
            stack.push_async_callback(remote.close)
            return remote

        yield make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is made."""
    return tmp_path / "replica.db"


async def test_a_disk_that_is_not_mounted_is_waited_for(open_remote, tmp_path):
    path = tmp_path / "usb" / "replica.db"
    remote = open_remote(path)
    error = await failure(remote, TABLE)
    assert (type(error), error.code) == (TryLater, "offline")
    assert f"mount the disk, or make the folder {path.parent}" in error.hint
    assert not path.parent.exists()
    path.parent.mkdir()
    await remote.batch(TABLE)
    assert await count(remote) == 0


async def count(remote: FileRemote) -> object:
    return (await remote.batch(COUNT))[0].rows[0][0]


async def failure(remote: FileRemote, statements: list[SqlStatement]) -> SyncError:
    with pytest.raises(SyncError) as raised:
        await remote.batch(statements)
    assert str(remote._path) in raised.value.message
    return raised.value


def started(code: str, path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


async def test_the_first_batch_makes_the_files_for_their_owner_alone(open_remote, path):
    remote, previous = open_remote(path), os.umask(0)
    assert not path.exists()
    try:
        await remote.batch(TABLE)
    finally:
        os.umask(previous)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {f"replica.db{end}": 0o600 for end in ("", "-wal", "-shm")}


async def test_a_batch_waits_for_the_disk_itself(open_remote, path):
    pragmas = [SqlStatement("PRAGMA journal_mode"), SqlStatement("PRAGMA synchronous")]
    results = await open_remote(path).batch(pragmas)
    full = 2
    assert [result.rows[0][0] for result in results] == ["wal", full]


async def test_another_that_writes_is_waited_for_and_then_reported(open_remote, path):
    remote = open_remote(path, busy_seconds=0.05)
    await remote.batch(TABLE)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        error = await failure(remote, INSERT)
        assert (type(error), error.code) == (TryLater, "busy")
        assert await count(remote) == 0
        other.execute("COMMIT")
    await remote.batch(INSERT)
    assert await count(remote) == 1


async def test_two_share_a_file_and_neither_takes_away_the_locks_of_the_other(open_remote, path):
    first, second = open_remote(path), open_remote(path)
    await first.batch(TABLE)
    await asyncio.gather(*[remote.batch(INSERT) for remote in (first, second) for _ in range(20)])
    assert await count(first) == await count(second) == 40
    code = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=0).execute("PRAGMA journal_mode = DELETE")
"""
    with started(code, path) as outside:
        assert outside.communicate()[1].endswith(b"database is locked\n")


async def test_a_file_that_is_removed_is_made_anew_by_the_next_batch(open_remote, path):
    remote = open_remote(path)
    await remote.batch(TABLE + INSERT)
    for each in path.parent.iterdir():
        each.unlink()
    with pytest.raises(SchemaMissing):
        await remote.batch(INSERT)
    await remote.batch(TABLE + INSERT)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM t").fetchone() == (1,)


async def test_a_file_that_is_replaced_is_the_one_that_is_used(open_remote, path):
    remote, other = open_remote(path), open_remote(path.with_name("other.db"))
    await remote.batch(TABLE)
    await other.batch(TABLE + INSERT + INSERT)
    await other.close()
    path.with_name("other.db").replace(path)
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    assert await count(remote) == 2


@pytest.mark.parametrize("opened", [True, False])
async def test_a_damaged_file_is_reported_and_may_be_removed(open_remote, path, opened):
    first = open_remote(path)
    await first.batch([*TABLE, *INSERT * 400])
    await first.close()
    remote = open_remote(path)
    if opened:
        await remote.batch([SqlStatement("SELECT 1")])
    # In place, as a failing disk does it.
    path.write_bytes(b"\xa5" * path.stat().st_size)
    error = await failure(remote, COUNT)
    assert (type(error), error.code) == (Refused, "damaged")
    # It may be a file of another program's, by mistake.
    assert f"if it was a replica, remove {path}" in error.hint
    assert error.hint.endswith("else name another file")
    for each in path.parent.iterdir():
        each.unlink()
    await remote.batch(TABLE + INSERT)
    assert await count(remote) == 1


async def test_a_full_disk_passes_by_itself(open_remote, path):
    remote = open_remote(path)
    await remote.batch([*TABLE, SqlStatement("PRAGMA max_page_count = 20")])
    large = [SqlStatement("INSERT INTO t VALUES (?)", ("x" * 200_000,))]
    error = await failure(remote, INSERT + large)
    assert (type(error), error.code) == (TryLater, "disk_full")
    assert await count(remote) == 0
    await remote.batch([SqlStatement("PRAGMA max_page_count = 2000")])
    await remote.batch(INSERT + large)
    assert await count(remote) == 2


async def test_a_place_that_can_hold_no_file_is_refused(open_remote, tmp_path):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "folder").mkdir()
    places = [tmp_path / "file" / "replica.db", tmp_path / "folder", tmp_path / ("x" * 300)]
    for place in places:
        error = await failure(open_remote(place), TABLE)
        assert (type(error), error.code) == (Refused, "not_found")
        assert str(place) in error.hint
        assert ("name a file" in error.hint) == (place.name == "folder")


async def test_a_batch_waits_for_the_one_before_however_often_that_was_cancelled(tmp_path):
    path = tmp_path / "replica.db"
    with (
        ThreadPoolExecutor(2) as threads,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        remote = FileRemote(path, threads=threads)
        await remote.batch(TABLE)
        other.execute("BEGIN IMMEDIATE")
        first = asyncio.create_task(remote.batch(INSERT))
        await asyncio.sleep(0)
        assert remote._turn.locked()
        for _ in range(2):
            first.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.create_task(remote.batch(INSERT))
        await asyncio.sleep(0)
        assert remote._turn.locked()
        other.execute("COMMIT")
        await second
        assert await count(remote) == 2
        await remote.close()


async def test_a_question_that_nobody_waits_for_any_more_ends(open_remote, path):
    remote = open_remote(path)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await remote.batch([SqlStatement(f"SELECT count(*) FROM ({endless})")])
    await remote.batch(TABLE + INSERT)
    assert await count(remote) == 1
    gc.collect()
    assert not complaints


async def test_what_sqlite_quotes_of_a_damaged_text_stays_out_of_the_error(open_remote, path):
    remote = open_remote(path)
    error = await failure(remote, [SqlStatement("SELECT CAST(x'67656865696dff' AS TEXT)")])
    assert error.code == "damaged"
    assert "geheim" not in f"{error} {error!r}"
    assert error.__cause__ is None
    assert error.__suppress_context__
