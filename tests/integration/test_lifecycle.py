"""The daemon comes and goes: signals, second daemons, and what stands in the socket's place."""

import json
import os
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon, wait_until

from thermocline.daemon.client import ApiError, ClientError

HALF = b"POST /api/memory HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
STREAM = b"GET /api/events HTTP/1.1\r\nHost: x\r\n\r\n"


def test_sigterm_lets_go_of_everybody(daemon, wire, calls_of):
    calls_of(daemon).store("kept")
    idle, stream, half, used = (wire(daemon.socket) for _ in range(4))
    stream.send(STREAM)
    said = b""
    while b"connected" not in said:
        said += stream.socket.recv(65_536)
    half.send(HALF)
    used.send(b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert used.answer().status == 200
    assert daemon.stop() == 0
    assert half.answer().refusal()[:2] == (503, "shutting_down")
    assert idle.closed()
    assert used.closed()
    assert not daemon.socket.exists()
    daemon.start()
    assert calls_of(daemon).total() == 1


def test_what_is_in_flight_at_sigterm_is_answered_and_kept_or_neither(make_daemon, wire, calls_of):
    daemon = make_daemon("--set=socket.drain_seconds=2").start()
    flying = [wire(daemon.socket) for _ in range(5)]
    for number, one in enumerate(flying):
        texts = [{"text": f"memory {n} of {number}"} for n in range(200)]
        body = json.dumps({"memories": texts}).encode()
        head = b"POST /api/memory/batch HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
        one.send(head % len(body) + body)
    daemon.process.send_signal(signal.SIGTERM)
    answers = [one.answer() for one in flying]
    assert daemon.process.wait(60) == 0
    kept = sum(answer.status == 201 for answer in answers)
    daemon.start()
    total = calls_of(daemon).total()
    assert total >= 200 * kept
    assert total % 200 == 0


def never_read(one: Any, call: Any) -> None:
    """Ask for a megabyte and do not read it: the daemon is still answering when it leaves."""
    memories = [{"text": f"{number} {'x' * 60_000}"} for number in range(16)]
    call.ok("POST", "/api/memory/batch", {"memories": memories})
    one.send(b"GET /api/memory HTTP/1.1\r\nHost: x\r\n\r\n")
    assert one.socket.recv(1) == b"H"


def test_a_caller_that_does_not_read_delays_the_end_no_longer_than_the_drain(
    make_daemon, wire, calls_of
):
    daemon = make_daemon("--set=socket.drain_seconds=2.5").start()
    never_read(wire(daemon.socket), calls_of(daemon))
    started = time.monotonic()
    assert daemon.stop() == 0
    # Much later it would be: an idle connection is kept for over a minute.
    assert 2.5 <= time.monotonic() - started < 60


def test_a_second_sigterm_ends_it_at_once(daemon, wire, calls_of, eventually):
    never_read(wire(daemon.socket), calls_of(daemon))
    daemon.process.send_signal(signal.SIGTERM)
    eventually(lambda: "stopping" in daemon.log.read_text(), "it is leaving")
    assert daemon.process.poll() is None
    assert daemon.stop() == 128 + signal.SIGTERM
    daemon.start()
    with daemon.client() as client:
        assert client.list(limit=1).total == 16


def refusal(daemon: Daemon) -> str:
    """What a daemon says that cannot start."""
    daemon.start(wait=False)
    assert daemon.process.wait(60) == 1
    said = daemon.log.read_text()
    assert "Traceback" not in said
    return said


def test_a_second_daemon_on_the_same_state_or_socket_says_who_holds_it(make_daemon):
    first, second = make_daemon(name="first").start(), make_daemon(name="second")
    second.state = first.state
    said = refusal(second)
    assert f"process {first.process.pid} holds it" in said
    assert str(first.socket) in said
    assert "--state-dir" in said
    assert first.ready()

    third = make_daemon(name="third")
    third.socket = first.socket
    assert "another daemon answers there" in refusal(third)
    assert first.ready()
    first.kill()
    assert second.start().ready()


def test_a_socket_that_was_left_is_replaced_and_one_removed_not_missed(make_daemon):
    daemon = make_daemon()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(daemon.socket))
    assert daemon.start().ready()
    daemon.kill()
    assert daemon.socket.exists()
    assert daemon.start().ready()
    daemon.socket.unlink()
    assert daemon.stop(signal.SIGINT) == 0


def test_a_program_that_was_replaced_while_it_ran_is_to_be_restarted(make_daemon):
    daemon = make_daemon().broken("replaced").start()
    with daemon.client("ana") as client:
        client.store("Ana lives in Kiel")
        with pytest.raises(ApiError, match="went wrong inside the daemon") as refused:
            list(client.export())
    assert "restart it" in (refused.value.hint or "")


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_socket_is_left_alone(make_daemon, kind):
    daemon = make_daemon()
    precious = daemon.socket.with_name("precious")
    precious.write_text("precious")
    if kind == "file":
        daemon.socket.write_text("precious")
    else:
        daemon.socket.symlink_to(precious)
    assert "not a socket" in refusal(daemon)
    assert precious.read_text() == "precious"
    assert daemon.socket.is_symlink() or daemon.socket.exists()


