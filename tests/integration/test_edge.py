"""What callers that misbehave at the socket cost the log, the memory and the other callers."""

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SECRET = b"Bearer-c2VjcmV0LXRva2Vu"
HEALTH = b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n"
MALFORMED = (
    SECRET + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nAuthorization " + SECRET + b"\r\n\r\n",
    b"GET /" + SECRET + b"\xff\xfe HTTP/9.9\r\n\r\n",
    b"POST /api/memory HTTP/1.1\r\nHost: x\r\nContent-Length: " + SECRET + b"\r\n\r\n",
    b"GET //[" + SECRET + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: " + SECRET * 1000 + b"\r\n\r\n",
)


@pytest.fixture
def daemon(shared_daemon: Any) -> Any:
    """The module's daemon serves all of it."""
    return shared_daemon


# What is logged


def test_a_malformed_head_is_one_line_in_the_log_without_what_was_sent(make_daemon, wire):
    daemon = make_daemon().start()
    before = daemon.log.stat().st_size
    for head in MALFORMED * 10:
        one = wire(daemon.socket)
        one.send(head)
        status, _, _ = one.answer().refusal()
        assert status in {400, 404, 431}
        one.close()
    said = daemon.log.read_bytes()[before:]
    assert SECRET[:12] not in said
    assert b"Traceback" not in said
    # At once the first is told; the others are counted in a later line.
    assert 1 <= said.count(b"\n") <= 3, said
    assert b"malformed" in said


# Malformed requests


def test_a_request_before_garbage_in_the_same_read_is_answered(wire):
    one = wire()
    one.send(HEALTH + b"garbage\r\n\r\n")
    assert one.answer().status == 200
    assert one.answer().refusal()[:2] == (400, "invalid")
    assert one.closed()
    one = wire()
    one.send(b"nonsense\r\n\r\n")
    assert one.socket.recv(65_536).startswith(b"HTTP/1.1 400 ")


def test_what_means_nothing_has_a_limit(wire):
    chunk = b"POST /api/memory HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;"
    for nothing in (b"\r\n" * 20_000, b"GET" + b" " * 40_000, chunk + b"a" * 40_000):
        one = wire()
        with contextlib.suppress(OSError):
            one.send(nothing)
        assert one.answer("POST").status in {400, 431}
        assert one.closed()


# Half-closed connections


def half_closed(one: Any, data: bytes) -> None:
    one.send(data)
    one.socket.shutdown(socket.SHUT_WR)


def test_a_caller_that_half_closes_gets_all_the_answers_it_asked_for(call, wire):
    one = wire()
    half_closed(one, HEALTH * 30)
    assert [one.answer().status for _ in range(30)] == [200] * 30
    assert one.closed()
    large = b",".join([b'{"text": "%s"}' % (b"x" * 50_000)] * 16)
    for path, body, cut, status in (
        ("/api/memory", b'{"text": "half closed"}', 0, 201),
        ("/api/memory/batch", b'{"memories": [%s]}' % large, 0, 201),
        # What was cut off is not waited for.
        ("/api/memory", b'{"text": "half closed"}', 5, 400),
    ):
        one = wire()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Agent: {call.agent}\r\n"
        length = f"Content-Length: {len(body) + cut}\r\n\r\n"
        half_closed(one, f"{head}{length}".encode() + body)
        assert one.answer("POST").status == status
        assert one.closed()


