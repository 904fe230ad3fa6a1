"""The watcher tells of each change without a wait, in watched folders only."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from thermocline.daemon.files.walker import Identity
from thermocline.daemon.files.watcher import Watcher, WatchLostError


def identities(*folders: Path) -> dict[str, Identity]:
    stats = {str(folder): folder.stat() for folder in folders}
    return {path: (stat.st_dev, stat.st_ino) for path, stat in stats.items()}


async def test_what_was_written_before_the_call_is_told_at_once(tmp_path):
    told = asyncio.Event()
    watcher = Watcher(told.set)
    folders = identities(tmp_path)
    assert await watcher.changes(folders) == {str(tmp_path)}
    for number in range(500):
        (tmp_path / f"{number}.md").write_text("x")
        assert await watcher.changes(folders) == {str(tmp_path / f"{number}.md")}
    (tmp_path / "0.md").rename(tmp_path / "moved.md")
    (tmp_path / "1.md").unlink()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "deep.md").write_text("x")
    async with asyncio.timeout(30):
        await told.wait()
    names = {"0.md", "moved.md", "1.md", "inner"}
    assert await watcher.changes(folders) == {str(tmp_path / name) for name in names}
    assert await watcher.changes(folders) == set()
    watcher.close()


async def test_a_name_that_is_no_text_is_told_as_its_folder(tmp_path):
    watcher = Watcher(lambda: None)
    await watcher.changes(identities(tmp_path))
    (tmp_path / os.fsdecode(b"caf\xe9")).mkdir()
    assert await watcher.changes(identities(tmp_path)) == {str(tmp_path)}
    watcher.close()


async def test_a_folder_that_is_replaced_is_watched_again(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    watcher = Watcher(lambda: None)
    await watcher.changes(identities(inner))
    inner.rename(tmp_path / "old")
    inner.mkdir()
    assert await watcher.changes(identities(inner)) == {str(inner)}
    (tmp_path / "old" / "a.md").write_text("x")
    assert await watcher.changes(identities(inner)) == set()
    (inner / "b.md").write_text("x")
    assert await watcher.changes(identities(inner)) == {str(inner / "b.md")}
    inner.joinpath("b.md").unlink()
    gone = identities(inner)
    inner.rmdir()
    assert str(inner) in await watcher.changes(gone)
    # It may come back with the same number.
    inner.mkdir()
    assert await watcher.changes({**gone}) == {str(inner)}
    (inner / "c.md").write_text("x")
    assert await watcher.changes(gone) == {str(inner / "c.md")}
    assert await watcher.changes({}) == set()
    watcher.close()


LIMIT = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


async def test_too_many_changes_are_reported_as_lost(tmp_path):
    watcher = Watcher(lambda: None)
    await watcher.changes(identities(tmp_path))
    first, second = tmp_path / "a", tmp_path / "b"
    first.touch()
    for _ in range(LIMIT // 2 + 1):
        first.rename(second)
        second.rename(first)
    with pytest.raises(WatchLostError, match="too many"):
        await watcher.changes(identities(tmp_path))
    assert await watcher.changes(identities(tmp_path)) == {str(tmp_path)}
    watcher.close()
