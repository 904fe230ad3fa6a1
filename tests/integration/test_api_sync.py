"""Replication over the API: real daemons, a real server, and one that asks for tokens."""

import contextlib
import json
import signal
import sqlite3
import time
from collections.abc import Callable
from typing import Any

import pytest
from tls_front import TlsFront

EVOCLAWS = (
    "CREATE TABLE cold_memories (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, text TEXT NOT NULL,"
    " category TEXT NOT NULL, importance REAL DEFAULT 0.5, created_at INTEGER NOT NULL,"
    " access_count INTEGER DEFAULT 0)"
)

# TURSO.md's answer to an account whose plan is used up.
QUOTA = '{"message": "Operation was blocked", "code": "BLOCKED"}'


@pytest.fixture
def beginning(make_daemon: Callable[..., Any], calls_of: Callable[..., Any]) -> Callable[..., Any]:
    """`beginning(url, name)` starts a daemon that replicates there, by itself only once."""

    def begin(url: str, *options: str, name: str = "d") -> Any:
        slow = ("--set", "sync.change_seconds=600", "--set", "sync.critical_seconds=600")
        slow = (*slow, "--set", "sync.poll_seconds=600", "--set", f"sync.device_name={name}")
        daemon = make_daemon("--set", f"sync.url={url}", *slow, *options, name=name).start()
        return daemon, calls_of(daemon)

    return begin


def test_what_has_changed_waits_until_it_is_sent_and_then_is_there(sqld, beginning, eventually):
    _, call = beginning(sqld.url)
    eventually(lambda: call.ok("GET", "/api/sync")["last_success"], "the first round is over")
    key = call.store("Ana prefers tea", category="people/ana")["id"]
    waiting = call.ok("GET", "/api/sync")
    assert (waiting["replica"], waiting["url"], waiting["configured_by"]) == (
        "turso", sqld.url, "sync.url",
    )  # fmt: skip
    assert waiting["outbox"]["memory"] == 1
    assert waiting["queued"] == sum(waiting["outbox"].values())
    assert call.ok("GET", "/api/status")["agents"]["default"]["sync"]["queued"] > 0
    assert sqld.query("SELECT count(*) FROM cold_memories") == [[0]]

    call.ok("PUT", "/api/hot/identity", {"agent_name": "Nova"})
    call.ok("POST", "/api/sync", {"critical": True})
    [[data]] = sqld.query("SELECT data FROM critical_state")
    assert json.loads(data)["hot_state"]["identity"]["agent_name"] == "Nova"
    assert sqld.query("SELECT count(*) FROM cold_memories") == [[0]]
    assert call.ok("GET", "/api/sync")["outbox"]["memory"] == 1

    done = call.ok("POST", "/api/sync")
    assert (done["synced"], done["sent"] >= 1, done["received"]) == (True, True, 0)
    assert sqld.query("SELECT id FROM cold_memories") == [[key]]
    after = call.ok("GET", "/api/sync")
    assert (after["phase"], after["queued"], after["outbox"]) == ("idle", 0, {})
    assert after["sent"] >= done["sent"]
    assert call.ok("POST", "/api/sync", {"critical": True})["sent"] == 0


def test_rows_and_cost_are_those_of_the_server_and_survive_a_restart(sqld, beginning, eventually):
    prices = ("--set", "sync.prices.billion_reads=1000", "--set", "sync.prices.million_writes=1")
    daemon, call = beginning(sqld.url, *prices)

    def used() -> Any:
        return call.ok("GET", "/api/sync")["usage"]["month"]

    def counted() -> bool:
        return (used()["rows_read"], used()["rows_written"]) == sqld.cost()

    eventually(lambda: call.ok("GET", "/api/sync")["last_success"], "the first round is over")
    call.store("Ana prefers tea")
    call.ok("POST", "/api/sync")
    eventually(counted, "all calls are answered")
    read, written = sqld.cost()
    assert written > 0
    assert used()["cost"] == pytest.approx((read + written) / 1e6, abs=1e-6)
    assert call.ok("GET", "/api/metrics")["daemon"]["replica_rows_written_month"] == written
    agents = call.ok("GET", "/api/status")["agents"]
    assert agents["default"]["sync"]["usage"]["month"]["rows_written"] == written
    daemon.stop()
    daemon.start()
    eventually(lambda: call.ok("GET", "/api/sync")["last_success"], "the first round is over")
    eventually(counted, "counting goes on")