def test_events_go_on_for_a_reader_that_half_closed(call, wire):
    one = wire()
    target = f"/api/events?agent={call.agent}".encode()
    half_closed(one, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    seen = b""
    while b": connected" not in seen:
        seen += one.socket.recv(65_536)
    call.store("x")
    while b"memory.stored" not in seen:
        more = one.socket.recv(65_536)
        assert more, "the stream ended"
        seen += more


# Without files to open


# Many connections


@pytest.mark.usefixtures("many_files")
def test_a_thousand_connections_that_send_half_a_body_cost_little_memory(make_daemon, wire):
    daemon = make_daemon().start()

    def resident() -> int:
        with daemon.client() as client:
            return int(client.status().memory_bytes)

    before = resident()
    head = b"POST /api/memory HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    ours = wire(daemon.socket)
    ours.send(HEALTH)
    assert ours.answer().status == 200
    others = []
    for _ in range(1000):
        others.append(wire(daemon.socket))
        others[-1].socket.setblocking(False)
        with contextlib.suppress(OSError):
            others[-1].socket.send(head + b"{" * 190_000)
    # The last of the first 256 was read when a request behind it is answered.
    ours.send(b"GET /api/status HTTP/1.1\r\nHost: x\r\n\r\n")
    status = ours.answer().body
    assert status["connections"] == 256
    assert status["memory_bytes"] - before < 25 << 20
    for one in others:
        one.close()


def test_a_large_body_finds_room_once_others_that_began_theirs_have_left(call, wire):
    head = b"POST /api/memory HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    slow = [wire() for _ in range(40)]
    for one in slow:
        one.send(head + b"{" * 100_000)
    for one in slow:
        one.close()
    body = {"memories": [{"text": "x" * 50_000}] * 10}
    assert len(call.ok("POST", "/api/memory/batch", body)["results"]) == 10


# What holds the daemon's resources


READS = ("/api/export", "/api/memory?limit=500", "/api/recall?query=boats&limit=100")
NOT_READING = """
import socket, sys, time
kept = []
for number in range(200):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    path = sys.argv[2 + number % (len(sys.argv) - 2)]
    head = f"GET {path} HTTP/1.1\\r\\nHost: x\\r\\nX-Agent: boats\\r\\n\\r\\n"
    one.sendall(head.encode())
    kept.append(one)
print("asked", flush=True)
sys.stdin.read()
"""


def seconds_without_processor(pid: int) -> float:
    """How long the threads of a process were ready to run and did not, summed up."""
    waited = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            waited += int(task.read_text().split()[1])
    return waited / 1e9


def test_two_hundred_callers_that_do_not_read_delay_others_by_a_tenth_of_a_second(
    make_daemon, calls_of
):
    daemon = make_daemon().start()
    call = calls_of(daemon, "boats")
    texts = [{"text": f"crate {n} of the boats went down the river " * 24} for n in range(500)]
    call.ok("POST", "/api/memory/batch", {"memories": texts})
    both = (daemon.process.pid, os.getpid())

    def delays() -> list[float]:
        """What a question takes, but for the time in which others had the processors."""
        seconds = []
        for _ in range(30):
            began, waited = time.monotonic(), sum(map(seconds_without_processor, both))
            call.ok("POST", "/api/recall", {"query": "the river"})
            took = time.monotonic() - began
            waited = sum(map(seconds_without_processor, both)) - waited
            seconds.append(took - waited)
        return sorted(seconds)

    alone = delays()
    words = [sys.executable, "-c", NOT_READING, str(call.path), *READS]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as others:
        assert others.stdout is not None
        assert others.stdout.readline() == b"asked\n"
        meanwhile = delays()
        assert others.stdin is not None
        others.stdin.close()
    # Those that ask while the two hundred requests begin are among the slowest tenth.
    assert meanwhile[27] < alone[15] + 0.1, meanwhile


def test_without_a_file_to_open_a_call_is_refused_with_the_reason(make_daemon, calls_of, wire):
    daemon = make_daemon().start()
    call = calls_of(daemon)
    call.store("the boat is red")
    served = ("/api/status", "/api/metrics")
    calls = [
        *(("GET", path, None) for path in served),
        *(("GET", path, None) for path in (*READS, "/api/backup", "/api/context?query=boat")),
        ("POST", "/api/memory", {"text": "the mast is short"}),
        ("POST", "/api/episodes", {"summary": "we sailed"}),
        ("POST", "/api/observe", {"conversation": "c", "text": "I like tea", "wait": True}),
    ]
    wires = [wire(daemon.socket) for _ in calls]
    for one in wires:
        one.send(HEALTH)
        assert one.answer().status == 200
    number = daemon.process.pid
    hard = resource.prlimit(number, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(number, resource.RLIMIT_NOFILE, (3, hard))
    try:
        refused = []
        for one, (method, path, body) in zip(wires, calls, strict=True):
            data = b"" if body is None else json.dumps(body).encode()
            head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nX-Agent: default\r\n"
            one.send(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
            answer = one.answer(method)
            if answer.status >= 400:
                refused.append((path, *answer.refusal()[:2]))
                assert "too many files are open" in answer.text, answer.text
        assert refused
        assert not {path for path, _, _ in refused} & {*served}
        assert {(status, code) for _, status, code in refused} == {(503, "unavailable")}
    finally:
        resource.prlimit(number, resource.RLIMIT_NOFILE, (hard, hard))
    assert call.ok("GET", "/api/recall?query=boat")["results"]
