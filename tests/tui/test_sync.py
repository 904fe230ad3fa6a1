"""The view of the replica: each of its actions, against real daemons that share a file."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon

pytest.importorskip("textual")

from terminal import terminal

from thermocline.daemon.client import Client

# Nothing is sent by itself.
SLOW = tuple(f"--set=sync.{name}_seconds=600" for name in ("poll", "change", "critical"))


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the devices share."""
    return tmp_path_factory.mktemp("replica") / "replica.db"


@pytest.fixture(scope="module")
def start(
    tmp_path_factory: pytest.TempPathFactory, replica: Path
) -> Iterator[Callable[[str], Daemon]]:
    """`start(name)` starts a device."""
    made: list[Daemon] = []

    def begin(name: str) -> Daemon:
        options = (f"--set=sync.url=file:{replica}", f"--set=sync.device_name={name}", *SLOW)
        made.append(Daemon(tmp_path_factory.mktemp(name), *options).start())
        return made[-1]

    yield begin
    for daemon in made:
        daemon.kill()


@pytest.fixture(scope="module")
def laptop(start: Callable[[str], Daemon]) -> Daemon:
    """The device that is looked at."""
    return start("laptop")


@pytest.fixture(scope="module")
def desktop(start: Callable[[str], Daemon]) -> Daemon:
    """Another one."""
    return start("desktop")


def conflict(laptop: Daemon, desktop: Daemon, agent: str) -> str:
    """Have both change the text of one memory, the desktop last; the memory's id."""
    with laptop.client(agent) as here, desktop.client(agent) as there:
        key = here.store("Ana prefers tea").id
        here.sync()
        there.store("so that the agent is there")
        there.sync()
        here.update(key, text="Ana prefers [b]cocoa[/b]")
        there.update(key, text="Ana prefers coffee")
        there.sync()
        here.sync()
    return key


def begun(daemon: Daemon, agent: str) -> Client:
    """A client of an agent whose first rounds are over: from now on it sends on request."""
    client = daemon.client(agent)
    client.store("the first memory")
    client.sync()
    return client


async def test_what_waits_is_counted_by_kind_and_sent_on_request_and_a_restore_is_rehearsed(laptop):
    with begun(laptop, "sender") as client:
        client.store("Ana prefers tea")
        client.store("Ben prefers coffee")
        client.kv_set("colour", "blue")
        async with terminal(laptop, "sync", "sender") as term:
            await term.see("2 memories", "1 pair", "changes to send, ", "not verified yet")
            await term.press("s")
            table = term.view.table_of("rounds")
            await term.until(lambda: table.rows[0].sent > 2, "the round is shown")
            await term.see("✓ up to date", "laptop (this one)")
            await term.miss("changes to send")
            status = client.sync_status()
            assert (status.queued, status.rounds[0].sent) == (0, table.rows[0].sent)
            await term.press("v")
            await term.hear("a restore would bring back")
            await term.see("✓ verified ")
        proof = client.sync_status().verification
        assert proof is not None
        assert proof.verified


async def test_a_conflict_shows_both_values_and_the_lost_one_is_put_into_force(laptop, desktop):
    key = conflict(laptop, desktop, "torn")
    async with terminal(laptop, "sync", "torn") as term:
        await term.see("Conflicts 1", "Ana prefers [b]cocoa[/b]")
        await term.press("c")
        await term.see(f"text of memory {key}, merged on laptop")
        await term.see("lost      Ana prefers [b]cocoa[/b]", "in force  Ana prefers coffee")
        assert term.view.copied() == "Ana prefers [b]cocoa[/b]"
        with laptop.client("torn") as client:
            assert client.get(key).text == "Ana prefers coffee"
            await term.press("b")
            await term.hear("the lost value is in force; u undoes it")
            assert client.get(key).text == "Ana prefers [b]cocoa[/b]"
            await term.press("u")
            await term.hear("undone")
            assert client.get(key).text == "Ana prefers coffee"


