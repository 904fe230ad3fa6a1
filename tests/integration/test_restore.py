"""Restoring from a replica: everything comes back, or nothing is moved in and it is said why."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import restoring
from devices import Clock, Device
from restoring import MANY, NOW, Recorder, measure, restore

from thermocline.daemon.errors import (
    AlreadyRunning,
    Conflict,
    NotFound,
    ReplicaAway,
    ReplicaRefused,
    StoreDamaged,
)
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.replication.account import CREDENTIALS_FILE, REPLICA_FILE
from thermocline.daemon.store import fingerprints, key_values, link, memories, outgoing
from thermocline.daemon.store.agents import Agents
from thermocline.daemon.store.lock import StateLock
from thermocline.daemon.store.transaction import Rules
from thermocline.sync import FileRemote, Remote, Replica, Result, Row, Statement, TryLater

# Enough for a life, where a test needs no second page.
FEW = 130
LOOSE = Rules(warm_max_bytes=10_000_000)

MakeDevice = Callable[..., Device]


@pytest.fixture
async def replica(tmp_path: Path) -> AsyncIterator[FileRemote]:
    """A replica that is a file."""
    remote = FileRemote(tmp_path / "replica.db")
    yield remote
    await remote.close()


@pytest.fixture
async def make_device(tmp_path: Path, threads: Executor) -> AsyncIterator[MakeDevice]:
    """`make_device(name, remote, folder=…)` opens a memory that follows the remote."""
    made: list[Device] = []

    def make(name: str, remote: Remote, folder: Path | None = None) -> Device:
        clock = Clock(NOW + len(made))
        place = folder or tmp_path / name
        made.append(Device(place, name, remote, now=clock, threads=threads, rules=LOOSE))
        return made[-1]

    yield make
    for device in made:
        await device.stop()


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A device with a small life and the replica that has heard of it, to be copied."""
    folder = tmp_path_factory.mktemp("life")

    async def live() -> None:
        remote = FileRemote(folder / "replica.db")
        with ThreadPoolExecutor(1) as threads:
            args = (folder / "source", "source", remote)
            device = Device(*args, now=Clock(NOW), threads=threads, rules=LOOSE)
            await lived(device, FEW)
            await device.stop()
        await remote.close()

    asyncio.run(live())
    return folder


@pytest.fixture
async def source(
    life: Path, make_device: MakeDevice, replica: FileRemote, tmp_path: Path
) -> Device:
    """That device, and in the fixture `replica` what it has sent."""
    shutil.copy(life / "replica.db", tmp_path)
    shutil.copytree(life / "source", tmp_path / "source")
    return make_device("source", replica)


async def lived(device: Device, number: int) -> Device:
    await restoring.live(device, number)
    await device.sync()
    return device