def test_a_budget_that_is_nearly_used_up_slows_replication_and_says_so(sqld, beginning, eventually):
    _, call = beginning(sqld.url, "--set", "sync.budget=1", "--set", "sync.change_seconds=0.1")
    eventually(lambda: call.ok("GET", "/api/sync")["last_success"], "the first round is over")
    call.store("Ana prefers tea")
    eventually(lambda: call.ok("GET", "/api/sync")["held_until"], "it is held back")
    assert call.ok("GET", "/api/sync")["next_poll"] is None, "it does not poll before that"
    [problem] = call.ok("GET", "/api/status")["problems"]
    assert (problem["code"], problem["lasting"]) == ("replica_slowed", False)
    assert "sync.budget" in problem["message"]
    assert call.ok("GET", "/api/sync")["queued"] > 0
    assert call.ok("POST", "/api/sync")["sent"] > 0


def test_a_quota_that_is_spent_is_a_problem_until_it_is_raised(
    sqld, make_fault_proxy, beginning, eventually
):
    network = make_fault_proxy(sqld.port)
    _, call = beginning(network.url)
    call.ok("POST", "/api/sync")
    network.faults(status=403, body=QUOTA, content_type="application/json")
    assert call("POST", "/api/sync").status >= 500
    assert call.ok("GET", "/api/sync")["hint"]
    problems = call.ok("GET", "/api/status")["problems"]
    assert any("quota" in one["message"] for one in problems)
    network.heal()
    call.ok("POST", "/api/sync")
    eventually(lambda: not call.ok("GET", "/api/status")["problems"], "nothing is complained of")


def test_a_question_without_an_answer_looks_for_it_on_the_replica(sqld, beginning, eventually):
    _, here = beginning(sqld.url)
    _, there = beginning(sqld.url, name="e")
    for call in (here, there):
        eventually(lambda call=call: call.ok("GET", "/api/sync")["last_success"], "the first round")
    there.store("Ana prefers tea")
    there.ok("POST", "/api/sync")
    state = here.ok("GET", "/api/sync")
    assert state["next_poll"] > time.time() + 300
    # The next poll is minutes away, and only the question brings it forward.
    eventually(
        lambda: here.ok("POST", "/api/recall", {"query": "What does Ana prefer?"})["results"],
        "the answer arrives",
    )


def test_a_token_that_is_mended_needs_no_restart_and_serves_who_names_its_database(
    sqld_with_auth, beginning, eventually, tmp_path
):
    token = tmp_path / "token"
    token.write_text("no.token.atall")
    _, call = beginning(sqld_with_auth.url, "--set", f"sync.token_file={token}")
    eventually(
        lambda: call.ok("GET", "/api/sync")["phase"] == "stopped", "the token is found wrong"
    )
    call.store("a text that waits")
    assert call("POST", "/api/sync").refusal() == (502, "replica_unauthorized", None)
    found = call.ok("GET", "/api/sync")
    assert (found["error"], found["next_try"]) == ("unauthorized", None)
    assert "token" in found["hint"]
    assert call("GET", "/api/health").body["problems"][0]["code"] == "replica_trouble"
    token.write_text(sqld_with_auth.token())
    call.ok("POST", "/api/sync")
    assert call.ok("GET", "/api/sync")["queued"] == 0
    eventually(lambda: call("GET", "/api/health").status == 200, "the problem is over")

    # Who names this very database need not know its token.
    call.store("by name")
    named = {"url": sqld_with_auth.url.upper().replace("HTTP", "http") + "/"}
    assert call.ok("POST", "/api/sync", named)["sent"] > 0
    assert call.ok("GET", "/api/sync")["queued"] == 0
    call.store("by name and token")
    assert call.ok("POST", "/api/sync", named | {"token": token.read_text()})["sent"] > 0
    assert call.ok("GET", "/api/sync")["queued"] == 0
    # The token of the own database goes to no other place.
    assert call("POST", "/api/sync", {"url": "https://db.invalid", "critical": True}).status == 400


