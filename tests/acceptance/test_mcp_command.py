"""`thermocline mcp` as a client meets it: frames on standard streams, in both eras."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon, wait_until
from machine import peak_kb
from shells import COMMAND, Shell

from thermocline.daemon.cli.mcp import Bridge, _DaemonConnection
from thermocline.daemon.cli.program import options
from thermocline.daemon.schemas.tools import tools_of

PROGRAM = [sys.executable, "-m", "thermocline.daemon.cli.program"]
META = "io.modelcontextprotocol/"
NOW = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}


class Session:
    """A client's end of one bridge."""

    def __init__(self, *words: str, cwd: Path | None = None, **env: str) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, "mcp", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **env},
            cwd=cwd,
        )
        self.number = 0

    def send(self, message: Any) -> None:
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        stdin.flush()

    def next(self) -> Any:
        stdout = self.process.stdout
        assert stdout is not None
        line = stdout.readline()
        assert line, "the bridge ended"
        return json.loads(line)

    def ask(self, method: str, **params: Any) -> Any:
        self.number += 1
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.send(request)
        answer = self.next()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self.number)
        return answer

    def ok(self, method: str, **params: Any) -> Any:
        return self.ask(method, **params)["result"]

    def tool(self, name: str, **arguments: Any) -> Any:
        return self.ok("tools/call", name=name, arguments=arguments)

    def end(self) -> int:
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        code = self.process.wait(60)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code


@pytest.fixture
def session(shared_daemon: Daemon) -> Iterator[Callable[..., Session]]:
    """`session(...)` begins one with the module's daemon."""
    made: list[Session] = []

    def begin(*words: str, **more: Any) -> Session:
        where = {"THERMOCLINE_SOCKET": str(shared_daemon.socket)}
        made.append(Session(*words, **(where | more)))
        return made[-1]

    yield begin
    for one in made:
        one.process.kill()
        one.end()