def sql(path: Path, *statements: str) -> list[Any]:
    """Run statements in a database file, past everything that guards it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        found: list[Any] = []
        for statement in statements:
            found = db.execute(statement).fetchall()
        return found


def fingerprint(db: sqlite3.Connection) -> str:
    return fingerprints.total(row.fingerprint for row in fingerprints.everything(db))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_everything_comes_back(
    make_device: MakeDevice, replica: FileRemote, tmp_path: Path
) -> None:
    source = await lived(make_device("source", replica), MANY)
    other = make_device("other", replica)
    await other.sync()
    await other.write(lambda tx: memories.reinforce(tx, ["m00001", "m00002"]))
    await other.sync()
    await source.sync()

    outcome = await restore(replica, tmp_path / "state")

    [restored] = outcome.restored
    assert (outcome.failed, outcome.passed_over) == ({}, [])
    assert (restored.memories, restored.key_values) == (MANY - 1, 1)
    assert names(tmp_path / "state") == ["agents", "device.json", "lock"]
    assert names(tmp_path / "state/agents") == ["default"]
    assert names(tmp_path / "state/agents/default") == ["memory.db"]
    back = make_device("new", replica, tmp_path / "state")
    assert (await back.contents()).shared == (await source.contents()).shared
    assert (await back.contents()).buried == (await source.contents()).buried
    assert await back.read(fingerprint) == await source.read(fingerprint)
    assert (await back.contents()).queued == []


async def test_the_traces_of_deletions_are_counted_apart(
    replica: FileRemote, tmp_path: Path
) -> None:
    there = Replica(replica, "default")
    await there.prepare(NOW)
    gone = [Row(kind="kv", id=key, data=None, clock=1, device="d") for key in ("a", "b")]
    stays = Memory(id="m1", text="it stays", created_at=NOW, updated_at=NOW, clock=1, device="d")
    await there.push([*gone, outgoing.memory_row(stays, 0)])
    [restored] = (await restore(replica, tmp_path / "state")).restored
    assert (restored.memories, restored.rows, restored.deletions) == (1, 1, 2)


async def test_the_restored_memory_goes_on_without_sending_or_receiving_anything_anew(
    make_device: MakeDevice, source: Device, replica: FileRemote, tmp_path: Path
) -> None:
    await restore(replica, tmp_path / "state")
    back = make_device("new", replica, tmp_path / "state")
    before = await source.replica.poll()

    tally = await back.sync(look=True)

    assert (tally.sent, tally.received, tally.refused, tally.critical) == (0, 0, 0, False)
    assert await source.replica.poll() == before
    await source.write(lambda tx: key_values.put(tx, "from", "source"))
    await back.write(lambda tx: key_values.put(tx, "to", "source"))
    await source.sync()
    assert (await back.sync()).received == 1
    assert (await source.sync()).received == 1
    assert (await back.contents()).shared == (await source.contents()).shared


async def test_what_is_stored_after_a_restore_is_later_than_all_that_came(
    make_device: MakeDevice, source: Device, replica: FileRemote, tmp_path: Path
) -> None:
    await restore(replica, tmp_path / "state", now=lambda: 1000.0)
    back = make_device("new", replica, tmp_path / "state")
    back.now.seconds = 1000.0  # type: ignore[attr-defined]
    await back.write(lambda tx: key_values.put(tx, "colour", "red"))
    await back.sync()
    await source.sync()
    assert (await source.contents()).live["kv", "colour"][1][0] == "red"


def kill(**given: Any) -> None:
    """Restore in a process that kills itself."""
    done = _run(given)
    assert done.returncode == -9, done.stderr


def go_on(**given: Any) -> Any:
    """Restore in another process; what it said."""
    done = _run(given)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _run(given: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, restoring.__file__, json.dumps(given)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


async def test_a_killed_restore_is_gone_on_with_and_asks_for_nothing_twice(
    make_device: MakeDevice, sqld: Any, fault_proxy: Any, tmp_path: Path
) -> None:
    from thermocline.sync import turso  # noqa: PLC0415 - slow to load

    remote = await turso.connect(sqld.url)
    source = await lived(make_device("source", remote), MANY)
    given = {"url": fault_proxy.url, "to": str(tmp_path / "state")}

    kill(**given, kill="page 3")
    before = fault_proxy.counted.to_client
    said = go_on(**given)
    second = fault_proxy.counted.to_client - before

    # The first page is of the other kinds, the next two of a thousand statements.
    assert said["pages"] == [MANY - 1 - 1000]
    assert said["known"][0] > 1000
    assert said["restored"][0]["resumed"] == said["known"][0]
    assert second < before / 2
    back = make_device("new", remote, tmp_path / "state")
    assert (await back.contents()).shared == (await source.contents()).shared
    await remote.close()


@pytest.mark.usefixtures("source")
async def test_a_restore_from_another_replica_begins_anew(
    make_device: MakeDevice, replica: FileRemote, tmp_path: Path
) -> None:
    def stop(what: str, _: Recorder) -> None:
        if what == "received":
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await restore(replica, tmp_path / "state", watch=Recorder(stop))
    again = FileRemote(tmp_path / "another.db")
    other = await lived(make_device("other", again), 5 + FEW)
    recorder = Recorder()
    await restore(again, tmp_path / "state", watch=recorder, url="file:/another")
    assert recorder.known == [0]
    back = make_device("new", again, tmp_path / "state")
    assert (await back.contents()).shared == (await other.contents()).shared
    await again.close()


@pytest.mark.usefixtures("source")
async def test_a_replica_that_was_begun_anew_under_its_url_is_not_mixed_with_the_old_one(
    make_device: MakeDevice, replica: FileRemote, tmp_path: Path
) -> None:
    def stop(what: str, _: Recorder) -> None:
        if what == "page 2":
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await restore(replica, tmp_path / "state", watch=Recorder(stop))
    (tmp_path / "replica.db").unlink()
    other = await lived(make_device("other", replica), 20)
    await restore(replica, tmp_path / "state")
    back = make_device("new", replica, tmp_path / "state")
    assert (await back.contents()).shared == (await other.contents()).shared


async def test_changes_during_the_restore_are_in_it(
    make_device: MakeDevice, replica: FileRemote, tmp_path: Path
) -> None:
    source = await lived(make_device("source", replica), MANY)
    changes: list[Callable[[], Awaitable[Any]]] = [
        lambda: source.write(lambda tx: key_values.put(tx, "colour", "blue")),
        lambda: source.write(lambda tx: memories.delete(tx, memories.find(tx.db, "m00001"))),
        lambda: source.write(lambda tx: memories.reinforce(tx, ["m00002"])),
    ]

    class Meanwhile(Remote):
        """The replica, in which others write between two questions."""

        async def batch(self, statements: Sequence[Statement]) -> list[Result]:
            if changes and "FROM cold_memories WHERE agent_id" in statements[0].sql:
                await changes.pop(0)()
                await source.sync()
            return await replica.batch(statements)

        async def close(self) -> None:
            """It is another's."""

    await restore(Meanwhile(), tmp_path / "state")
    assert changes == []
    back = make_device("new", replica, tmp_path / "state")
    assert (await back.contents()).shared == (await source.contents()).shared
    assert (await back.sync()).received == 0


