"""Calls about memories that only the replica holds, with the replica there and away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import pytest
from devices import Device
from homes import Home
from sqld_server import Sqld

from thermocline.daemon.store.device import device_id
from thermocline.daemon.store.settling import settle_anew
from thermocline.daemon.store.transaction import Rules
from thermocline.sync.turso import connect

# Of the daemons of conftest, and of calls to them.
AnyDaemon: TypeAlias = Any
Caller: TypeAlias = Any


async def _left(state: Any, url: str, threads: ThreadPoolExecutor) -> int:
    device = Device(
        *(state, device_id(state), await connect(url)),
        now=time.time,
        threads=threads,
        rules=Rules(warm_max_bytes=0),
    )
    home = Home(device, url)
    try:
        await device.write(settle_anew)
        await home.sync()
        home.most = 1.0
        return await home.thinned()
    finally:
        await home.stop()


@pytest.fixture
def ask(
    make_daemon: Callable[..., AnyDaemon],
    calls_of: Callable[..., Caller],
    sqld: Sqld,
    threads: ThreadPoolExecutor,
) -> Caller:
    """Calls to a daemon, one of whose memories it has in full, three only the replica."""
    settings = ("poll_seconds=3600", "change_seconds=3600", f"url={sqld.url}")
    options = [option for one in settings for option in ("--set", f"sync.{one}")]
    options += ["--set", "cold.local_max_mb=0.000001", "--set", "sync.recall_deadline_ms=2000"]
    daemon = make_daemon(*options).start()
    call = calls_of(daemon)
    for number, text in enumerate(["ana sails a ketch", "bo sails a sloop", "cy sails a yawl"]):
        call.store(text, importance=0.1 + number / 100, category="boats")
    daemon.stop()
    assert asyncio.run(_left(daemon.state, sqld.url, threads)) == 3
    daemon.start()
    call.store("dee rows a dinghy", category="boats")
    call.sqld = sqld
    return call


def ids(call: Caller) -> dict[str, str]:
    """The ids of what the replica alone has, by the first word."""
    found = call.ok("POST", "/api/recall", {"query": "sails", "limit": 10, "reinforce": False})
    return {hit["text"].split()[0]: hit["id"] for hit in found["results"]}


def test_recall_and_the_archive_find_what_the_replica_alone_has(ask: Caller) -> None:
    found = ask.ok("POST", "/api/recall", {"query": "who sails a sloop?", "explain": True})
    assert found["results"][0]["text"] == "bo sails a sloop"
    assert found["results"][0]["search_method"] == "cold-remote"
    assert found["results"][0]["parts"]["words"] == ["sails", "sloop"]
    remote = found["remote"]
    assert (remote["memories"], remote["asked"], remote["answered"]) == (3, True, True)
    assert 0 < remote["took_ms"] < 2000
    assert "why" not in remote
    assert found["searched"]["memories"] == 4

    cold = ask.ok("GET", "/api/cold?query=ketch")
    assert [one["text"] for one in cold["results"]] == ["ana sails a ketch"]
    assert cold["remote"]["answered"]
    listed = ask.ok("GET", "/api/cold")
    assert (listed["total"], listed["remote"]["asked"]) == (0, False)
    assert "only searched for words" in listed["remote"]["why"]

    tree = ask.ok("POST", "/api/recall", {"query": "boats", "mode": "tree", "limit": 9})
    assert len(tree["results"]) == 4
    none = ask.ok("POST", "/api/recall", {"query": "sails", "category": "cars"})
    assert none["results"] == []
    [agent] = ask.ok("GET", "/api/status")["agents"].values()
    assert (agent["memories"], agent["cold"], agent["remote_only"]) == (4, 3, 3)
    assert ask.ok("GET", "/api/memory")["total"] == 1


def test_one_of_them_is_read_used_changed_merged_and_forgotten_by_its_id(ask: Caller) -> None:
    key = ids(ask)
    ana = ask.ok("GET", f"/api/memory/{key['ana'][:8]}")
    assert (ana["text"], ana["archived"], ana["access_count"]) == ("ana sails a ketch", True, 0)
    assert ask.ok("GET", "/api/status")["agents"]["default"]["remote_only"] == 3

    used = ask.ok("POST", f"/api/memory/{key['ana']}/reinforce")
    assert used["access_count"] == 1
    assert ask.ok("GET", f"/api/memory/{key['ana']}")["access_count"] == 1

    assert ask.ok("DELETE", f"/api/memory/{key['cy'][:8]}")["id"] == key["cy"]
    assert ask("GET", f"/api/memory/{key['cy']}").status == 404
    ask.ok("POST", "/api/sync")
    assert set(ids(ask)) == {"ana", "bo"}

    changed = ask.ok("PUT", f"/api/memory/{key['ana']}", {"text": "ana sold her ketch"})
    assert (changed["text"], changed["access_count"]) == ("ana sold her ketch", 1)
    merged = ask.ok("POST", f"/api/memory/{key['bo']}/merge", {"into": key["ana"]})
    assert merged["retired"]["merged_into"] == key["ana"]
    assert ask.ok("GET", "/api/status")["agents"]["default"]["remote_only"] == 0
    assert "remote" not in ask.ok("POST", "/api/recall", {"query": "yawl"})


def test_what_is_here_is_found_and_the_rest_named_while_the_replica_is_away(ask: Caller) -> None:
    key = ids(ask)["ana"]
    ask.sqld.stop()
    found = ask.ok("POST", "/api/recall", {"query": "who rows or sails?"})
    assert [hit["text"] for hit in found["results"]] == ["dee rows a dinghy"]
    assert not found["remote"]["answered"]
    assert found["remote"]["why"].startswith("3 memories are on the replica alone, and ")
    assert found["searched"]["memories"] == 1
    nothing = ask.ok("POST", "/api/recall", {"query": "yawl"})
    assert "stands in a memory" in nothing["why"]
    assert nothing["why"].endswith(found["remote"]["why"])
    cold = ask.ok("GET", "/api/cold?query=yawl")
    assert not cold["remote"]["answered"]
    for method, target, body in (
        ("GET", f"/api/memory/{key}", None),
        ("PUT", f"/api/memory/{key}", {"text": "other"}),
        ("POST", f"/api/memory/{key}/merge", {"into": found["results"][0]["id"]}),
    ):
        answered = ask(method, target, body)
        assert answered.refusal() == (503, "unavailable", "id")
        assert "is on the replica only, and" in answered.body["error"]["message"]
    assert ask("GET", "/api/memory/none-such").status == 404

    # Once the replicator knows, nobody waits for it any more.
    assert ask("POST", "/api/sync").status == 503
    ask.ok("POST", f"/api/memory/{key}/reinforce")
    ask.ok("DELETE", f"/api/memory/{key}")
    ask.sqld.start()
    ask.ok("POST", "/api/sync")
    assert set(ids(ask)) == {"bo", "cy"}