def test_an_account_that_is_none_is_told_wherever_one_looks(
    sqld_with_auth, beginning, eventually, tmp_path
):
    missing = tmp_path / "none"
    daemon, call = beginning(sqld_with_auth.url, "--set", f"sync.token_file={missing}")
    found = call.ok("GET", "/api/sync")
    assert (found["replica"], found["phase"], found["error"]) == (
        "unknown", "stopped", "config_invalid",
    )  # fmt: skip
    assert str(missing) in found["message"]
    assert call.ok("GET", "/api/status")["agents"]["default"]["sync"]["phase"] == "stopped"
    assert call("POST", "/api/sync").refusal()[:2] == (500, "config_invalid")
    # Another database needs nothing of the one that is wrong.
    other = {"url": f"{sqld_with_auth.url}/", "token": sqld_with_auth.token(), "critical": True}
    assert call.ok("POST", "/api/sync", other)["synced"]
    [problem] = call.ok("GET", "/api/status")["problems"]
    assert problem["code"] == "replica_account"
    missing.write_text(sqld_with_auth.token())
    assert call.ok("POST", "/api/sync")["synced"]
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: call("GET", "/api/health").status == 200, "the problem is over")
    # Once it worked as well, or has failed in another way.
    for content in ("two words", "no.token.atall", ""):
        missing.write_text(content)
        assert call("POST", "/api/sync").status >= 500
        found = call.ok("GET", "/api/sync")
        assert found["phase"] == "stopped", content
        assert ("and nothing else" in found["message"]) == ("." not in content), content


def test_without_a_replica_there_is_nothing_to_ask_but_another_database(sqld, call):
    call.ok("PUT", "/api/hot/identity", {"agent_name": "Nova"})
    assert call.ok("GET", "/api/sync")["replica"] == "none"
    for method, target in (
        ("POST", "/api/sync"), ("GET", "/api/devices"), ("POST", "/api/devices/rejoin"),
        ("POST", "/api/devices/abcdef/retire"), ("POST", "/api/cold/init"),
    ):  # fmt: skip
        assert call(method, target).refusal()[:2] == (404, "not_found"), target
    assert call.ok("POST", "/api/sync", {"url": sqld.url, "token": "x"})["sent"]
    [[data]] = sqld.query("SELECT data FROM critical_state")
    assert json.loads(data)["hot_state"]["identity"]["agent_name"] == "Nova"


def test_what_makes_no_sense_is_refused_and_goes_nowhere(call):
    call.store("something")

    def refused(body: Any, target: str = "/api/sync") -> tuple[int, str, str | None]:
        return call("POST", target, body).refusal()  # type: ignore[no-any-return]

    other = {"url": "https://db.invalid", "token": "t", "critical": True}
    assert refused({"token": "t"}) == (400, "invalid", "url")
    assert refused({"url": "https://db.invalid", "critical": True}) == (400, "invalid", "token")
    assert refused(other | {"url": "db.invalid"}) == (400, "invalid", "url")
    assert refused(other | {"url": "http://db.invalid"}) == (400, "invalid", "url")
    assert refused(other | {"url": "https://u:p@db.invalid"}) == (400, "invalid", "url")
    assert refused(other | {"url": "https://db.invalid?authToken=t"}) == (400, "invalid", "url")
    assert refused(other | {"url": "file:/tmp/x.db"}) == (400, "invalid", "url")
    assert refused(other | {"critical": "yes"}) == (400, "invalid", "critical")
    assert refused(other | {"more": 1}) == (400, "invalid", "more")
    assert refused({"limit": 0}, "/api/cold/search") == (400, "invalid", "limit")
    assert refused({"limit": 101}, "/api/cold/search") == (400, "invalid", "limit")
    assert call("GET", "/api/sync?agent=nobody").refusal()[0] == 400