@pytest.mark.usefixtures("source")
async def test_a_place_that_holds_a_memory_is_left_as_it_is(
    replica: FileRemote, tmp_path: Path
) -> None:
    await restore(replica, tmp_path / "state")
    before = (tmp_path / "state/agents/default/memory.db").read_bytes()
    with pytest.raises(Conflict, match=r"holds a memory") as refused:
        await restore(replica, tmp_path / "state")
    assert "--replace" in (refused.value.hint or "")
    assert (tmp_path / "state/agents/default/memory.db").read_bytes() == before
    assert names(tmp_path / "state/agents") == ["default"]


@pytest.mark.parametrize("file", ["warm-memory.json", "memory/hot-memory-state.json"])
@pytest.mark.usefixtures("source")
async def test_state_files_alone_are_a_memory_as_well(
    file: str, replica: FileRemote, tmp_path: Path
) -> None:
    path = tmp_path / "state/agents/default" / file
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    with pytest.raises(Conflict):
        await restore(replica, tmp_path / "state")


async def test_replacing_keeps_what_was_there_and_says_where(
    make_device: MakeDevice, source: Device, replica: FileRemote, tmp_path: Path
) -> None:
    old = make_device("old", replica, tmp_path / "state")
    await old.write(lambda tx: key_values.put(tx, "only", "here"))
    await old.stop()
    folder = tmp_path / "state/agents/default"
    (folder / "memory").mkdir()
    (folder / "memory/2026-01-01.md").write_text("a note")
    (folder / "memory" / CREDENTIALS_FILE).write_text("{}")
    (folder / REPLICA_FILE).write_text("a replica")

    [restored] = (await restore(replica, tmp_path / "state", replace=True)).restored

    aside = Path(restored.set_aside or "")
    assert re.fullmatch(r"default\.before-restore-\d{8}T\d{6}", aside.name)
    assert restored.unsent == 1
    assert sql(aside / "memory.db", "SELECT value FROM kv") == [("here",)]
    # What is no memory is not the replica's to bring back.
    for place in (aside, folder):
        assert (place / "memory/2026-01-01.md").read_text() == "a note"
        assert (place / "memory" / CREDENTIALS_FILE).is_file()
        assert (place / REPLICA_FILE).read_text() == "a replica"
    assert not (folder / "hot-memory-state.json").exists()
    back = make_device("new", replica, tmp_path / "state")
    assert (await back.contents()).shared == (await source.contents()).shared
    assert agents_in(back) == ["default"]


