"""A disk without room, and one that takes no writes: reads go on, and service returns by itself."""

import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_files import broken_files
from device import Device, ending
from small_disk import Disk
from world import World

from thermocline.daemon.client import ApiError

# How soon it looks whether there is room; and who waits for an index that has none, hangs.
WATCHFUL = ("store.state_file_check_seconds=0.1", "index.search_wait_ms=60000")
SEED = int(os.environ.get("THERMOCLINE_SEED", "21"))


class Starved(Device):
    """A device whose state is on a small disk.

    Attributes:
        seen: where that is for the test.
    """

    def __init__(self, folder: Path, disk: Disk, url: str | None = None) -> None:
        super().__init__(folder, *WATCHFUL, url=url)
        self.state = disk.path
        self.seen = disk.seen
        self.prefix = disk.prefix


@pytest.fixture
def starved(tmp_path: Path, small_disk: Disk) -> Iterator[Starved]:
    """A device with its state on the small disk; not started."""
    device = Starved(tmp_path / "device", small_disk)
    with ending(device):
        yield device


def store_facts(client, count, first=0):
    """Store facts that share a word and differ in another."""
    return [
        client.store(f"fact{n}: the heron nests at pier {n}").id
        for n in range(first, first + count)
    ]


def store_until_refused(client):
    """Store until the disk refuses; gives the ids that were acknowledged and the refusal."""
    acknowledged = []
    while True:
        try:
            acknowledged += store_facts(client, 1, first=10_000 + len(acknowledged))
        except ApiError as error:
            return acknowledged, error
        assert len(acknowledged) < 20_000, "the disk never refused"


def refusal(client):
    """What the daemon says to a write that the disk cannot take."""
    with pytest.raises(ApiError) as caught:
        client.store("no room for this")
    return caught.value.code, caught.value.status


def problem_codes(client):
    return [problem.code for problem in client.health().problems]


def assert_reads_go_on(client, ids):
    assert client.get(ids[0]).text.startswith("fact0")
    assert client.list(limit=1).total == len(ids)
    assert len(client.recall("heron", limit=5).results) == 5
    assert client.recall("fact0").results[0].id == ids[0]
    assert client.kv_get("kept").value == "yes"
    assert client.hot().state["identity"]["agent_name"] == "Otis"
    assert client.status().agents["default"].memories == len(ids)


def furnish(client):
    client.kv_set("kept", "yes")
    client.hot_update("identity", {"agent_name": "Otis"})
    return store_facts(client, 20)


def test_a_disk_that_fills_up_refuses_writes_at_once_and_serves_again_by_itself(
    starved, small_disk, eventually
):
    starved.start()
    with starved.client() as client:
        ids = furnish(client)
        small_disk.fill()
        more, error = store_until_refused(client)
        ids += more
        assert (error.code, error.status) == ("disk_full", 507)
        assert error.hint
        for _ in range(20):
            assert refusal(client) == ("disk_full", 507)
        with pytest.raises(ApiError, match="disk is full"):
            client.forget(ids[0])
        with pytest.raises(ApiError, match="disk is full"):
            client.kv_set("kept", "no " * 5000)
        assert_reads_go_on(client, ids)
        assert client.health().status == "degraded"
        assert "disk_full" in problem_codes(client)

        small_disk.free()
        eventually(lambda: client.health().status == "ok", "health is ok again")
        ids += store_facts(client, 5, first=50_000)
        assert_reads_go_on(client, ids)
        warm = starved.seen / "agents/default/warm-memory.json"
        eventually(
            lambda: warm.exists() and "fact50004" in warm.read_text(),
            "the state files have caught up",
        )


@pytest.mark.parametrize("ended", ["stopped", pytest.param("killed", marks=pytest.mark.crash)])
def test_a_daemon_that_starts_on_a_full_disk_reads_and_writes_again_by_itself(
    ended, starved, small_disk, eventually
):
    starved.start()
    with starved.client() as client:
        ids = furnish(client)
    starved.stop() if ended == "stopped" else starved.kill()
    small_disk.fill()
    starved.start()
    with starved.client() as client:
        assert_reads_go_on(client, ids)
        more, error = store_until_refused(client)
        ids += more
        assert error.code == "disk_full"
        eventually(lambda: "disk_full" in problem_codes(client), "health tells of it")
        assert_reads_go_on(client, ids)
        small_disk.free()
        eventually(lambda: client.health().status == "ok", "health is ok again")
        ids += store_facts(client, 5, first=50_000)
        assert_reads_go_on(client, ids)


