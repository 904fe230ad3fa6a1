"""Two real daemons share one real server: what one learns the other knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


class Shared:
    """One of the daemons, told to send and receive only when asked."""

    def __init__(self, daemon: Any, call: Any) -> None:
        self.daemon = daemon
        self.call = call

    def sync(self) -> Any:
        return self.call.ok("POST", "/api/sync")

    def texts(self) -> set[str]:
        return {memory["text"] for memory in self.call.ok("GET", "/api/memory")["results"]}


@pytest.fixture
def pair(
    make_daemon: Callable[..., Any], calls_of: Callable[..., Any], sqld: Any
) -> tuple[Shared, Shared]:
    options = [f"sync.url={sqld.url}", "sync.change_seconds=600", "sync.critical_seconds=600"]
    options += ["sync.poll_seconds=600"]
    made = []
    for name in ("attic", "cellar"):
        words = [word for one in (*options, f"sync.device_name={name}") for word in ("--set", one)]
        daemon = make_daemon(*words, name=name).start()
        made.append(Shared(daemon, calls_of(daemon)))
    return made[0], made[1]


def test_everything_that_one_learns_the_other_knows(pair: tuple[Shared, Shared]) -> None:
    attic, cellar = pair
    key = attic.call.store("the boiler is serviced in May", category="house/boiler")["id"]
    attic.call.ok("PUT", "/api/hot/lesson", {"text": "turn the gas off first"})
    attic.call.ok("PUT", "/api/kv/plumber", {"value": "Ada"})
    attic.call.ok("PUT", "/api/tree", {"path": "house/roof", "desc": "what keeps us dry"})
    attic.sync()
    cellar.sync()
    call = cellar.call
    [found] = call.ok("GET", "/api/recall?query=boiler")["results"]
    assert (found["id"], found["category"]) == (key, "house/boiler")
    assert call.ok("GET", "/api/kv/plumber")["value"] == "Ada"
    assert call.ok("GET", "/api/tree")["tree"]["house/roof"]["desc"] == "what keeps us dry"
    [lesson] = call.ok("GET", "/api/hot")["state"]["critical_lessons"]
    assert lesson["text"] == "turn the gas off first"


def test_edits_on_both_sides_survive_and_of_one_thing_the_later_stays(
    pair: tuple[Shared, Shared],
) -> None:
    attic, cellar = pair
    keys = [attic.call.store(f"thing {number}")["id"] for number in range(3)]
    attic.sync()
    cellar.sync()
    attic.call.ok("PUT", f"/api/memory/{keys[0]}", {"text": "thing 0 by the attic"})
    cellar.call.ok("PUT", f"/api/memory/{keys[1]}", {"text": "thing 1 by the cellar"})
    attic.call.ok("PUT", f"/api/memory/{keys[2]}", {"text": "thing 2 earlier"})
    cellar.call.ok("PUT", f"/api/memory/{keys[2]}", {"text": "thing 2 later"})
    for one in (attic, cellar, attic):
        one.sync()
    expected = {"thing 0 by the attic", "thing 1 by the cellar", "thing 2 later"}
    assert attic.texts() == cellar.texts() == expected


def test_a_deletion_is_a_deletion_everywhere_and_uses_add_up(pair: tuple[Shared, Shared]) -> None:
    attic, cellar = pair
    gone = attic.call.store("the spare key is under the mat")["id"]
    kept = attic.call.store("the meter is behind the door")["id"]
    attic.sync()
    cellar.sync()
    cellar.call.ok("DELETE", f"/api/memory/{gone}")
    for one in (attic, cellar, cellar):
        one.call.ok("POST", f"/api/memory/{kept}/reinforce")
    for one in (attic, cellar, attic, cellar):
        one.sync()
    for one in pair:
        assert one.texts() == {"the meter is behind the door"}
        assert one.call.ok("GET", f"/api/memory/{kept}")["access_count"] == 3


def test_they_know_of_each_other_and_one_that_is_retired_says_so_until_it_rejoins(
    pair: tuple[Shared, Shared],
) -> None:
    attic, cellar = pair
    attic.call.store("something to replicate")
    attic.sync()
    cellar.sync()
    devices = {one["name"]: one for one in attic.call.ok("GET", "/api/devices")["results"]}
    assert set(devices) == {"attic", "cellar"}
    assert devices["attic"]["this"]
    attic.call.ok("POST", f"/api/devices/{devices['cellar']['id']}/retire")
    refused = cellar.call("POST", "/api/sync").refusal()
    assert refused[:2] == (502, "replica_retired")
    assert cellar.call.ok("GET", "/api/sync")["phase"] == "stopped"
    attic.call.store("written while the cellar was away")
    attic.sync()
    cellar.call.ok("POST", "/api/devices/rejoin")
    cellar.sync()
    assert "written while the cellar was away" in cellar.texts()


def test_a_server_that_is_killed_between_is_no_more_than_a_pause(
    pair: tuple[Shared, Shared], sqld: Any
) -> None:
    attic, cellar = pair
    attic.call.store("before")
    attic.sync()
    sqld.kill()
    attic.call.store("during")
    assert attic.call("POST", "/api/sync").refusal()[0] == 503
    waiting = attic.call.ok("GET", "/api/sync")
    assert waiting["phase"] == "waiting"
    assert waiting["next_try"] > 0
    assert attic.call.ok("GET", "/api/health") == {"status": "ok"}
    sqld.start()
    attic.sync()
    cellar.sync()
    assert cellar.texts() == {"before", "during"}