def agents_in(device: Device) -> list[str]:
    agents: Agents = device.agents
    return agents.names()


async def test_a_folder_with_notes_alone_gets_the_memory_beside_them(
    make_device: MakeDevice, source: Device, replica: FileRemote, tmp_path: Path
) -> None:
    folder = tmp_path / "state/agents/default"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory/knowledge.md").write_text("known")
    # The log of a database that is gone would be taken for the new one's.
    (folder / "memory.db-wal").write_bytes(b"old log")
    [restored] = (await restore(replica, tmp_path / "state")).restored
    assert restored.set_aside is None
    assert (folder / "memory/knowledge.md").read_text() == "known"
    assert [path.name[:28] for path in folder.glob("memory.db-wal*")] == [
        "memory.db-wal.before-restore"
    ]
    back = make_device("new", replica, tmp_path / "state")
    assert (await back.contents()).shared == (await source.contents()).shared


@pytest.mark.usefixtures("source")
async def test_a_running_daemon_keeps_its_memories(replica: FileRemote, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with (
        StateLock(tmp_path / "state", Path("/run/t.sock")),
        pytest.raises(AlreadyRunning) as refused,
    ):
        await restore(replica, tmp_path / "state")
    assert "stop it" in (refused.value.hint or "")


@pytest.mark.usefixtures("source")
async def test_several_agents_come_back_each_by_itself(replica: FileRemote, tmp_path: Path) -> None:
    await _other_agent(replica, tmp_path, "other")
    sql(tmp_path / "replica.db", "UPDATE cold_memories SET record = '{}' WHERE agent_id = 'other'")

    outcome = await restore(replica, tmp_path / "state")

    assert [each.agent for each in outcome.restored] == ["default"]
    assert list(outcome.failed) == ["other"]
    assert "memory one" in outcome.failed["other"].message
    assert names(tmp_path / "state/agents") == [".other.restoring", ".restoring.json", "default"]
    # The same command again has only the other left to do.
    sql(
        tmp_path / "replica.db",
        "UPDATE cold_memories SET record = (SELECT record FROM kept) WHERE agent_id = 'other'",
    )
    outcome = await restore(replica, tmp_path / "state")
    assert [each.agent for each in outcome.restored] == ["default", "other"]
    assert names(tmp_path / "state/agents") == ["default", "other"]
    assert outcome.restored[1].memories == 1


class Pruned:
    """A replica on which the traces of one agent's deletions go again and again."""

    def __init__(self, inner: Remote, path: Path, agent: str) -> None:
        self._inner = inner
        self._path = path
        self._agent = agent

    async def batch(self, statements: Sequence[Statement]) -> list[Result]:
        if any("replica_clock" in each.sql for each in statements):
            change = f"seq = seq + 9, pruned = seq + 9 WHERE agent_id = '{self._agent}'"
            sql(self._path, f"UPDATE replica_clock SET {change}")
        return await self._inner.batch(statements)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.usefixtures("source")
async def test_an_agent_that_cannot_be_restored_now_keeps_no_other(
    replica: FileRemote, tmp_path: Path
) -> None:
    await _other_agent(replica, tmp_path, "aaa")
    pruned = Pruned(replica, tmp_path / "replica.db", "aaa")
    outcome = await restore(pruned, tmp_path / "state")
    assert [each.agent for each in outcome.restored] == ["default"]
    assert "cannot restore 'aaa' now" in outcome.failed["aaa"].message


async def _other_agent(replica: FileRemote, folder: Path, agent: str) -> None:
    from thermocline.daemon.store import outgoing  # noqa: PLC0415
    from thermocline.sync import Replica  # noqa: PLC0415

    memory = Memory(id="one", text="another's", created_at=1.0, updated_at=1.0, clock=5, device="d")
    row = outgoing.memory_row(memory, 0)
    await Replica(replica, agent).push([row])
    sql(folder / "replica.db", "CREATE TABLE kept AS SELECT * FROM cold_memories WHERE id = 'one'")


@pytest.mark.usefixtures("source")
async def test_one_agent_of_several_comes_back_alone(replica: FileRemote, tmp_path: Path) -> None:
    await _other_agent(replica, tmp_path, "other")
    await restore(replica, tmp_path / "state", "other")
    assert names(tmp_path / "state/agents") == ["other"]
    with pytest.raises(NotFound) as refused:
        await restore(replica, tmp_path / "state", "nobody")
    assert refused.value.hint == "it holds the memory of: 'default', 'other'"


@pytest.mark.usefixtures("source")
async def test_a_name_that_leads_elsewhere_is_passed_over(
    replica: FileRemote, tmp_path: Path
) -> None:
    await _other_agent(replica, tmp_path, "../../evil")
    outcome = await restore(replica, tmp_path / "deep/er/state")
    assert outcome.passed_over == ["../../evil"]
    assert [each.agent for each in outcome.restored] == ["default"]
    assert names(tmp_path / "deep/er") == ["state"]


DAMAGES = {
    "a record": ("UPDATE cold_memories SET record = replace(record, 'word3', 'word4')", "memory m"),
    "an object": (
        "UPDATE objects SET data = data || ' ' WHERE kind = 'kv' AND id = 'colour'",
        "kv",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_row_that_is_damaged_on_the_replica_is_named_and_nothing_is_moved_in(
    damage: str, make_device: MakeDevice, source: Device, replica: FileRemote, tmp_path: Path
) -> None:
    statement, named = DAMAGES[damage]
    sql(tmp_path / "replica.db", statement)
    outcome = await restore(replica, tmp_path / "state")
    [error] = outcome.failed.values()
    assert isinstance(error, StoreDamaged)
    assert "damaged on the replica" in error.message
    assert named in error.message
    assert not (tmp_path / "state/agents/default").exists()

    recorder = Recorder()
    outcome = await restore(replica, tmp_path / "state", watch=recorder, keep_going=True)
    [restored] = outcome.restored
    assert "damaged on the replica" in restored.lost[0]
    assert recorder.pages == []
    back = await make_device("new", replica, tmp_path / "state").contents()
    live = (await source.contents()).live
    assert 0 < len(live.keys() - back.live.keys()) < len(live) / 2
    assert all(back.live[key] == live[key] for key in back.live)


async def test_a_damaged_row_that_a_device_has_mended_comes_with_the_next_run(
    make_device: MakeDevice, source: Device, replica: FileRemote, tmp_path: Path
) -> None:
    sql(tmp_path / "replica.db", DAMAGES["an object"][0])
    assert (await restore(replica, tmp_path / "state")).failed
    await source.write(lambda tx: key_values.put(tx, "colour", "blue"))
    await source.sync()
    assert not (await restore(replica, tmp_path / "state")).failed
    back = make_device("new", replica, tmp_path / "state")
    assert (await back.contents()).shared == (await source.contents()).shared


@pytest.mark.usefixtures("source")
async def test_rows_that_this_release_does_not_know_are_named(
    replica: FileRemote, tmp_path: Path
) -> None:
    sql(
        tmp_path / "replica.db",
        "INSERT INTO objects VALUES ('default', 'dream', 'd1', '{}', 9, 'x', NULL, 1)",
        "INSERT INTO objects VALUES ('default', 'kv', 'odd' || char(27), '[1]', 9, 'x', NULL, 1)",
    )
    [error] = (await restore(replica, tmp_path / "state")).failed.values()
    assert "2 rows are unknown to this release" in error.message
    assert "dream d1" in error.message
    assert "kv odd?" in error.message


TAMPERED = {
    "UPDATE memories SET text = '' WHERE id = 'm00002'": "1 row is not as received: memory m00002",
    "UPDATE kv SET clock = clock + 1": "1 row is not as received: kv colour",
    "UPDATE uses SET count = count + 1": "4 rows are not as received: memory m00001, ",
    "DELETE FROM kv WHERE key = 'colour'": "1 row is not there, though received: kv colour",
    "INSERT INTO kv VALUES ('a', '', 0, 0, 1, 'x')": "1 row is there, though never received: kv a",
    "DELETE FROM received WHERE kind = 'kv'": "rows of the kind 'kv'",
}


@pytest.mark.parametrize("tampering", TAMPERED)
@pytest.mark.usefixtures("source")
async def test_what_differs_from_what_came_is_found_before_it_is_moved_in(
    tampering: str, replica: FileRemote, tmp_path: Path
) -> None:
    def tamper(what: str, _: Recorder) -> None:
        if what == "received":
            sql(tmp_path / "state/agents/.default.restoring/memory.db", tampering)

    outcome = await restore(replica, tmp_path / "state", watch=Recorder(tamper))
    assert TAMPERED[tampering] in outcome.failed["default"].message
    assert names(tmp_path / "state/agents") == []
    # What was found wanting is not gone on with.
    recorder = Recorder()
    assert not (await restore(replica, tmp_path / "state", watch=recorder)).failed
    assert recorder.known == [0]


@pytest.mark.usefixtures("source")
async def test_a_page_that_the_disk_has_changed_is_found(
    replica: FileRemote, tmp_path: Path
) -> None:
    def damage(what: str, _: Recorder) -> None:
        path = tmp_path / "state/agents/.default.restoring/memory.db"
        if what == "received":
            sql(path, "PRAGMA wal_checkpoint(TRUNCATE)")
            with path.open("r+b") as file:
                file.seek(path.stat().st_size // 4096 // 2 * 4096)
                file.write(bytes(range(256)) * 16)

    outcome = await restore(replica, tmp_path / "state", watch=Recorder(damage))
    assert isinstance(outcome.failed["default"], StoreDamaged)
    assert names(tmp_path / "state/agents") == []


@pytest.mark.usefixtures("source")
async def test_what_the_replica_has_lost_meanwhile_is_found_by_its_counts(
    replica: FileRemote, tmp_path: Path
) -> None:
    def lose(what: str, recorder: Recorder) -> None:
        if what == "page 2" and len(recorder.pages) == 2:
            sql(tmp_path / "replica.db", "DELETE FROM cold_memories WHERE id = 'm00020'")

    outcome = await restore(replica, tmp_path / "state", watch=Recorder(lose))
    assert (
        f"it has {FEW - 2:,} rows of the kind 'memory', and {FEW - 1:,} came"
        in outcome.failed["default"].message
    )


async def test_a_token_that_only_reads_is_enough(
    make_device: MakeDevice, sqld_with_auth: Any, tmp_path: Path
) -> None:
    from thermocline.sync import turso  # noqa: PLC0415 - slow to load

    writing = await turso.connect(sqld_with_auth.url, sqld_with_auth.token())
    source = await lived(make_device("source", writing), 20)
    reading = await turso.connect(sqld_with_auth.url, sqld_with_auth.token(read_only=True))
    await restore(reading, tmp_path / "state")
    back = make_device("new", writing, tmp_path / "state")
    assert (await back.contents()).shared == (await source.contents()).shared
    for token in (None, sqld_with_auth.token(expires_in=-3600), "no.such.token"):
        refused = await turso.connect(sqld_with_auth.url, token)
        with pytest.raises(ReplicaRefused) as error:
            await restore(refused, tmp_path / "other")
        assert error.value.code == "replica_unauthorized"
        await refused.close()
    assert not (tmp_path / "other/agents/default").exists()
    await writing.close()
    await reading.close()


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"refuse": True}, "offline"),
        ({"captive_portal": True}, "not_json"),
        ({"truncate_after": 900}, "offline"),
        ({"reset_after_answered": 900}, "offline"),
        ({"status": 503}, "server"),
        ({"status": 429, "retry_after": 1}, "throttled"),
    ],
)
async def test_a_bad_network_is_waited_for(
    fault: dict[str, Any],
    code: str,
    make_device: MakeDevice,
    fault_proxy: Any,
    tmp_path: Path,
) -> None:
    from thermocline.sync import turso  # noqa: PLC0415 - slow to load

    remote = await turso.connect(fault_proxy.url)
    source = await lived(make_device("source", remote), 30)

    def change(what: str, recorder: Recorder) -> None:
        if what == "page 1" and not recorder.errors:
            fault_proxy.faults(**fault)
        if what == "failed" and len(recorder.errors) == 3:
            fault_proxy.heal()

    recorder = Recorder(change)
    await restore(remote, tmp_path / "state", watch=recorder)
    assert recorder.errors == [code] * 3
    back = make_device("new", remote, tmp_path / "state")
    assert (await back.contents()).shared == (await source.contents()).shared
    await back.stop()
    await remote.close()


