"""Devices with one database: what starting, leaving, and another database do to replication."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from daemon_process import wait_until
from device import Device, ending


@pytest.fixture
def make_device(tmp_path: Path) -> Iterator[Callable[..., Device]]:
    """`make_device(name, *sets)` starts a device; all have the same database in a file."""
    with ExitStack() as stack:

        def make(name: str, *sets: str, url: str | None = f"file:{tmp_path}/replica.db") -> Device:
            device = Device(tmp_path / name, *sets, url=url)
            stack.enter_context(ending(device))
            return device.start()

        yield make


def test_the_description_of_a_category_survives_a_device_that_hears_of_its_memories_first(
    make_device,
):
    here, there = make_device("here"), make_device("there")
    here.store("the sky is blue", category="work")
    here.sync()
    here.add_category("work", "What pays the rent")
    there.store("of its own")
    for device in (there, here, there, here):
        device.sync()
    for device in (here, there):
        assert device.list_all().categories["work"] == "What pays the rent"


def test_what_a_device_has_not_sent_is_sent_by_its_next_start_and_by_leaving(make_device):
    here = make_device("here", url=None)
    here.agent = "other"
    here.put_pair("key", "value")
    assert here.stop() == 0
    there = make_device("there", "sync.poll_seconds=0.1")
    there.agent = "other"
    assert there.url
    here.start(f"--set=sync.url={there.url}")
    wait_until(lambda: there.list_all().pairs == {"key": "value"}, "it is received")
    here.put_pair("key", "changed")
    assert here.stop() == 0
    wait_until(lambda: there.list_all().pairs == {"key": "changed"}, "it is received")


def test_another_database_is_used_once_the_configuration_names_it(make_device, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    there = make_device("there")
    assert there.url
    here = make_device("here", "store.idle_close_seconds=1", url=None)
    here.agent = "closed"
    here.put_pair("key", "value")
    here.agent = there.agent
    assert here.stop() == 0
    here.start(f"--config={tmp_path / 'config.json'}")
    here.put_pair("key", "value")
    for url in (f"file:{tmp_path}/other.db", there.url):
        wait_until(lambda: "closed" not in here.memory.status().agents, "it is closed")
        here.memory.request("PUT", "/api/config", body={"set": {"sync.url": url}})
        wait_until(lambda url=url: sent_to(here, url), f"all is sent to {url}")
        assert here.memory.sync_status().verification is None, "a restore from here was never tried"
        assert here.memory.verify().verified
        assert here.memory.sync_status().verification is not None
        wait_until(lambda url=url: "closed" in agents_in(url), f"so is what is closed, to {url}")
    assert (tmp_path / "other.db").exists()
    there.sync()
    assert there.list_all().pairs == {"key": "value"}


def agents_in(url: str) -> set[str]:
    """The agents with rows in a file."""
    with closing(sqlite3.connect(url.removeprefix("file:"))) as db:
        return {agent for (agent,) in db.execute("SELECT agent_id FROM rows")}


def sent_to(device: Device, url: str) -> bool:
    """Whether a database has everything."""
    found = device.memory.sync_status()
    return found.url == url and bool(found.last_success) and not found.queued


def test_a_failure_that_nobody_thought_of_is_reported_by_its_kind_and_tried_again(
    make_device, tmp_path
):
    here = make_device("here", url=None)
    here.put_pair("key", "value")
    assert here.stop() == 0
    here.broken("unforeseen").start(f"--set=sync.url=file:{tmp_path}/replica.db")
    wait_until(lambda: here.memory.sync_status().sent, "the change is sent")
    log = here.log.read_text()
    assert "failed with RuntimeError" in log
    assert "secret" not in log