def test_a_place_that_cannot_be_used_is_said_in_words(make_daemon):
    daemon = make_daemon()
    file = daemon.socket.with_name("file")
    file.touch()
    places = [("state", file), ("state", Path("/proc/nope")), ("socket", file / "s")]
    for attribute, place in places:
        broken = make_daemon(name="broken")
        setattr(broken, attribute, place)
        said = refusal(broken)
        assert f"cannot use {place}: " in said
        assert "Errno" not in said


def test_a_folder_that_is_made_for_the_socket_is_told(make_daemon):
    daemon = make_daemon()
    daemon.socket = daemon.socket.parent / "misspelt" / "t.sock"
    daemon.start()
    assert f"made the folder {daemon.socket.parent} for the socket" in daemon.log.read_text()


def test_a_socket_path_that_is_too_long_is_refused_in_words(make_daemon):
    daemon = make_daemon()
    daemon.socket = daemon.socket.with_name("s" * 120)
    assert "cannot listen on" in refusal(daemon)


def test_a_state_folder_removed_under_way_has_no_second_daemon(make_daemon):
    daemon, second = make_daemon().start(), make_daemon()
    second.state = daemon.state
    shutil.rmtree(daemon.state)
    with daemon.client() as client:
        client.store("Ana prefers tea")
    wait_until((daemon.state / "lock").exists, "the folder is locked again")
    assert f"process {daemon.process.pid} holds it" in refusal(second)
    assert daemon.stop() == 0


def held_back() -> tuple[str, ...]:
    """What starts a daemon that modes of files hold back, although root starts it."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root cannot be shut out without setpriv (util-linux)")
    what = "-dac_override,-dac_read_search"
    return ("setpriv", f"--bounding-set={what}", f"--inh-caps={what}")


@pytest.mark.parametrize("closed", ["", "memory.db"])
def test_a_memory_that_is_closed_to_us_is_told_and_opened_when_it_may_be(make_daemon, closed):
    daemon = make_daemon().start()
    with daemon.client() as client:
        client.store("Ana prefers tea")
    daemon.stop()
    path = daemon.folder() / closed
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        daemon.start(prefix=held_back())
        with daemon.client("other") as client:
            client.store("goes on")
            codes = {problem.code for problem in client.status().problems}
            assert {"agent_trouble", "agent_unreadable"} & codes
        with daemon.client() as client, pytest.raises(ClientError) as refusal:
            client.store("Ben prefers coffee")
        assert refusal.value.code == "read_only"
        assert f"cannot use {path}" in str(refusal.value)
    finally:
        path.chmod(mode)
    with daemon.client() as client:
        assert [memory.text for memory in client.list().results] == ["Ana prefers tea"]
        assert client.status().problems == []
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log.read_text()


def test_what_the_daemon_may_not_read_is_not_watched(make_daemon, tmp_path):
    daemon = make_daemon().start(prefix=held_back())
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    (page := tmp_path / "page.md").touch(mode=0)
    with daemon.client() as client:
        for path in (closed, page):
            with pytest.raises(ApiError, match="may not read") as refused:
                client.files_add(str(path))
            assert (refused.value.code, refused.value.field) == ("forbidden", "path")
            path.chmod(0o700)
            client.files_add(str(path))
    assert daemon.stop() == 0


@pytest.mark.parametrize("names", ["memory.db*", "*.db*"])
def test_a_database_that_may_only_be_read_is_read_and_written_once_it_may_be(make_daemon, names):
    daemon = make_daemon().start()
    with daemon.client() as client:
        client.store("Ana prefers tea")
    daemon.kill()
    files = list(daemon.folder().glob(names))
    assert len(files) >= 3
    for path in files:
        path.chmod(0o400)
    daemon.start(prefix=held_back())
    with daemon.client() as client:
        assert [memory.text for memory in client.list().results] == ["Ana prefers tea"]
        with pytest.raises(ClientError) as refusal:
            client.store("Ben prefers coffee")
        assert refusal.value.code == "read_only"
        for path in files:
            path.chmod(0o600)
        wait_until(lambda: client.status().problems == [], "the disk accepts writes")
        client.store("Ben prefers coffee")
    assert daemon.stop() == 0


def test_a_daemon_without_a_remote_holds_no_openssl(make_daemon, calls_of, monkeypatch):
    monkeypatch.setattr(Daemon, "forks", None)
    daemon = make_daemon().start()
    call = calls_of(daemon)
    call.store("Ana prefers tea")
    assert call.ok("POST", "/api/recall", {"query": "tea"})["results"]
    held = Path(f"/proc/{daemon.process.pid}/maps").read_text(encoding="utf-8")
    assert "sqlite" in held
    assert "libssl" not in held
    assert "libcrypto" not in held