async def test_a_conflict_that_somebody_has_looked_at_is_shown_no_longer(laptop, desktop):
    key = conflict(laptop, desktop, "settled")
    async with terminal(laptop, "sync", "settled") as term:
        await term.see("Conflicts 1")
        await term.press("c", "e")
        await term.hear("the value in force stays")
        await term.see("no conflict that nobody has looked at")
    with laptop.client("settled") as here, desktop.client("settled") as there:
        assert here.get(key).text == "Ana prefers coffee"
        here.sync()
        there.sync()
        assert there.sync_status().lost_values == 0


async def test_devices_are_listed_and_one_is_retired_and_used_again(laptop, desktop):
    with begun(laptop, "shared"), begun(desktop, "shared"):
        async with terminal(laptop, "sync", "shared") as term:
            await term.press("d")
            await term.see("laptop (this one)", "desktop")
            by_name = {one.name: one.id for one in term.view.devices}
            term.view.table_of("devices").select(by_name["desktop"])
            await term.press("x")
            await term.see("Retire desktop", "Type retire to do it")
            await term.paste("no")
            await term.press("escape")
            assert all(one.retired_at is None for one in term.view.devices)
            await term.press("x")
            await term.see("Retire desktop")
            await term.paste("retire")
            await term.hear("retired desktop")
            await term.see("○ retired")
            term.view.table_of("devices").select(by_name["laptop"])
            await term.press("x")
            await term.see("Retire laptop", "its replication stops")
            await term.paste("retire")
            await term.see("STOPPED until it is fixed", "rejoin")
            await term.press("j")
            await term.hear("this device is in use again")
            await term.see("✓ up to date")


async def test_who_retires_a_device_from_a_sealed_replica_hears_of_its_token(make_daemon, tmp_path):
    sealing = pytest.importorskip("sealing")
    options = (f"--set=sync.url=file:{tmp_path / 'replica.db'}", "--set=sync.seal=on", *SLOW)
    here, there = (make_daemon(*options, name=name) for name in ("laptop", "desktop"))
    for daemon in (here, there):
        await asyncio.to_thread(sealing.give_keys, daemon.state)
        with begun(daemon.start(), "shared"):
            pass
    async with terminal(here, "sync", "shared") as term:
        await term.press("d")
        await term.see("(this one)")
        [other] = [each.id for each in term.view.devices if not each.this]
        term.view.table_of("devices").select(other)
        await term.press("x")
        await term.see("cannot read what is written from then on", "make a new one at the provider")


async def test_a_replica_that_cannot_be_reached_says_why_what_to_do_and_when_it_is_tried(
    make_daemon,
):
    lost = make_daemon("--set=sync.url=http://127.0.0.1:9", *SLOW).start()
    with lost.client("offline") as client:
        client.store("it waits")
        async with terminal(lost, "sync", "offline") as term:
            await term.press("s")
            await term.see("waiting, next try in", "✗ offline")
            status = client.sync_status()
            assert status.message
            await term.see(status.message[:30], f"→ {status.hint[:30]}")


async def test_an_agent_without_a_replica_says_so(make_daemon, tmp_path):
    alone = make_daemon().start()
    with alone.client("alone") as client:
        client.store("it stays")
    async with terminal(alone, "sync", "alone") as term:
        await term.see("off: set sync.url to replicate")
        await term.press("s", "v")
        assert not term.app.query_one("Flash").line
    sets = ("--set=cold.backend=none", f"--set=sync.url=file:{tmp_path}/replica.db")
    off = make_daemon(*sets, name="off").start()
    with off.client("alone") as client:
        client.store("it stays")
    async with terminal(off, "sync", "alone") as term:
        await term.see("off: set cold.backend to replicate")


async def test_what_the_cloud_was_used_for_is_shown(make_daemon, sqld):
    daemon = make_daemon(f"--set=sync.url={sqld.url}", "--set=sync.budget=1000000", *SLOW).start()
    with begun(daemon, "payer"):
        async with terminal(daemon, "sync", "payer") as term:
            await term.see("rows read, ", " written (0% of sync.budget), ")
