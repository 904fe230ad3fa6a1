"""A thousand stores: one after another, and from many clients at once."""

import threading
import time

import pytest
from device import pages

from thermocline.daemon.client import Client


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