def test_what_a_client_stores_is_undone_by_its_name(session, shared_daemon):
    client = session("--agent-id", "named")
    info = {"name": "Zed Editor", "version": "1"}
    client.ok("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
    kept = client.tool("remember", text="The lock keeper is called Otto")
    modern = session("--agent-id", "named")
    meta = NOW | {f"{META}clientInfo": {"name": "cod\u00e9x\r\n"}}
    arguments = {"text": "The lock opens at six"}
    modern.ok("tools/call", name="remember", arguments=arguments, _meta=meta)
    assert kept["isError"] is False
    shell = Shell(shared_daemon.socket, "named")
    writers = {one["text"]: one["writer"] for one in shell.json("list")["results"]}
    assert writers["The lock keeper is called Otto"].endswith(" zed-editor")
    assert writers["The lock opens at six"].endswith(" codx")
    shell.run("undo", "--by", "zed-editor", "--since", "1h", "--yes")
    assert [one["text"] for one in shell.json("list")["results"]] == ["The lock opens at six"]


def test_a_session_of_the_old_era(session):
    client = session("--agent-id", "old")
    hello = client.ok(
        "initialize",
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo={"name": "c", "version": "1"},
    )
    assert hello["protocolVersion"] == "2025-06-18"
    assert "recall" in hello["instructions"]
    assert len(hello["instructions"]) < 2_000
    assert hello["capabilities"] == {"tools": {}}
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert client.ok("ping") == {}
    tools = client.ok("tools/list")
    assert [one["name"] for one in tools["tools"]] == [tool.name for tool in tools_of("default")]
    assert "resultType" not in tools
    kept = client.tool("remember", text="The gate code is 4711")
    assert kept["isError"] is False
    found = client.tool("recall", query="gate code")
    assert found["structuredContent"]["results"][0]["text"] == "The gate code is 4711"
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
    assert client.end() == 0


def test_requests_of_the_new_era_carry_their_version(session):
    client = session("--agent-id", "new")
    about = client.ok("server/discover", _meta=NOW)
    assert about["resultType"] == "complete"
    assert about["supportedVersions"][0] == "2026-07-28"
    assert {"capabilities", "instructions", "ttlMs", "cacheScope"} <= about.keys()
    tools = client.ok("tools/list", _meta=NOW)
    assert {"ttlMs", "cacheScope", "resultType"} <= tools.keys()
    found = client.ok("tools/call", name="recall", arguments={"query": "x"}, _meta=NOW)
    assert (found["resultType"], found["structuredContent"]["results"]) == ("complete", [])
    error = client.ask("tools/list", _meta=NOW | {f"{META}protocolVersion": "2031-01-01"})["error"]
    assert error["code"] == -32022
    assert "2026-07-28" in error["data"]["supported"]
    unknown = client.ask("initialize", protocolVersion="1999-01-01", capabilities={})
    assert unknown["result"]["protocolVersion"] == "2025-11-25"


def test_the_long_way_through_the_parser_is_the_same(shared_daemon):
    line = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n'
    command = [*COMMAND, "mcp", "--tools=profclaw", "--socket", str(shared_daemon.socket)]
    done = subprocess.run(command, input=line, capture_output=True, check=True)
    assert len(json.loads(done.stdout)["result"]["tools"]) == 3
    wrong = subprocess.run([*PROGRAM, "mcp", "--tools", "nobody"], capture_output=True, check=False)
    assert wrong.returncode == 2
    assert b"expected one of" in wrong.stderr


def test_the_short_way_takes_what_it_knows():
    for words, found in [
        ((), {}),
        (("--start", "--tools", "x"), {"--start": "", "--tools": "x"}),
        (("--tools", "--start"), {"--tools": "--start"}),
        (("--tools",), None),
        (("--start", "--start"), None),
        (("--help",), None),
        (("more",), None),
    ]:
        assert options(words, ("--start", "--tools")) == found


def test_what_is_no_request_is_refused_with_the_reason_and_the_next_is_answered(session):
    client = session("--agent-id", "wrong")
    for line, key, code, why in [
        (b"nonsense\n", None, -32700, "not JSON"),
        (b"[1]\n", None, -32600, "batches are not supported: send each"),
        (b'{"id":1}\n', 1, -32600, "not a request"),
        ({"jsonrpc": "1.0", "id": 77, "method": "ping"}, 77, -32600, "'jsonrpc' must be"),
        ({"id": "a", "method": "ping"}, "a", -32600, "'jsonrpc' must be"),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None, -32600, "'id' must be"),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, 1, -32600, "'method' must be"),
    ]:
        client.send(line)
        answer = client.next()
        assert (answer["id"], answer["error"]["code"]) == (key, code)
        assert why in answer["error"]["message"]
    client.send(b"\n")
    client.send({"jsonrpc": "2.0", "id": 7, "result": {}})
    assert client.ask("no/such")["error"]["code"] == -32601
    for wrong in ({"name": "nope"}, {"name": ["recall"]}, {"name": "recall", "arguments": [1]}):
        assert client.ask("tools/call", **wrong)["error"]["code"] == -32602
    message = client.ask("tools/call")["error"]["message"]
    assert message == "'name' is missing: expected one of recall, remember, context, forget"
    wrong = client.tool("recall", question="x")
    assert wrong["isError"] is True
    assert "question" in wrong["content"][0]["text"]


@pytest.mark.parametrize(
    ("preset", "name", "arguments"),
    [
        ("scalyclaw", "memory_search", {"query": "x", "topK": 3}),
        ("profclaw", "memory_search", {"query": "x", "maxResults": 3}),
    ],
)
def test_the_tools_of_other_systems(preset, name, arguments, session):
    client = session("--tools", preset)
    assert name in {one["name"] for one in client.ok("tools/list")["tools"]}
    assert client.tool(name, **arguments)["isError"] is False
    assert client.ask("tools/call", name="recall")["error"]["code"] == -32602
    instructions = client.ok("server/discover")["instructions"]
    assert name in instructions


def test_a_cancelled_call_is_never_answered(session, tmp_path):
    path = str(tmp_path / "slow.sock")
    asked, go_on = threading.Event(), threading.Event()

    def serve() -> None:
        for number in range(2):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                if number == 0:
                    asked.set()
                    go_on.wait(60)
                body = b'{"results": []}'
                kind = b"Content-Type: application/json\r\n"
                size = b"Content-Length: %d\r\n\r\n" % len(body)
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + kind + size + body)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = session(THERMOCLINE_SOCKET=path)
        call = {"name": "recall", "arguments": {"query": "x"}}
        client.send({"jsonrpc": "2.0", "id": "first", "method": "tools/call", "params": call})
        assert asked.wait(60)
        # Other requests are answered meanwhile.
        assert client.ok("ping") == {}
        cancelled = {"requestId": "first", "reason": "the user has stopped it"}
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        assert client.ok("ping") == {}
        go_on.set()
        assert client.tool("recall", query="y")["structuredContent"] == {"results": []}
        thread.join(60)
        client.process.stdin.close()
        assert client.process.stdout.read() == b""


