"""Reads go on, whatever runs out, hangs or is slow; and all is well again by itself."""

import json
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MANY = [{"text": f"the gate code is {number}"} for number in range(300)]
HEALTH = b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n"


def codes(one: Any) -> set[str]:
    one.send(HEALTH)
    return {problem["code"] for problem in one.answer().body.get("problems", ())}


def call_over(one: Any, agent: str, **fields: str) -> Any:
    """Recall with a `query`, or store a `text`."""
    send_call(one, agent, **fields)
    return one.answer("POST")


def send_call(one: Any, agent: str, **fields: str) -> None:
    """Likewise, without reading the answer."""
    body = json.dumps(fields).encode()
    path = "/api/recall" if "query" in fields else "/api/memory"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Agent: {agent}\r\n"
    one.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def _open_files(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


def test_a_daemon_that_may_open_no_more_files_serves_those_it_has_and_recovers(
    daemon, wire, calls_of, eventually
):
    calls_of(daemon).store("the gate code is 4711")
    assert daemon.process is not None
    pid, one = daemon.process.pid, wire(daemon.socket)
    assert call_over(one, "default", query="gate code").status == 200
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    opened = _open_files(pid)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (opened + 1, before[1]))
    waiting = [wire(daemon.socket) for _ in range(20)]
    eventually(lambda: "not_accepted" in codes(one), "it cannot accept a connection")
    # What was open for a moment when they were counted leaves room for another connection.
    eventually(lambda: _open_files(pid) > opened, "it can open no more")

    size = daemon.log.stat().st_size
    assert call_over(one, "default", query="gate code").body["results"]
    refused = call_over(one, "newcomer", text="of another agent")
    assert refused.refusal() == (503, "unavailable", None)
    assert "too many files" in refused.body["error"]["message"]
    assert daemon.log.stat().st_size - size < 10_000

    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    for late in waiting:
        late.send(HEALTH)
        assert late.answer().status in {200, 503}
    eventually(lambda: not codes(one), "all is well again")
    assert call_over(one, "newcomer", text="of another agent").status == 201
    assert "Traceback" not in daemon.log.read_text()


def test_two_who_ask_at_once_are_answered_by_a_daemon_that_may_open_no_more_files(
    daemon, wire, calls_of, eventually
):
    calls_of(daemon)("POST", "/api/memory/batch", {"memories": MANY})
    assert daemon.process is not None
    pid, both = daemon.process.pid, [wire(daemon.socket) for _ in range(2)]
    assert ask(both[:1]) == [200]
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (_open_files(pid), before[1]))
    assert [ask(both) for _ in range(10)] == [[200, 200]] * 10
    assert call_over(both[0], "default", text="the gate has a new code").status == 201
    eventually(lambda: "state_files_behind" in codes(both[0]), "no state file can be written")
    both[0].send(HEALTH)
    problems = {each["code"]: each["hint"] for each in both[0].answer().body["problems"]}
    assert "LimitNOFILE" in problems["state_files_behind"]


def ask(wires: list[Any]) -> list[int]:
    """Send a question over each before any is answered; the statuses of the answers."""
    for one in wires:
        send_call(one, "default", query="gate code")
    return [one.answer("POST").status for one in wires]


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.close()


def test_beside_a_remote_that_never_answers_all_else_is_served(silent, make_daemon, eventually):
    daemon = make_daemon(
        f"--set=sync.url={silent}",
        "--set=sync.change_seconds=0.05",
        "--set=sync.critical_seconds=0.05",
    ).start()
    with daemon.client() as client:
        keys = [client.store(f"the gate code is {number}").id for number in range(20)]
        eventually(lambda: client.sync_status().phase != "idle", "a round has begun")
        assert client.recall("gate code").results
        client.hot_update("identity", {"agent_name": "Nova"})
        assert client.get(keys[0]).text
        assert client.sync_status().queued >= 20
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began < 12, "it leaves without waiting for the remote"
