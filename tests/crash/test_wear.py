"""Wear of the disk: how often storing syncs it, and how much is written for one memory."""

import time

import pytest
from tracing import Tracing

FEW_FSYNCS = 4
STEADY_FSYNCS = 1.5


@pytest.fixture
def traced(daemon, tmp_path):
    """`traced(work)` runs `work` with a client, and waits until all files are written."""

    def wait_for_state_files(client):
        deadline = time.monotonic() + 60
        while any(agent.state_files_pending for agent in client.status().agents.values()):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def run(work):
        with daemon.client() as client:
            client.store("the first opens the memory")
            client.hot_update("identity", {"name": "Ada"})
            wait_for_state_files(client)
            with Tracing(daemon.process.pid, tmp_path) as tracing:
                if tracing.why_not:
                    pytest.skip(tracing.why_not)
                work(client)
                wait_for_state_files(client)
        return tracing

    return run


@pytest.mark.parametrize("importance", [0.5, 0.9], ids=["warm", "hot"])
def test_one_isolated_store_costs_few_fsyncs(traced, importance):
    tracing = traced(lambda client: client.store("the heron nests", importance=importance))
    assert {"memory.db-wal", "warm-memory.json"} <= tracing.written.keys()
    assert ("MEMORY.md" in tracing.written) == (importance == 0.9)
    assert 2 <= tracing.syncs.total() <= FEW_FSYNCS, tracing.syncs


def test_a_reading_costs_no_fsync(traced):
    tracing = traced(lambda client: [client.list(), client.status(), client.hot_markdown()])
    assert not tracing.syncs.total(), tracing.syncs


def test_nothing_is_written_for_what_says_the_same(traced):
    def again(client):
        client.hot_update("identity", {"name": "Ada"})

    assert not {"MEMORY.md", "hot-memory-state.json"} & traced(again).written.keys()


@pytest.mark.crash
def test_a_store_a_second_costs_at_most_three_fsyncs_for_two(traced):
    stores = 40

    def store(client):
        for number in range(stores):
            begun = time.monotonic()
            client.store(f"fact {number} of the heron", importance=0.9)
            time.sleep(max(0.0, 1.0 - (time.monotonic() - begun)))

    tracing = traced(store)
    assert tracing.syncs.total() / stores <= STEADY_FSYNCS, tracing.syncs
