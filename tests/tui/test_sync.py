"""The view of the replica: each of its actions, against real daemons that share a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon

pytest.importorskip("textual")

from tui_pilot import seated

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


async def test_what_waits_is_counted_by_kind_and_sent_on_request(laptop: Daemon) -> None:
    with begun(laptop, "sender") as client:
        client.store("Ana prefers tea")
        client.store("Ben prefers coffee")
        client.kv_set("colour", "blue")
        async with seated(laptop, "sync", "sender") as seat:
            await seat.sees("2 memories", "1 pair", "rows wait", "not rehearsed yet")
            await seat.press("s")
            await seat.sees("✓ up to date", "✓ nothing", "laptop (this one)")
            status = client.sync_status()
            assert (status.queued, status.rounds[0].sent > 2) == (0, True)
            table = seat.view.rows("rounds")
            assert str(table.get_row_at(0)[1]).strip() == str(status.rounds[0].sent)


async def test_a_conflict_shows_both_values_and_the_lost_one_is_put_into_force(
    laptop: Daemon, desktop: Daemon
) -> None:
    key = conflict(laptop, desktop, "torn")
    async with seated(laptop, "sync", "torn") as seat:
        await seat.sees("Conflicts 1", "Ana prefers [b]cocoa[/b]")
        await seat.press("c")
        await seat.sees(f"text of memory {key}, merged on laptop")
        await seat.sees("lost      Ana prefers [b]cocoa[/b]", "in force  Ana prefers coffee")
        assert seat.view.copied() == "Ana prefers [b]cocoa[/b]"
        with laptop.client("torn") as client:
            assert client.get(key).text == "Ana prefers coffee"
            await seat.press("b")
            await seat.hears("the lost value is in force; u undoes it")
            assert client.get(key).text == "Ana prefers [b]cocoa[/b]"
            await seat.press("u")
            await seat.hears("undone")
            assert client.get(key).text == "Ana prefers coffee"


async def test_a_restore_is_rehearsed(laptop: Daemon) -> None:
    with begun(laptop, "rehearsed") as client:
        async with seated(laptop, "sync", "rehearsed") as seat:
            await seat.sees("not rehearsed yet")
            await seat.press("v")
            await seat.hears("a restore would bring back")
            await seat.sees("✓ would bring back everything")
        proof = client.sync_status().verification
        assert proof is not None
        assert proof.verified


async def test_devices_are_listed_and_one_is_retired_and_used_again(
    laptop: Daemon, desktop: Daemon
) -> None:
    with begun(laptop, "shared"), begun(desktop, "shared"):
        async with seated(laptop, "sync", "shared") as seat:
            await seat.press("d")
            await seat.sees("laptop (this one)", "desktop")
            by_name = {one.name: one.id for one in seat.view._devices}
            seat.view.rows("devices").select(by_name["desktop"])
            await seat.press("x")
            await seat.sees("Retire desktop", "Type retire to do it")
            await seat.enter("no")
            await seat.press("escape")
            assert all(one.retired_at is None for one in seat.view._devices)
            await seat.press("x")
            await seat.sees("Retire desktop")
            await seat.enter("retire")
            await seat.hears("retired desktop")
            await seat.sees("○ retired")
            seat.view.rows("devices").select(by_name["laptop"])
            await seat.press("x")
            await seat.sees("Retire laptop", "its replication stops")
            await seat.enter("retire")
            await seat.sees("STOPPED until somebody fixes it", "rejoin")
            await seat.press("j")
            await seat.hears("this device is in use again")
            await seat.sees("✓ up to date")


@pytest.mark.parametrize("size", [(40, 12), (40, 24), (80, 12), (80, 24), (120, 40)])
async def test_each_size_has_every_part(
    laptop: Daemon, desktop: Daemon, size: tuple[int, int]
) -> None:
    agent = f"size-{size[0]}-{size[1]}"
    conflict(laptop, desktop, agent)
    async with seated(laptop, "sync", agent, size) as seat:
        await seat.sees("state", "Sent", "Result", "✓")
        await seat.press("right")
        await seat.sees("lost", "Ana prefers", "in force")
        await seat.press("right")
        await seat.sees("desktop", "laptop")
        await seat.press("right")
        await seat.sees("Sent", "Result")


async def test_a_replica_that_cannot_be_reached_says_why_what_to_do_and_when_it_is_tried(
    tmp_path: Path,
) -> None:
    lost = Daemon(
        tmp_path,
        "--set=sync.url=http://127.0.0.1:9",
        *SLOW,
    ).start()
    try:
        with lost.client("offline") as client:
            client.store("it waits")
            async with seated(lost, "sync", "offline") as seat:
                await seat.press("s")
                await seat.sees("cannot be reached, next try in", "✗ offline")
                status = client.sync_status()
                assert status.message
                await seat.sees(status.message[:30], f"→ {status.hint[:30]}")
    finally:
        lost.kill()


async def test_an_agent_without_a_replica_says_so(tmp_path: Path) -> None:
    alone = Daemon(tmp_path).start()
    try:
        with alone.client("alone") as client:
            client.store("it stays")
        async with seated(alone, "sync", "alone") as seat:
            await seat.sees("none: set sync.url to have a replica")
            await seat.press("s", "v")
            assert not seat.app.query_one("Flash").line
    finally:
        alone.kill()
