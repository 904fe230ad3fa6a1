"""A thousand agents or stores, and a slow disk: everyone is served, and nothing is lost."""

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon, wait_until
from device import pages

from thermocline.daemon.client import Client

MOST_OPEN = 8


def opened_files(daemon: Daemon) -> int:
    assert daemon.process is not None
    return len([*Path(f"/proc/{daemon.process.pid}/fd").iterdir()])


@pytest.mark.parametrize("count", [20, pytest.param(1_000, marks=pytest.mark.crash)])
def test_many_agents_are_open_few_at_a_time_and_all_are_kept(count, make_daemon):
    daemon = make_daemon(f"--set=store.max_open_agents={MOST_OPEN}").start()
    agents = [f"agent{number}" for number in range(count)]
    failed: list[object] = []

    def store(share: list[str]) -> None:
        try:
            for agent in share:
                with daemon.client(agent) as client:
                    client.store(f"what {agent} knows")
        except Exception as error:  # noqa: BLE001 - shown below
            failed.append(error)

    threads = [threading.Thread(target=store, args=(agents[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    with daemon.client() as client:
        wait_until(
            lambda: len(client.status().agents) <= MOST_OPEN + 1, "the others are closed again"
        )
    assert opened_files(daemon) < 20 * (MOST_OPEN + 4)
    daemon.kill()
    daemon.start()
    for agent in agents:
        with daemon.client(agent) as client:
            assert [memory.text for memory in client.list().results] == [f"what {agent} knows"]


@pytest.mark.crash
def test_a_disk_that_takes_seconds_to_sync_holds_up_no_reader(make_daemon, tmp_path):
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    daemon = make_daemon().start()
    with daemon.client() as client:
        client.store("the gate code is 4711")
    daemon.stop()
    slow = (
        "strace", "-D", "-f", "-qq", "-o", str(tmp_path / "trace"), "-e", "trace=fsync,fdatasync",
    )  # fmt: skip
    daemon.start(prefix=(*slow, "-e", "inject=fsync,fdatasync:delay_exit=3000000"))
    stored: list[Any] = []

    def store() -> None:
        with daemon.client() as client:
            stored.append(client.store("takes its time").id)

    writing = threading.Thread(target=store)
    with daemon.client() as client:
        writing.start()
        answers = [client.recall("gate code").results for _ in range(20)]
        assert all(answers)
        assert not stored, "the disk was not slow"
        writing.join(120)
        assert stored
        assert client.get(stored[0]).text == "takes its time"


@pytest.mark.parametrize("clients", [20, pytest.param(200, marks=pytest.mark.crash)])
def test_a_thousand_stores_from_many_connections_at_once_are_all_kept(clients, daemon):
    promised: dict[str, str] = {}
    together = threading.Barrier(clients + 1)

    def store_share(number):
        with Client(str(daemon.socket)) as client:
            client.health()
            together.wait(60)
            for n in range(1000 // clients):
                text = f"client {number} says {n}"
                promised[client.store(text).id] = text

    threads = [threading.Thread(target=store_share, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    together.wait(60)
    began = time.monotonic()
    for thread in threads:
        thread.join(60)
    rate = len(promised) / (time.monotonic() - began)
    print(f"\n{clients} connections at once: {len(promised)} kept, {rate:.0f} a second")
    daemon.kill()
    daemon.start()
    with daemon.client() as client:
        assert {memory["id"]: memory["text"] for memory in pages(client)} == promised
    assert len(promised) == 1000
