"""Both clients against daemons that misbehave; the real one is in tests/acceptance."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.cli.main import main
from thermocline.daemon.client import (
    AnswerLost,
    ApiError,
    AsyncClient,
    Client,
    DaemonUnreachable,
    default_socket,
    wire,
)
from thermocline.daemon.client.wire import quoted
from thermocline.daemon.runtime import places
from thermocline.daemon.store.agent_paths import StateLock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
    from pathlib import Path


class DrivenClient:
    """An `AsyncClient` that is called as a `Client`: each call runs an event loop until it ends."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.__dict__["client"] = AsyncClient(*args, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run(self.client.aclose())

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.client, name, value)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.client, name)
        if name.startswith("_"):
            return attribute

        def run(*args: Any, **fields: Any) -> Any:
            result = attribute(*args, **fields)
            return asyncio.run(result) if asyncio.iscoroutine(result) else self._items(result)

        return run

    def _items(self, generator: AsyncGenerator[Any]) -> Iterator[Any]:
        with asyncio.Runner() as runner:
            while True:
                try:
                    yield runner.run(anext(generator))  # type: ignore[arg-type]
                except StopAsyncIteration:
                    return


@pytest.fixture(scope="module", params=[Client, DrivenClient], autouse=True)
def _each_client(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test runs with both."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys.modules[__name__], "Client", request.param)
        yield


def answer(body: object, status: str = "200 OK", *headers: str) -> bytes:
    data = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode() + data


class Scripted:
    """A daemon that answers the requests of each connection with the given bytes, then closes.

    None closes without an answer; it does so as well when a connection's answers are used up.
    """

    def __init__(self, path: Path, connections: Sequence[Sequence[bytes | None]]) -> None:
        self.path = path
        self.requests: list[tuple[str, bytes]] = []
        self.accepted = 0
        self.closed = threading.Semaphore(0)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, args=(connections,), daemon=True)
        self._thread.start()

    def _serve(self, connections: Sequence[Sequence[bytes | None]]) -> None:
        for answers in connections:
            connection = self._listener.accept()[0]
            self.accepted += 1
            with connection, connection.makefile("rb") as requests:
                for prepared in answers:
                    self._read(requests)
                    if prepared is None:
                        break
                    connection.sendall(prepared)
            self.closed.release()
        self._listener.close()

    def _read(self, requests: object) -> None:
        line = requests.readline().decode().strip()  # type: ignore[attr-defined]
        length = 0
        while header := requests.readline().strip():  # type: ignore[attr-defined]
            if header.lower().startswith(b"content-length:"):
                length = int(header.split(b":")[1])
        self.requests.append((line, requests.read(length)))  # type: ignore[attr-defined]

    def lines(self) -> list[str]:
        return [line for line, _ in self.requests]

    def wait(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[..., Scripted]:
    return lambda *connections: Scripted(tmp_path / "t.sock", connections)


def test_a_chunked_answer_after_an_interim_one_is_put_together_and_one_without_a_length_ends(
    scripted,
):
    chunked = (
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json; x=y\r\n"
        b'\r\n5;ext\r\n{"a":\r\n3\r\n 1}\r\n0\r\nTrailer: x\r\n\r\n'
    )
    endless = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n\xc3\xa4 text"
    daemon = scripted([chunked, endless])
    with Client(daemon.path) as client:
        assert client.request("GET", "/x") == {"a": 1}
        assert client.request("GET", "/x") == "ä text"
    assert daemon.accepted == 1


def test_a_store_goes_over_a_new_connection_when_the_idle_one_was_closed(scripted):
    daemon = scripted([answer({})], [answer({"id": "1"})])
    with Client(daemon.path) as client:
        client.request("GET", "/api/status")
        assert daemon.closed.acquire(timeout=60)
        assert client.request("POST", "/api/memory", body={"text": "x"}) == {"id": "1"}
    assert daemon.accepted == 2


def test_the_rest_of_one_answer_is_never_taken_for_the_next(scripted):
    daemon = scripted([answer({"first": 1}) + answer({"forged": 1})], [answer({"second": 2})])
    with Client(daemon.path) as client:
        assert client.request("GET", "/x") == {"first": 1}
        assert client.request("GET", "/y") == {"second": 2}


def test_a_connection_that_the_daemon_is_done_with_is_not_used_again(scripted):
    daemon = scripted([answer({"a": 1}, "200 OK", "Connection: close"), None], [answer({"b": 2})])
    with Client(daemon.path) as client:
        client.request("GET", "/x")
        assert client.request("GET", "/y") == {"b": 2}
    daemon.wait()
    assert daemon.lines()[-1] == "GET /y HTTP/1.1"


def test_a_read_that_got_no_answer_is_sent_once_more_and_then_given_up(scripted):
    daemon = scripted([None], [answer({"ready": True}), None], [None], [answer({})])
    with Client(daemon.path) as client:
        assert client.request("GET", "/api/status") == {"ready": True}
        with pytest.raises(AnswerLost, match="closed"):
            client.request("GET", "/x")
    assert daemon.lines() == [*["GET /api/status HTTP/1.1"] * 2, *["GET /x HTTP/1.1"] * 2]


def test_the_command_line_speaks_of_a_change_only_after_a_call_that_may_make_one(scripted, capsys):
    daemon = scripted([None], [None], [None])
    for words, hint in ((["agents"], "try again"), (["store", "x"], "check whether the change")):
        assert main(["--socket", str(daemon.path), *words]) == 3
        assert f"did not answer: the connection was closed; {hint}" in capsys.readouterr().err


@pytest.mark.parametrize("call", [
    lambda client: client.store("x"),
    lambda client: client.hot_update("lesson", {"text": "x"}),
    lambda client: client.forget("abcd"),
    lambda client: client.forget_matching(category="x"),
    lambda client: client.forget_agent("x"),
    lambda client: client.recall("x"),
    lambda client: client.observe("c", [{"role": "user", "text": "x"}]),
])  # fmt: skip
def test_a_change_that_got_no_answer_is_never_sent_again(scripted, call):
    daemon = scripted([None], [answer({"id": "twice"})])
    with Client(daemon.path) as client, pytest.raises(AnswerLost):
        call(client)
    assert len(daemon.requests) == 1


@pytest.mark.parametrize("keep", [1, 12, 40, 70, 85])
def test_an_answer_cut_off_anywhere_is_lost_even_for_a_read(scripted, keep):
    whole = answer({"results": [1, 2, 3]})
    assert keep < len(whole)
    daemon = scripted([whole[:keep]], [whole])
    with Client(daemon.path) as client, pytest.raises(AnswerLost):
        client.agents()
    assert len(daemon.requests) == 1


@contextlib.contextmanager
def played(path: Path, play: Callable[[socket.socket], None]) -> Iterator[None]:
    """A daemon at `path` that is played on a thread, which gets its listening socket."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=play, args=(listener,), daemon=True)
        thread.start()
        yield
        thread.join(60)


def test_a_refusal_before_the_body_was_read_is_told(tmp_path):
    refused = {"error": {"code": "too_large", "message": "the body is too large"}}

    def refuse(listener: socket.socket) -> None:
        with listener.accept()[0] as connection:
            connection.recv(1000)
            connection.sendall(answer(refused, "413 Payload Too Large"))

    path = tmp_path / "t.sock"
    with (
        played(path, refuse),
        Client(path) as client,
        pytest.raises(ApiError, match="too large") as raised,
    ):
        client.store("x" * 5_000_000)
    assert (raised.value.code, raised.value.status) == ("too_large", 413)


def test_an_unfinished_store_is_sent_again_to_the_restarted_daemon(tmp_path):
    text = "x" * 1_000_000
    got: list[bytes] = []

    def restart(listener: socket.socket) -> None:
        with listener.accept()[0] as dying:
            dying.recv(1000)
        with listener.accept()[0] as connection:
            while not b"".join(got).endswith(b'"}'):
                got.append(connection.recv(65_536))
            connection.sendall(answer({"id": "1"}))

    path = tmp_path / "t.sock"
    with played(path, restart), Client(path) as client:
        assert client.request("POST", "/api/memory", body={"text": text}) == {"id": "1"}
    assert b"".join(got).partition(b"\r\n\r\n")[2] == json.dumps({"text": text}).encode()


def drip(listener: socket.socket) -> None:
    with listener.accept()[0] as connection, contextlib.suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        # Until the client has left.
        while True:
            connection.sendall(b"x")
            time.sleep(0.02)


@pytest.mark.parametrize("play", [lambda _: None, drip], ids=["never", "drips"])
def test_an_answer_is_waited_for_only_so_long(tmp_path, play):
    path = tmp_path / "t.sock"
    with (
        played(path, play),
        Client(path, timeout=0.3) as client,
        pytest.raises(AnswerLost, match=r"0\.3 seconds"),
    ):
        client.status()


@pytest.mark.parametrize("nonsense", [
    b"SSH-2.0-OpenSSH\r\n",
    b"HTTP/1.1 2x0 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    b"x" * 100_000,
])  # fmt: skip
def test_what_is_not_a_daemon_is_said_to_be_none(scripted, nonsense):
    daemon = scripted([nonsense])
    with Client(daemon.path, timeout=60) as client, pytest.raises(DaemonUnreachable):
        client.status()


def test_an_error_that_is_not_the_daemons_own_is_still_an_error(scripted):
    plain = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nnope"
    daemon = scripted([plain, answer([1], "500 Oops")])
    with Client(daemon.path) as client:
        with pytest.raises(ApiError, match="nope") as raised:
            client.status()
        assert raised.value.code == "http_404"
        with pytest.raises(ApiError, match="500"):
            client.status()


def test_degraded_health_is_an_answer_but_a_refusal_is_not(scripted):
    problem = {"code": "disk_full", "message": "x", "hint": "", "since": 1.0, "lasting": True}
    degraded = {"status": "degraded", "problems": [problem]}
    refused = {"error": {"code": "shutting_down", "message": "the daemon is stopping"}}
    daemon = scripted([answer(degraded, "503 X"), answer(refused, "503 X")])
    with Client(daemon.path) as client:
        assert [problem.code for problem in client.health().problems] == ["disk_full"]
        with pytest.raises(ApiError, match="stopping"):
            client.health()


def test_the_agent_and_every_filter_reach_the_query(scripted):
    daemon = scripted([answer({"results": [], "total": 0})])
    with Client(daemon.path, agent="a&b\r\nX: y") as client:
        client.list(tag=["ä b", "c"], archived=True, include=["merged", "expired"], limit=3)
    (line,) = daemon.lines()
    assert line == (
        "GET /api/memory?tag=%C3%A4%20b&tag=c&archived=true&include=merged&include=expired&limit=3"
        "&agent=a%26b%0D%0AX%3A%20y HTTP/1.1"
    )


LEAVING = {"error": {"code": "shutting_down", "message": "cannot answer: the daemon is stopping"}}


def test_a_store_that_a_leaving_daemon_refused_goes_to_the_next(scripted):
    server = scripted(
        [answer(LEAVING, "503 Service Unavailable")], [answer({"count": 3}, "201 Created")]
    )
    with Client(str(server.path)) as client:
        assert client.request("POST", "/api/memory", body={}) == {"count": 3}


def test_a_refusal_by_a_leaving_daemon_stands_when_no_other_comes(scripted):
    server = scripted([answer(LEAVING, "503 Service Unavailable")])
    with Client(str(server.path)) as client:
        real, times = client._open, iter((True, False))
        client._open = lambda timeout: real(timeout) if next(times) else gone()  # type: ignore[method-assign]
        with pytest.raises(ApiError, match="the daemon is stopping"):
            client.request("POST", "/api/memory", body={})


def gone() -> Any:
    raise DaemonUnreachable("x", "no such file")


def test_an_answer_may_have_fields_of_a_later_release_but_no_other_shape(scripted):
    later = answer({"key": "a", "value": "b", "colour": "red"})
    daemon = scripted([later, later, answer({"key": "a", "value": 1})])
    with Client(daemon.path) as client:
        assert client.kv_get("a").value == "b"
        assert client.call("GET /api/kv/{key}", key="a")["colour"] == "red"
        with pytest.raises(AnswerLost, match="cannot read the answer"):
            client.kv_get("a")


def test_the_command_line_names_what_the_answer_of_an_earlier_release_lacks(scripted, capsys):
    daemon = scripted([answer({"results": [{"id": "a"}]})])
    assert main(["--socket", str(daemon.path), "agents"]) == 3
    assert "it lacks 'size_bytes'; it is of another release: restart it" in capsys.readouterr().err


@given(st.text())
def test_any_text_survives_percent_encoding(text):
    encoded = quoted(text)
    assert encoded.isascii()
    assert not set(encoded) & set("/?#&= \r\n")
    assert unquote(encoded, errors="surrogatepass") == text


def test_events_are_read_across_chunks_comments_and_lines(scripted):
    stream = (
        ": keep-alive\n\n"
        'id: 7\nevent: memory.stored\ndata: {"id":\ndata: "ä"}\n\n'
        "id: 8\n\n"
        "id: 9\r\nevent: kv.set\r\ndata: 1\r\n\r\n"
        "id: 10\nevent: unfinished\ndata: 2\n"
    ).encode()
    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(part), part)
        for part in (stream[i : i + 5] for i in range(0, len(stream), 5))
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    daemon = scripted([head + b"\r\n" + chunks + b"0\r\n\r\n"])
    events = list(Client(daemon.path).events(["memory.stored", "kv.set"], last_id="6"))
    assert events == [("7", "memory.stored", {"id": "ä"}), ("9", "kv.set", 1)]
    assert daemon.lines() == ["GET /api/events?types=memory.stored%2Ckv.set HTTP/1.1"]


def test_a_stream_that_breaks_off_is_told_from_one_that_ended(scripted):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    daemon = scripted([head + b"\r\n9\r\ndata: 1\n\n\r\n"])
    events = Client(daemon.path).events()
    assert next(events) == ("", "message", 1)
    with pytest.raises(AnswerLost):
        next(events)


def test_a_refused_stream_is_an_api_error(scripted):
    error = {"error": {"code": "forbidden", "message": "you may not"}}
    daemon = scripted([answer(error, "403 Forbidden"), None])
    with pytest.raises(ApiError, match="you may not"):
        next(Client(daemon.path, timeout=60).events())


def test_a_header_cannot_be_forged_through_an_event_id():
    with pytest.raises(ValueError, match="header"):
        next(Client("/nowhere").events(last_id="1\r\nX-Agent: other"))


@pytest.mark.parametrize("path", ["missing.sock", "left.sock", "x" * 200, "a\0b"])
def test_no_daemon_is_one_error_whatever_the_cause(tmp_path, path):
    with socket.socket(socket.AF_UNIX) as nobody_listens:
        nobody_listens.bind(str(tmp_path / "left.sock"))
    with pytest.raises(DaemonUnreachable) as raised:
        Client(str(tmp_path / path)).status()
    assert not isinstance(raised.value, AnswerLost)
    assert raised.value.reason
    assert ("refused" in raised.value.reason) == (path == "left.sock")


def test_the_socket_is_looked_for_where_each_kind_of_daemon_puts_it(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "_SYSTEM", str(tmp_path / "system"))
    service, user = tmp_path / "service", tmp_path / "user"
    (user / "thermocline").mkdir(parents=True)
    service.mkdir()
    env = {"RUNTIME_DIRECTORY": f"{service}:/other", "XDG_RUNTIME_DIR": str(user)}
    ours = str(user / "thermocline" / "thermocline.sock")
    assert default_socket(env) == ours
    (service / "thermocline.sock").touch()
    assert default_socket(env) == str(service / "thermocline.sock")
    assert default_socket({**env, "THERMOCLINE_SOCKET": "/mine"}) == "/mine"
    nowhere = {"HOME": str(tmp_path)}
    assert default_socket(nowhere) == places.socket_places(nowhere, root=os.getuid() == 0)[0]
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "thermocline.sock").touch()
    assert default_socket(nowhere) == str(tmp_path / "system" / "thermocline.sock")


def test_the_systems_daemon_does_not_answer_for_the_users_own_one_that_is_starting(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(places, "_SYSTEM", str(tmp_path / "system"))
    monkeypatch.setattr(places, "_USERS", str(tmp_path / "run"))
    systems = tmp_path / "system" / "thermocline.sock"
    systems.parent.mkdir()
    systems.touch()
    env = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "user")}
    state = tmp_path / ".local" / "state" / "thermocline"
    state.mkdir(parents=True)
    ours = tmp_path / "user" / "thermocline" / "thermocline.sock"
    with StateLock(state, ours):
        assert default_socket(env) == str(ours)
    assert default_socket(env) == str(systems)
    # A program that was started without the runtime folder finds the user's daemon.
    there = tmp_path / "run" / str(os.getuid()) / "thermocline" / "thermocline.sock"
    there.parent.mkdir(parents=True)
    there.touch()
    assert default_socket({"HOME": str(tmp_path)}) == str(there)


def test_a_daemon_that_has_many_callers_waiting_is_waited_for(tmp_path, monkeypatch):
    """A kernel refuses at once what a full queue has no room for."""
    path = str(tmp_path / "t.sock")
    held: list[socket.socket] = []
    waits = threading.Event()

    class Noted(wire.Wait):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            if self.socket is None:
                waits.set()

    with socket.socket(socket.AF_UNIX) as daemon, contextlib.ExitStack() as closing:
        daemon.bind(path)
        daemon.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                held.append(closing.enter_context(socket.socket(socket.AF_UNIX)))
                held[-1].setblocking(False)
                held[-1].connect(path)
        with pytest.raises(DaemonUnreachable):
            Client(path, timeout=0.0).status()

        def take_all() -> None:
            assert waits.wait(60)
            for _ in held[:-1]:
                daemon.accept()[0].close()
            with daemon.accept()[0] as connection:
                connection.recv(1000)
                connection.sendall(answer(1))

        thread = threading.Thread(target=take_all)
        monkeypatch.setattr(wire, "Wait", Noted)
        thread.start()
        with Client(path, timeout=60) as client:
            assert client.request("GET", "/x") == 1
        thread.join(60)


def test_a_method_takes_words_by_position_none_empty_each_one_segment_and_refuses_more(
    scripted,
):
    daemon = scripted([answer({"key": "a", "value": "b", "created_at": 1, "updated_at": 1})])
    with Client(daemon.path) as client:
        client.kv_set("a/../b?c#d e", "c")
        with pytest.raises(TypeError, match="only \\(key, value\\) by position"):
            client.kv_set("a", "b", "c")
        with pytest.raises(TypeError, match="needs a value for 'key'"):
            client.kv_get()
        with pytest.raises(ApiError, match="it is empty"):
            client.kv_get("")
    assert daemon.lines() == ["PUT /api/kv/a%2F..%2Fb%3Fc%23d%20e HTTP/1.1"]
