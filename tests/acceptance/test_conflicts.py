"""A conflict of two devices is shown on both, and forgotten on both."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from daemon_process import Daemon, next_millisecond
from shells import Shell

from thermocline.daemon.client import Client

# Nothing is sent by itself.
SLOW = tuple(f"--set=sync.{name}_seconds=600" for name in ("poll", "change", "critical"))


class Pair(NamedTuple):
    """Two devices with one agent."""

    here: Client
    there: Client

    def sync(self) -> None:
        for _ in range(2):
            self.here.sync()
            self.there.sync()


@pytest.fixture
def pair(make_daemon: Callable[..., Daemon], tmp_path: Path) -> Iterator[Pair]:
    options = (f"--set=sync.url=file:{tmp_path / 'replica.db'}", *SLOW)
    laptop, desktop = (
        make_daemon(*options, f"--set=sync.device_name={name}", name=name).start()
        for name in ("laptop", "desktop")
    )
    with laptop.client("torn") as here, desktop.client("torn") as there:
        yield Pair(here, there)


def conflict(pair: Pair, *, wins: str) -> str:
    """Have both change the text of one memory; the id."""
    key = pair.here.store("the ferry leaves at nine").id
    pair.there.store("so that the agent is there")
    pair.sync()
    first, second = (pair.there, pair.here) if wins == "laptop" else (pair.here, pair.there)
    text = {pair.here: "the ferry leaves at ten", pair.there: "the ferry leaves at eleven"}
    first.update(key, text=text[first])
    next_millisecond()
    second.update(key, text=text[second])
    pair.sync()
    return key


@pytest.mark.parametrize("wins", ["laptop", "desktop"])
def test_both_devices_show_the_value_that_lost_until_somebody_has_looked(pair, wins):
    key = conflict(pair, wins=wins)
    old, new = ("eleven", "ten") if wins == "laptop" else ("ten", "eleven")
    shells = [Shell(client.socket_path, "torn") for client in pair]
    for client, shell in zip(pair, shells, strict=True):
        assert client.status().agents["torn"].conflicts == 1
        assert "1 conflict: history --conflicts" in shell.out("status")
        assert shell.json("history", "--conflicts")["results"][0]["seen_at"] is None
    for client, shell in zip(pair, shells, strict=True):
        line = shell.out("history", "--conflicts")
        assert f"text: old the ferry leaves at {old}, new the ferry leaves at {new}" in line
        assert ("new conflict" in line) == (client is pair.here)
        pair.sync()
        for other in pair:
            assert other.status().agents["torn"].conflicts == 0
    assert "conflict:" not in shells[1].out("status")
    # The number of the version puts it back on either.
    [version] = pair.here.history(conflicts=True).results
    pair.here.undo(id=key, number=version.number)
    pair.sync()
    assert pair.there.get(key).text == f"the ferry leaves at {old}"


def test_a_lost_value_that_was_put_back_is_no_longer_shown_anywhere(pair):
    pair.here.kv_set("here", "now")
    shell = Shell(pair.here.socket_path, "torn")
    assert shell.run("history", "--conflicts").stderr.startswith("thermocline: there are no")
    assert "no earlier version" in shell.run("history").stderr
    key = conflict(pair, wins="desktop")
    [version] = pair.there.history(conflicts=True).results
    pair.there.undo(id=key, number=version.number)
    pair.sync()
    assert [client.status().agents["torn"].conflicts for client in pair] == [0, 0]


def test_who_looks_at_the_same_time_on_both_devices_makes_no_new_conflict(pair):
    conflict(pair, wins="desktop")
    for client in pair:
        numbers = [version.number for version in client.history(conflicts=True).results]
        assert client.conflicts_seen(numbers).seen == 1
        assert client.conflicts_seen(numbers).seen == 0
    pair.sync()
    for client in pair:
        assert client.status().agents["torn"].conflicts == 0
        assert len(client.history(conflicts=True).results) == 1


def test_a_conflict_is_forgotten_with_its_memory_on_both(pair):
    key = conflict(pair, wins="desktop")
    pair.there.forget(key)
    pair.sync()
    for client in pair:
        assert client.history(conflicts=True).results == []
        assert client.status().agents["torn"].conflicts == 0
        rows = b"".join(client.download("/api/export"))
        assert b"leaves at" not in rows