def test_a_full_disk_is_told_until_there_is_room_though_a_small_write_fits(
    starved, small_disk, eventually
):
    starved.start()
    with starved.client() as client:
        furnish(client)
        starved.files_written()
        small_disk.fill(leave=60_000)
        with pytest.raises(ApiError, match="disk is full"):
            client.batch([{"text": f"large {n} {'x' * 1000}"} for n in range(200)])
        client.kv_set("small", "fits")
        assert "disk_full" in problem_codes(client)
        small_disk.free()
        eventually(lambda: client.health().status == "ok", "health is ok again")


def test_a_new_agent_on_a_full_disk_is_refused_and_begins_when_there_is_room(starved, small_disk):
    starved.start()
    small_disk.fill()
    with starved.client("newcomer") as client:
        assert refusal(client) == ("disk_full", 507)
        small_disk.free()
        assert client.store("there is room now").id
        assert client.list().total == 1


def test_replication_that_meets_a_full_disk_says_so_and_goes_on_when_there_is_room(
    sqld_binary, small_disk, tmp_path
):
    with World(sqld_binary, 1) as world:
        [there] = world.devices
        starved = Starved(tmp_path / "device", small_disk, url=world.server.url)
        with ending(starved):
            starved.start()
            ids = furnish(starved.memory)
            small_disk.fill()
            for first in range(0, 1200, 400):
                texts = [f"fact {n} {'x' * 600}" for n in range(first, first + 400)]
                there.memory.batch([{"text": text} for text in texts])
            there.sync()
            with pytest.raises(ApiError) as caught:
                starved.sync()
            assert caught.value.code == "disk_full"
            assert starved.recall("heron")
            assert "disk_full" in starved.problems()
            small_disk.free()
            # What came meanwhile, whole pages of it, stays.
            starved.sync()
            assert {*ids} <= starved.memories().keys()
            assert starved.memories().keys() >= there.memories().keys()


def test_a_new_agent_that_was_refused_and_stays_away_leaves_no_problem_behind(
    starved, small_disk, eventually
):
    starved.start()
    small_disk.fill()
    with starved.client("newcomer") as client:
        assert refusal(client) == ("disk_full", 507)
    small_disk.free()
    with starved.client() as client:
        eventually(lambda: client.health().status == "ok", "health is ok again")


def test_a_first_start_on_a_full_disk_says_why_and_ends(starved, small_disk):
    small_disk.fill()
    starved.start(wait=False)
    assert starved.process.wait(60) == 1
    assert "thermocline: " in starved.log.read_text()
    assert "Traceback" not in starved.log.read_text()
    small_disk.free()
    starved.start()
    with starved.client() as client:
        assert client.store("now it can").id


def test_a_read_only_disk_is_read_and_written_again_when_it_can_be(starved, small_disk, eventually):
    # A kernel refuses to make a disk read-only while files on it are open for writing.
    starved.start()
    with starved.client() as client:
        ids = furnish(client)
    starved.stop()
    small_disk.remount("ro")
    starved.start()
    with starved.client() as client:
        assert refusal(client) == ("read_only", 503)
        assert_reads_go_on(client, ids)
        assert problem_codes(client) == ["read_only"]
        small_disk.remount("rw")
        eventually(lambda: client.health().status == "ok", "health is ok again")
        ids += store_facts(client, 5, first=50_000)
        assert_reads_go_on(client, ids)


