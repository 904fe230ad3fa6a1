"""What callers that misbehave at the socket cost the log, the memory and the other callers."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
from typing import Any

import pytest

from thermocline.daemon.client import ApiError

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


def open_connections(daemon: Any) -> int:
    with contextlib.suppress(ApiError), daemon.client() as client:
        return int(client.status().connections)
    return -1


@pytest.fixture
def daemon(shared_daemon: Any) -> Any:
    """The module's daemon serves all of it."""
    return shared_daemon


# What is logged


def test_a_malformed_head_is_one_line_in_the_log_without_what_was_sent(
    daemon: Any, wire: Any
) -> None:
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


def test_a_refused_connection_beyond_the_limit_is_no_traceback(
    make_daemon: Any, wire: Any, eventually: Any
) -> None:
    daemon = make_daemon("--set=socket.max_connections=4").start()
    kept: list[Any] = []

    def taken() -> bool:
        kept.append(wire(daemon.socket))
        kept[-1].send(HEALTH)
        if kept[-1].answer().status != 200:
            # Who asked whether it is ready has not left yet.
            kept.pop().close()
        return len(kept) == 4

    eventually(taken, "all connections are taken")
    for _ in range(20):
        leaving = wire(daemon.socket)
        leaving.send(HEALTH)
        leaving.close()
        one = wire(daemon.socket)
        one.send(HEALTH)
        assert one.answer().refusal() == (503, "unavailable", None)
    for one in kept:
        one.close()
    eventually(lambda: open_connections(daemon) == 1, "the connections are gone")
    said = daemon.log.read_text()
    assert "Traceback" not in said
    assert said.count("connection") <= 3, said


def test_a_reader_of_events_that_leaves_is_no_traceback(
    daemon: Any, wire: Any, calls_of: Any, eventually: Any
) -> None:
    call = calls_of(daemon)
    for _ in range(20):
        one = wire(daemon.socket)
        one.send(b"GET /api/events HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in one.socket.recv(100)
        storing = threading.Thread(target=call.store, args=("x",))
        storing.start()
        one.close()
        storing.join()
    eventually(lambda: open_connections(daemon) == 1, "the readers are gone")
    said = daemon.log.read_text()
    assert "Traceback" not in said
    assert "ERROR" not in said


# Half-closed connections


def half_closed(one: Any, data: bytes) -> None:
    one.send(data)
    one.socket.shutdown(socket.SHUT_WR)


def test_a_caller_that_half_closes_gets_its_answer(call: Any, wire: Any) -> None:
    for _ in range(20):
        one = wire()
        half_closed(one, HEALTH)
        assert one.answer().status == 200
        assert one.closed()
    body = b'{"text": "half closed"}'
    one = wire()
    head = f"POST /api/memory HTTP/1.1\r\nHost: x\r\nX-Agent: {call.agent}\r\n"
    half_closed(one, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert one.answer("POST").status == 201
    assert one.closed()


def test_a_caller_that_half_closes_gets_all_the_answers_it_asked_for(wire: Any) -> None:
    one = wire()
    half_closed(one, HEALTH * 30)
    assert [one.answer().status for _ in range(30)] == [200] * 30
    assert one.closed()


def test_a_caller_that_half_closes_after_its_answer_is_let_go(wire: Any) -> None:
    one = wire()
    one.send(HEALTH)
    assert one.answer().status == 200
    one.socket.shutdown(socket.SHUT_WR)
    assert one.closed()


def test_a_large_body_before_a_half_close_is_read_whole(call: Any, wire: Any) -> None:
    body = b'{"memories": [' + b",".join([b'{"text": "%s"}' % (b"x" * 50_000)] * 16) + b"]}"
    head = f"POST /api/memory/batch HTTP/1.1\r\nHost: x\r\nX-Agent: {call.agent}\r\n"
    one = wire()
    half_closed(one, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert one.answer("POST").status == 201


def test_a_body_cut_off_by_a_half_close_is_not_waited_for(wire: Any) -> None:
    one = wire(timeout=60)
    half_closed(one, b"POST /api/memory HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
    assert one.answer("POST").status in {0, 400}
    assert one.closed()


def test_events_go_on_for_a_reader_that_half_closed(call: Any, wire: Any) -> None:
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


# Other versions of HTTP


@pytest.mark.parametrize(
    "line", [b"GET /api/health", b"GET /api/health HTTP/0.9", b"GET /api/health HTTP/2.0"]
)
def test_other_versions_of_http_are_refused(wire: Any, line: bytes) -> None:
    one = wire()
    one.send(line + b"\r\nHost: x\r\n\r\n")
    answered = one.answer()
    assert answered.refusal()[:2] == (400, "invalid")
    assert one.closed()


def test_the_preface_of_http_2_is_refused(wire: Any) -> None:
    one = wire()
    one.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert one.answer().refusal()[:2] == (400, "invalid")


# Without files to open


def test_the_status_is_told_when_no_file_can_be_opened(make_daemon: Any, wire: Any) -> None:
    daemon = make_daemon().start()
    with daemon.client() as client:
        client.store("x")
    one = wire(daemon.socket)
    one.send(HEALTH)
    assert one.answer().status == 200
    pid = daemon.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        for target in (b"/api/status", b"/api/health", b"/api/metrics"):
            one.send(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            answered = one.answer()
            assert answered.status in ({200, 503} if b"health" in target else {200}), answered.text
            if target == b"/api/status":
                assert answered.body["memory_bytes"] > 1 << 20
                assert answered.body["agents"]["default"]["memories"] == 1
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


# Many connections


@pytest.mark.usefixtures("many_files")
def test_a_thousand_connections_that_send_half_a_body_cost_little_memory(
    make_daemon: Any, wire: Any
) -> None:
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


def test_a_large_body_finds_room_once_others_that_began_theirs_have_left(
    call: Any, wire: Any
) -> None:
    head = b"POST /api/memory HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    slow = [wire() for _ in range(40)]
    for one in slow:
        one.send(head + b"{" * 100_000)
    for one in slow:
        one.close()
    body = {"memories": [{"text": "x" * 50_000}] * 10}
    assert len(call.ok("POST", "/api/memory/batch", body)["results"]) == 10