async def test_who_does_not_want_to_wait_is_told_what_kept_it(
    fault_proxy: Any, tmp_path: Path
) -> None:
    from thermocline.sync import turso  # noqa: PLC0415 - slow to load

    remote = await turso.connect(fault_proxy.url)
    fault_proxy.faults(refuse=True)
    with pytest.raises(ReplicaAway) as error:
        await restore(remote, tmp_path / "state", give_up_seconds=0.05)
    assert error.value.code == "replica_offline"
    await remote.close()


async def test_over_a_slow_line_it_asks_for_fewer_rows_at_a_time(
    make_device: MakeDevice, source: Device, replica: FileRemote, tmp_path: Path
) -> None:
    asked: list[int] = []

    class Slow(Remote):
        """More than a hundred rows take too long."""

        async def batch(self, statements: Sequence[Statement]) -> list[Result]:
            if "LIMIT ?4" in statements[0].sql:
                asked.append(int(statements[0].args[-1] or 0))
                if asked[-1] > 100:
                    raise TryLater("timeout")
            return await replica.batch(statements)

        async def close(self) -> None:
            """It is another's."""

    await restore(Slow(), tmp_path / "state")
    assert asked[:4] == [500, 250, 125, 62]
    assert set(asked[3:]) == {62}
    back = make_device("new", replica, tmp_path / "state")
    assert (await back.contents()).shared == (await source.contents()).shared