@pytest.mark.parametrize("ended", ["going on", pytest.param("killed", marks=pytest.mark.crash)])
def test_watched_files_are_indexed_when_there_is_room_again_for_the_index(
    ended, starved, small_disk, tmp_path, eventually
):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "first.md").write_text("about an albatross\n")
    starved.start()
    with starved.client() as client:
        ids = furnish(client)
        client.files_add(str(docs))
        eventually(lambda: client.files_search("albatross").chunks, "it is indexed")
        small_disk.fill()
        for number in range(12):
            words = " ".join(f"word{number}x{n}" for n in range(1500))
            (docs / f"{number}.md").write_text(f"about kittiwake{number} {words}\n")
        (docs / "first.md").unlink()
        eventually(lambda: index_fails(client), "it is told that the index has no room")
        assert client.files_search("albatross") is not None
        assert_reads_go_on(client, ids)
        if ended == "killed":
            starved.kill()
            starved.start()
        small_disk.free()
        for number in (0, 11):
            eventually(
                lambda n=number: client.files_search(f"kittiwake{n}").chunks, "all is indexed"
            )
        eventually(lambda: not client.files_search("albatross").chunks, "what went is gone")
        eventually(lambda: not index_fails(client), "the index is told to be well")
        eventually(lambda: client.health().status == "ok", "health is ok again")
        ids += store_facts(client, 5, first=50_000)
        assert_reads_go_on(client, ids)


def index_fails(client):
    return "index_failed" in {problem.code for problem in client.status().problems}


# The replica is on it too, and nothing that the load stores ever goes.
@pytest.mark.parametrize("small_disk", [32], indirect=True)
@pytest.mark.crash
def test_nothing_acknowledged_is_lost_on_a_disk_that_fills_and_empties_under_load(
    starved, small_disk, make_load, eventually
):
    chance = random.Random(SEED)
    starved.start()
    load = make_load(starved.socket, workers=4, seed=SEED).start()
    for number in range(20):
        calls = load.total()["store"] + chance.randint(20, 60)
        eventually(lambda calls=calls: load.total()["store"] > calls, "the load goes on")
        small_disk.fill(leave=chance.choice([0, 0, 4096, 20_000]))
        refused = load.total()["refused"] + 20
        eventually(lambda refused=refused: load.total()["refused"] > refused, "writes are refused")
        if number % 2:
            starved.kill()
            starved.start()
        assert broken_files(starved.seen) == []
        small_disk.free()
    load.end()
    print(f"\n20 full disks, 10 with a kill, 4 clients: {dict(sorted(load.total().items()))}")
    assert load.faults() == []
    assert {said.partition(":")[0] for said in load.refused()} == {"disk_full"}
    with starved.client() as client:
        eventually(lambda: client.health().status == "ok", "health is ok again")
    starved.stop()
    warm = json.loads((starved.seen / "agents/default/warm-memory.json").read_text())
    assert warm


@pytest.mark.crash
def test_a_disk_that_the_kernel_gives_up_is_read_on_and_keeps_everything(tmp_path):
    image, disk = tmp_path / "image", tmp_path / "disk"
    image.write_bytes(bytes(12 << 20))
    disk.mkdir()
    mount = ["mount", "-o", "loop", str(image), str(disk)]
    try:
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        subprocess.run(mount, check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no disk image can be mounted here: {error}")
    device = Device(tmp_path / "device", *WATCHFUL)
    device.state = disk
    try:
        device.start()
        with device.client() as client:
            ids = furnish(client)
            subprocess.run(["mount", "-o", "remount,abort", str(disk)], check=False)
            for _ in range(5):
                # Not every kernel shows such a disk as read-only.
                assert refusal(client) in {("read_only", 503), ("disk_full", 507)}
            assert_reads_go_on(client, ids)
            assert {"read_only", "disk_full"} & {*problem_codes(client)}
        assert device.stop() == 0
        subprocess.run(["umount", str(disk)], check=True)
        subprocess.run(mount, check=True)
        device.start()
        with device.client() as client:
            assert_reads_go_on(client, ids)
            assert client.store("the disk is back").id
        assert device.stop() == 0
    finally:
        if device.running:
            device.kill()
        subprocess.run(["umount", "--lazy", str(disk)], check=False)


def test_what_needs_room_to_be_read_is_refused_with_the_reason(starved, small_disk):
    starved.start()
    with starved.client() as client:
        furnish(client)
        client.store("a long text " * 5_000)
        small_disk.fill()
        for path in ("/api/export", "/api/backup"):
            with pytest.raises(ApiError) as caught:
                client.request("GET", path)
            assert (caught.value.code, caught.value.status) == ("disk_full", 507), path
        assert client.recall("heron", limit=5).results