def test_a_replica_that_is_a_file_works_alike(beginning, tmp_path):
    path = tmp_path / "disk" / "replica.db"
    path.parent.mkdir()
    _, call = beginning(f"file:{path}")
    key = call.store("kept in a file")["id"]
    assert call.ok("POST", "/api/sync")["synced"]
    standing = call.ok("GET", "/api/sync")
    assert (standing["replica"], standing["url"]) == ("file", f"file:{path}")
    assert standing["queued"] == 0
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT id FROM cold_memories").fetchall() == [(key,)]
    assert sum(one["sent"] for one in standing["rounds"]) == standing["sent"] > 0
    assert all(one["ms"] > 0 and not one["error"] for one in standing["rounds"])
    assert standing["rounds"][0]["at"] == pytest.approx(time.time(), abs=300)
    [device] = call.ok("GET", "/api/devices")["results"]
    assert (device["this"], device["behind"], device["retired_at"]) == (True, 0, None)
    named = {"query": "file", "url": standing["url"]}
    assert [m["id"] for m in call.ok("POST", "/api/cold/search", named)["results"]] == [key]


def test_rounds_without_anything_to_do_are_one_line_of_the_history(beginning, tmp_path):
    _, call = beginning(f"file:{tmp_path}/replica.db")
    call.store("something")
    call.ok("POST", "/api/sync")
    for _ in range(3):
        call.ok("POST", "/api/sync")
    latest, before = call.ok("GET", "/api/sync")["rounds"][:2]
    # The loop's own first round may be one of them.
    assert (latest["times"] in (3, 4), latest["sent"]) == (True, 0)
    assert (before["times"], before["sent"] > 0) == (1, True)
    live = call.ok("GET", "/api/metrics/live")
    assert max(ms for ms in live["sync_ms"] if ms is not None) > 0


def test_another_database_is_sent_to_and_the_own_one_still_waits(
    sqld, sqld_with_auth, beginning, eventually
):
    daemon, call = beginning(sqld.url)
    eventually(lambda: call.ok("GET", "/api/sync")["last_success"], "the first round is over")
    token = sqld_with_auth.token()
    there = {"url": sqld_with_auth.url, "token": token}
    key = call.store("Bob drinks cocoa", importance=0.9)["id"]
    call.ok("PUT", "/api/hot/identity", {"agent_name": "Nova"})
    waiting = call.ok("GET", "/api/sync")["outbox"]

    assert call.ok("POST", "/api/cold/init", there) == {"initialized": True}
    call.ok("POST", "/api/sync", there | {"critical": True})
    [[data]] = sqld_with_auth.query("SELECT data FROM critical_state")
    assert json.loads(data)["hot_state"]["identity"]["agent_name"] == "Nova"

    assert call.ok("GET", "/api/sync")["outbox"] == waiting
    assert sqld.query("SELECT count(*) FROM cold_memories") == [[0]]
    expired = there | {"token": sqld_with_auth.token(expires_in=-3600), "critical": True}
    answered = call("POST", "/api/sync", expired)
    assert answered.refusal() == (502, "replica_unauthorized", None)
    reader = there | {"token": sqld_with_auth.token(read_only=True)}
    assert call("POST", "/api/sync", reader | {"critical": True}).refusal()[1] == (
        "replica_forbidden"
    )
    assert call.ok("POST", "/api/cold/search", reader | {"query": "cocoa"})["results"] == []
    call.ok("POST", "/api/sync")
    own = {"url": sqld.url, "token": "x", "query": "cocoa"}
    found = call.ok("POST", "/api/cold/search", own)["results"]
    assert [(m["id"], m["search_method"], m["relevance"]) for m in found] == [(key, "cold", 1.0)]
    assert "eyJ" not in daemon.log.read_text()
    assert "eyJ" not in answered.text