EVOCLAW = """
    CREATE TABLE cold_memories (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, text TEXT NOT NULL,
        category TEXT NOT NULL, importance REAL DEFAULT 0.5, created_at INTEGER NOT NULL,
        access_count INTEGER DEFAULT 0);
    CREATE TABLE critical_state (agent_id TEXT PRIMARY KEY, data TEXT NOT NULL,
        updated_at INTEGER NOT NULL);
    INSERT INTO cold_memories WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
        WHERE i < 700) SELECT printf('e%04d', i), 'default', 'fact ' || i, 'old/facts', 0.5,
        1700000000 + i, i % 3 FROM n;
    INSERT INTO critical_state VALUES ('default', '{"hot_state": {"identity":
        {"agent_name": "Otis"}}, "tree_nodes": {"old": {"desc": "What was"}}, "timestamp": 1}', 1);
"""


async def test_a_database_that_evoclaw_filled_comes_back_and_is_taken_over_later(
    make_device: MakeDevice, replica: FileRemote, tmp_path: Path
) -> None:
    sql(tmp_path / "replica.db", *EVOCLAW.split(";"))
    [restored] = (await restore(replica, tmp_path / "state")).restored
    assert (restored.memories, restored.rows) == (700, 700)
    assert sql(tmp_path / "replica.db", "SELECT name FROM sqlite_schema WHERE sql <> ''") == [
        ("cold_memories",),
        ("critical_state",),
    ]
    back = make_device("new", replica, tmp_path / "state")
    contents = await back.contents()
    assert contents.live["hot", "identity/agent_name"][1][0] == '"Otis"'
    assert contents.live["tree", "old"][1][0] == "What was"
    assert contents.counts["e0002"][0] == 2
    await back.sync()
    await back.sync(look=True)
    assert (await back.contents()).queued == []
    assert (await back.replica.counts())["memory"] == 700
    other = make_device("other", replica)
    await other.sync()
    assert (await other.contents()).shared == (await back.contents()).shared


