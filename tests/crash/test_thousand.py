"""A thousand stores: one after another, and from many clients at once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time

import pytest
from device import pages

from thermocline.daemon.client import Client

# A client in a process of its own: it waits for the start, stores, and says what it was promised.
CLIENT = """
import json, sys
from thermocline.daemon.client import Client
socket, number, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with Client(socket) as client:
    client.health()
    print("ready", flush=True)
    sys.stdin.readline()
    ids = [client.store(f"client {number} says {n}").id for n in range(count)]
print(json.dumps(ids))
"""


def stored(daemon):
    with daemon.client() as client:
        return {memory["id"]: memory["text"] for memory in pages(client)}


def report(what, count, began):
    seconds = time.monotonic() - began
    print(f"\n{what}: {count} kept, {count / seconds:.0f} a second")


@pytest.mark.crash
def test_a_thousand_stores_one_after_another_are_all_kept(daemon):
    began = time.monotonic()
    with daemon.client() as client:
        promised = {client.store(f"fact {n}").id: f"fact {n}" for n in range(1000)}
    report("one after another", len(promised), began)
    daemon.kill()
    daemon.start()
    assert stored(daemon) == promised
    assert len(promised) == 1000


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
    report(f"{clients} connections at once", len(promised), began)
    daemon.kill()
    daemon.start()
    assert stored(daemon) == promised
    assert len(promised) == 1000


@pytest.mark.crash
def test_stores_from_twenty_processes_at_once_are_all_kept(daemon):
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", CLIENT, str(daemon.socket)]
    processes = [
        subprocess.Popen([*command, str(n), "50"], stdin=pipe, stdout=pipe, text=True)
        for n in range(20)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    began = time.monotonic()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 20
    promised = {key for text in said for key in json.loads(text)}
    report("20 processes at once", len(promised), began)
    daemon.kill()
    daemon.start()
    assert stored(daemon).keys() == promised
    assert len(promised) == 1000