def test_a_memory_is_sent_to_the_table_that_evoclaw_made(sqld, call):
    sqld.query(EVOCLAWS)
    insert = "INSERT INTO cold_memories VALUES (?, ?, ?, 'coast', 0.4, 1700000000, 2)"
    sqld.query(insert, "e0", call.agent, "the old lighthouse")
    there = {"url": sqld.url, "token": "x"}
    key = call.store("the new lighthouse", category="coast", importance=0.9)["id"]
    call.ok("POST", "/api/sync", there)
    assert call.ok("POST", "/api/sync", there | {"memories": [key]})["sent"] == 1
    assert sqld.query("SELECT id, text, importance FROM cold_memories WHERE id = 'e0'") == [
        ["e0", "the old lighthouse", 0.4]
    ]
    assert sqld.query(f"SELECT agent_id, category FROM cold_memories WHERE id = '{key}'") == [
        [call.agent, "coast"]
    ]
    # Both its table and our rows are searched.
    found = call.ok("POST", "/api/cold/search", there | {"query": "lighthouse"})["results"]
    assert [memory["id"] for memory in found] == [key, "e0"]
    assert call("POST", "/api/sync", there | {"memories": ["nothing"]}).refusal()[0] == 404


def test_a_device_is_listed_retired_and_taken_in_again(sqld, beginning):
    _, one = beginning(sqld.url, name="one")
    gone = one.store("deleted while the other was away")["id"]
    kept = one.store("kept")["id"]
    one.ok("POST", "/api/sync")
    _, two = beginning(sqld.url, name="two")
    two.ok("POST", "/api/sync")
    assert two.total() == 2

    devices = {d["name"]: d for d in one.ok("GET", "/api/devices")["results"]}
    assert set(devices) == {"one", "two"}
    assert (devices["one"]["this"], devices["two"]["this"]) == (True, False)
    assert devices["two"]["behind"] == 0
    assert 0 <= time.time() - devices["two"]["last_at"] < 60

    more = one.store("seen by one alone")["id"]
    one.ok("POST", "/api/sync")
    behind = {d["name"]: d["behind"] for d in one.ok("GET", "/api/devices")["results"]}
    assert behind["one"] == 0
    assert behind["two"] > 0

    own = two.store("written while retired")["id"]
    key = devices["two"]["id"]
    retired = one.ok("POST", f"/api/devices/{key[:6]}/retire")
    assert retired == {"id": key, "name": "two", "retired": True, "sealed": False}
    one.ok("DELETE", f"/api/memory/{gone}")
    one.ok("POST", "/api/sync")
    # The tombstone waits for those who were away, retired or not.
    buried = "SELECT id FROM rows WHERE kind = 'memory' AND data IS NULL"
    assert sqld.query(buried) == [[gone]]

    assert two("POST", "/api/sync").refusal() == (502, "replica_retired", None)
    assert two.ok("GET", "/api/sync")["phase"] == "stopped"
    listed = {d["name"]: d for d in two.ok("GET", "/api/devices")["results"]}
    assert (listed["two"]["this"], listed["two"]["behind"]) == (True, None)
    assert listed["two"]["retired_at"] is not None

    back = two.ok("POST", "/api/devices/rejoin")
    assert (back["id"], back["rejoined"]) == (key, True)
    ids = {memory["id"] for memory in two.ok("GET", "/api/memory")["results"]}
    assert ids == {kept, more, own}
    assert two.ok("POST", "/api/devices/rejoin")["rejoined"] is False
    one.ok("POST", "/api/sync")
    assert {memory["id"] for memory in one.ok("GET", "/api/memory")["results"]} == ids


def test_a_replica_over_https_is_used_only_where_its_certificate_is_trusted(
    sqld, make_daemon, calls_of, tmp_path, monkeypatch
):
    with TlsFront(sqld.port, tmp_path) as front:
        options = ("--set", f"sync.url={front.url}")
        suspicious = calls_of(make_daemon(*options, name="suspicious").start())
        assert suspicious("POST", "/api/sync").refusal()[:2] == (502, "replica_tls")

        monkeypatch.setenv("SSL_CERT_FILE", str(front.certificate))
        trusting = calls_of(make_daemon(*options, name="trusting").start())
        key = trusting.store("Ana prefers tea")["id"]
        assert trusting.ok("POST", "/api/sync")["synced"]
    assert sqld.query("SELECT id FROM cold_memories") == [[key]]