async def test_what_evoclaws_service_kept_in_its_own_tables_is_counted_before_it_comes(
    replica: FileRemote, tmp_path: Path
) -> None:
    service = """
        CREATE TABLE warm_memory (id TEXT PRIMARY KEY, agent_id TEXT, content TEXT,
            event_type TEXT, timestamp INTEGER);
        INSERT INTO warm_memory VALUES ('w1', 'default', 'warm', 'chat', 1700000000),
            ('w2', 'default', '', 'chat', 1700000000), ('w3', 'other', 'warm', 'chat', 1700000000)
    """
    sql(tmp_path / "replica.db", *EVOCLAW.split(";"), *service.split(";"))
    measured = {each.agent: each for each in await measure(replica, tmp_path / "state")}
    assert (measured["default"].counts, measured["default"].rows) == ({"memory": 701}, 701)
    assert measured["other"].counts == {"memory": 1}
    restored = (await restore(replica, tmp_path / "state")).restored
    assert {each.agent: each.memories for each in restored} == {"default": 701, "other": 1}


async def test_a_database_of_evoclaws_first_release_comes_back(
    replica: FileRemote, tmp_path: Path
) -> None:
    sql(
        tmp_path / "replica.db",
        "CREATE TABLE cold_memories (id TEXT PRIMARY KEY, text TEXT NOT NULL, category TEXT NOT"
        " NULL, importance REAL DEFAULT 0.5, created_at INTEGER NOT NULL, access_count INTEGER)",
        "INSERT INTO cold_memories VALUES ('a', 'the first fact', 'old', 0.9, 1600000000, 1)",
    )
    [restored] = (await restore(replica, tmp_path / "state")).restored
    assert (restored.agent, restored.memories) == ("default", 1)