def test_two_calls_with_one_id_are_both_answered_and_it_ends_after_what_is_under_way(session):
    client = session()
    for text in ("Ana prefers tea", "Bo prefers milk"):
        arguments = {"name": "remember", "arguments": {"text": text}}
        client.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": arguments})
    client.process.stdin.close()
    answers = [client.next() for _ in range(2)]
    assert [answer["id"] for answer in answers] == [7, 7]
    stored = [answer["result"]["structuredContent"] for answer in answers]
    assert all(one["stored"] for one in stored)
    assert len({one["id"] for one in stored}) == 2
    assert client.process.wait(60) == 0


def test_an_answer_that_is_being_written_as_the_input_ends_arrives():
    class Slow(io.BytesIO):
        def write(self, line: Any) -> int:
            threading.Event().wait(0.3)
            return super().write(line)

    call = {"name": "recall", "arguments": 7}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    out = Slow()
    nobody = _DaemonConnection(None, None, start=False, off="off")
    Bridge("default", nobody, out).run(io.BytesIO(json.dumps(request).encode() + b"\n"))
    assert json.loads(out.getvalue())["id"] == 1


def test_a_client_that_goes_before_its_answer_leaves_no_noise(session):
    client = session()
    client.process.stdout.close()
    client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    client.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    client.process.stdin.close()
    assert client.process.stderr.read() == b""
    assert client.process.wait(60) == 0


@pytest.mark.parametrize("words", [(), ("--start",)])
def test_without_a_daemon_every_call_says_so_and_how_to_start_one(tmp_path, words):
    file = tmp_path / "file"
    file.write_text("not a folder")
    client = Session(*words, THERMOCLINE_SOCKET=str(file / "x.sock"), HOME=str(file))
    assert len(client.ok("tools/list")["tools"]) == len(tools_of("default"))
    told = client.tool("recall", query="x")
    assert told["isError"] is True
    assert "no daemon answers" in told["content"][0]["text"]
    assert 'start it with "thermocline daemon"' in told["content"][0]["text"]
    assert client.end() == 0


def test_with_start_it_starts_a_daemon_that_outlives_it(tmp_path):
    socket = tmp_path / "t.sock"
    # A daemon of the device would be used before one of a state folder.
    where = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "s")}
    where["THERMOCLINE_SOCKET"] = str(socket)
    client = Session("--start", **where)
    try:
        assert client.tool("remember", text="The gate code is 4711")["isError"] is False
        assert client.end() == 0
        other = Session(**where)
        found = other.tool("recall", query="gate code")["structuredContent"]["results"]
        assert [one["text"] for one in found] == ["The gate code is 4711"]
        assert other.end() == 0
    finally:
        lock = tmp_path / "s" / "thermocline" / "lock"
        number = json.loads(lock.read_text())["pid"]
        os.kill(number, signal.SIGTERM)
        wait_until(lambda: not socket.exists(), "it ends")


def test_a_project_may_switch_it_off_or_have_a_memory_of_its_own(session, tmp_path):
    inner = tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    file = tmp_path / "project" / ".thermocline"
    file.write_text("own\n")
    session(cwd=inner).tool("remember", text="The project's port is 8080")
    own = session(cwd=tmp_path / "project").tool("recall", query="the project's port")
    assert own["structuredContent"]["results"]
    elsewhere = session(cwd=tmp_path).tool("recall", query="the project's port")
    assert not elsewhere["structuredContent"]["results"]
    file.write_text("off\n")
    off = session(cwd=inner).tool("recall", query="x")
    assert off["isError"] is True
    assert str(file) in off["content"][0]["text"]


def test_a_line_without_end_is_refused_and_takes_no_memory(session):
    client = session()
    client.ok("ping")
    stdin = client.process.stdin
    before = peak_kb(client.process.pid)
    stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "')
    for _ in range(60):
        stdin.write(b"x" * 1_000_000)
    stdin.write(b'"}}\n')
    stdin.flush()
    refused = client.next()
    assert refused["id"] is None
    assert "longer than" in refused["error"]["message"]
    assert client.ok("ping") is not None
    assert peak_kb(client.process.pid) - before < 60_000
