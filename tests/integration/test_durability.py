"""What a kill at the worst moment leaves, set up by hand; `tests/crash/` finds such moments."""

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from store_parts import make_agents

from thermocline.daemon.client import ApiError
from thermocline.daemon.config.settings import StoreSettings
from thermocline.daemon.store.records import key_values


def test_half_written_files_of_a_killed_daemon_are_removed(daemon):
    daemon.stop()
    leftovers = [
        daemon.folder() / ".MEMORY.md.a1b2c3d4.tmp",
        daemon.folder() / ".warm-memory.json.zzzzzzz_.tmp",
    ]
    for path in leftovers:
        path.write_text("half of a fi")
    own = daemon.folder() / ".notes.tmp"
    own.write_text("somebody's own")
    daemon.start()
    assert not any(path.exists() for path in leftovers)
    assert own.exists()


def test_a_file_size_limit_refuses_writes_and_reads_go_on(daemon, eventually):
    resource = pytest.importorskip("resource")
    pid = daemon.process.pid
    with daemon.client() as client:
        key = client.store("the heron nests at pier 4").id
        agent = lambda: client.status().agents["default"]  # noqa: E731
        eventually(lambda: not agent().state_files_pending, "files written")
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        for _ in range(3):
            with pytest.raises(ApiError) as caught:
                client.store("no room for this")
            assert caught.value.code == "disk_full"
        assert client.get(key).text == "the heron nests at pier 4"
        assert "disk_full" in [problem.code for problem in client.health().problems]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        eventually(lambda: client.health().status == "ok", "health is ok again")
        assert client.store("there is room now").id


@pytest.fixture
def agents(tmp_path):
    threads = ThreadPoolExecutor(2)
    settings = StoreSettings(idle_close_seconds=0.0, max_open_agents=8)
    yield make_agents(tmp_path, threads, lambda: settings, now=lambda: 1_790_000_000.0, readers=1)
    threads.shutdown()


async def test_an_agent_that_somebody_came_for_is_not_closed_as_idle(agents):
    async with agents.use("seldom", create=True) as store:
        await agents._close("seldom", unless_used=True)
        assert await store.read(lambda db: db.execute("SELECT 1").fetchone()) == (1,)
    await agents._close("seldom", unless_used=True)
    assert agents.open_stores() == {}
    await agents.close()


async def stored(agents):
    async with agents.use("ada", create=True) as store:
        await store.write(lambda tx: key_values.put(tx, "key", "new"))


async def test_what_is_stored_after_a_folder_was_removed_under_a_reader_is_kept(agents):
    async with agents.use("ada", create=True) as old:
        shutil.rmtree(old.place.folder)
        later = asyncio.create_task(stored(agents))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not later.done()
    await later
    async with agents.use("ada", create=False) as new:
        assert new is not old
        assert new.place.database.exists()
        assert await new.read(lambda db: key_values.PAIRS.get(db, "key").value) == "new"
    await agents.close()