@pytest.mark.usefixtures("source")
async def test_tables_of_a_later_release_are_refused(replica: FileRemote, tmp_path: Path) -> None:
    sql(tmp_path / "replica.db", "INSERT INTO schema_version VALUES (99, 0)")
    with pytest.raises(ReplicaRefused, match="version 99"):
        await restore(replica, tmp_path / "state")


async def test_an_empty_replica_is_no_memory(replica: FileRemote, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no memory"):
        await restore(replica, tmp_path / "state")


async def test_deletions_that_were_forgotten_since_an_interruption_are_not_brought_back(
    make_device: MakeDevice, source: Device, replica: FileRemote, tmp_path: Path
) -> None:
    def stop(what: str, _: Recorder) -> None:
        if what == "received":
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await restore(replica, tmp_path / "state", watch=Recorder(stop))
    await source.write(lambda tx: memories.delete(tx, memories.find(tx.db, "m00002")))
    await source.sync()
    seen = (await source.read(link.load)).seen
    await source.replica.sign("source", "source", seen, NOW)
    assert await source.replica.prune() == seen
    recorder = Recorder()
    await restore(replica, tmp_path / "state", watch=recorder)
    assert recorder.known == [0]
    back = make_device("new", replica, tmp_path / "state")
    assert ("memory", "m00002") not in (await back.contents()).live
