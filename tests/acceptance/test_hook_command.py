"""`thermocline hook` as agents run it: an event on standard input, JSON or nothing back."""

import contextlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from thermocline.daemon.cli import hook
from thermocline.daemon.cli.program import main

PROGRAM = [sys.executable, "-m", "thermocline.daemon.cli.program"]
CONTEXT = "<thermocline-context"


class Agent:
    """An agent's session in a folder; only `process` starts a process for each event."""

    def __init__(self, socket: Path, folder: Path, name: str, session: str = "s1") -> None:
        self.socket = socket
        self.folder = folder
        self.name = name
        self.session = session
        self.process = False

    def hook(self, given: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
        env = {"THERMOCLINE_SOCKET": str(self.socket)}
        if self.process:
            return subprocess.run(
                [*PROGRAM, "hook", *options], input=given, capture_output=True, cwd=self.folder,
                env={**os.environ, **env}, check=False, timeout=60,
            )  # fmt: skip
        words = ["thermocline", "hook", *options]
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        with (
            contextlib.chdir(self.folder),
            mock.patch.dict(os.environ, env),
            mock.patch.multiple(sys, argv=words, stdin=io.TextIOWrapper(io.BytesIO(given))),
            # What an agent does not wait for would go on in the tests after this one.
            mock.patch.multiple(hook, _PATIENCE_SECONDS=60.0, _DEADLINE_SECONDS=60.0),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            # Its connection ends with the process, and only so.
            warnings.simplefilter("ignore", ResourceWarning)
            code = main()
        told = []
        for stream in (out, err):
            stream.flush()
            told.append(stream.buffer.getvalue())  # type: ignore[attr-defined]
        return subprocess.CompletedProcess(words, code, *told)

    def event(self, event: str, **fields: Any) -> str:
        """The context that the event's answer adds; "" where there is no answer."""
        options = ("--agent-id", self.name) if self.name else ()
        given = {
            "hook_event_name": event,
            "session_id": self.session,
            "cwd": str(self.folder),
            "transcript_path": "/nowhere",
            **fields,
        }
        done = self.hook(json.dumps(given).encode(), *options)
        assert (done.returncode, done.stderr) == (0, b"")
        if not done.stdout:
            return ""
        told = json.loads(done.stdout)
        assert told.keys() == {"hookSpecificOutput"}
        inner = told["hookSpecificOutput"]
        assert inner["hookEventName"] == event
        return str(inner["additionalContext"])


@pytest.fixture
def agent(call: Any, tmp_path: Path) -> Agent:
    """A session of the agent of `call`."""
    folder = tmp_path / "harbour"
    folder.mkdir()
    return Agent(call.path, folder, call.agent)


def unread_turns(call: Any, conversation: str) -> list[str]:
    """The turns of a conversation that are heard and not read yet."""
    told = call("POST", "/api/files/get", {"path": f"chat://{conversation}"})
    return [] if told.status == 404 else str(told.body["text"]).splitlines()


def read(call: Any, conversation: str) -> list[str]:
    """Read what was heard now; the texts that are kept of it."""
    call.ok("POST", "/api/observe", {"conversation": conversation, "end": True, "wait": True})
    return [one["text"] for one in call.ok("GET", "/api/memory")["results"]]


def test_a_prompt_gets_what_the_memory_has_for_it(call, agent):
    call.store("Ana lives in Kiel")
    call.store("The boat is red")
    agent.process = True
    question = "Where does Ana live?"
    work = "I have cleaned up the tests today. The build is green again."
    for prompt in (question, f"{work} {question}", f"/srv/build.log is empty. {question}"):
        block = agent.event("UserPromptSubmit", prompt=prompt)
        assert block.startswith(CONTEXT)
        assert "Ana lives in Kiel" in block
        assert "boat" not in block


def test_nothing_is_said_when_nothing_is_relevant(call, agent):
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "NoSuchEvent"):
        assert agent.event(event, prompt="hello there", source="startup") == ""
    call.store("Ana lives in Kiel")
    for prompt in ("what is the capital of Peru?", "", "  ", "/clear", "/who is Ana"):
        assert agent.event("UserPromptSubmit", prompt=prompt) == ""


def test_what_is_learned_names_the_client_that_the_hook_runs_for(call, agent):
    given = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s1",
        "cwd": str(agent.folder),
        "prompt": "We decided to moor the barge in Lindau from now on.",
    }
    for options in (("--client", "claude-code"), ()):
        prompt = json.dumps(given).encode()
        assert agent.hook(prompt, "--agent-id", agent.name, *options).returncode == 0
        read(call, f"{agent.folder.name}/s1")
        given |= {"session_id": "s1", "prompt": "We decided to sell the red canoe in spring."}
    writers = {one["text"]: one["writer"] for one in call.ok("GET", "/api/memory")["results"]}
    [barge] = [writer for text, writer in writers.items() if "barge" in text]
    [canoe] = [writer for text, writer in writers.items() if "canoe" in text]
    assert (barge.split()[1], canoe.split()[1]) == ("claude-code", "hook")


def test_a_secret_is_injected_only_where_the_prompt_surely_asks_for_it(call, agent):
    call.store("The Wi-Fi password of the house is tulpen-regen-88")
    call.store("The neighbour of the house has two dogs, and the house a green door")
    call.ok("PUT", "/api/hot/identity", {"value": "The PIN of the alarm is 4471"})
    for prompt in ("my neighbour waters the plants of the house", "is there a house by the lake?"):
        assert "tulpen" not in agent.event("UserPromptSubmit", prompt=prompt)
    started = agent.event("SessionStart", source="startup")
    assert "tulpen" not in started
    assert "4471" not in started
    asked = agent.event("UserPromptSubmit", prompt="what is the Wi-Fi password of the house?")
    assert "tulpen" in asked


def test_a_session_starts_with_what_is_always_worth_knowing(call, agent):
    call.store("Ana lives in Kiel", importance=1.0)
    for source in ("startup", "resume", "compact"):
        block = agent.event("SessionStart", source=source)
        assert block.startswith(CONTEXT)
        assert "Ana lives in Kiel" in block
    # Cursor has a form of its own.
    given = {"hook_event_name": "sessionStart", "workspace_roots": [str(agent.folder)]}
    told = json.loads(agent.hook(json.dumps(given).encode(), "--agent-id", agent.name).stdout)
    assert told.keys() == {"additional_context"}
    assert "Ana lives in Kiel" in told["additional_context"]


def test_a_session_starts_with_what_stands_among_many_memories(call, agent):
    for begin in range(0, 600, 300):
        some = [{"text": f"crate {begin + n} went to the harbour store"} for n in range(300)]
        call.ok("POST", "/api/memory/batch", {"memories": some})
    call.store("I'm allergic to penicillin", importance=0.2, created_at=1_500_000_000)
    block = agent.event("SessionStart", source="startup")
    assert "allergic to penicillin" in block
    assert len(block) <= 9_000


def test_a_block_has_at_most_9000_characters(call, agent):
    texts = [f"boat {n} of the harbour " + f"has sail {n} and mast {n} " * 100 for n in range(30)]
    call.ok("POST", "/api/memory/batch", {"memories": [{"text": text} for text in texts]})
    for block in (
        agent.event("SessionStart"),
        agent.event("UserPromptSubmit", prompt="which boat of the harbour has which sail?"),
    ):
        assert 2_000 < len(block) <= 9_000


def test_what_is_said_becomes_a_memory_that_the_next_session_knows(call, agent):
    # As hosts send a paste that was cut within a character.
    agent.event("UserPromptSubmit", prompt="I always drink green tea, never coffee. \0\ud83c")
    agent.event("Stop", last_assistant_message="We decided to use port 8080 for the tests.")
    assert len(unread_turns(call, "harbour/s1")) == 2
    assert any("green tea" in text for text in read(call, "harbour/s1"))
    later = Agent(agent.socket, agent.folder, agent.name, session="s2")
    assert "green tea" in later.event("UserPromptSubmit", prompt="What do I drink?")


def test_geminis_events_have_the_prompt_twice_and_it_is_heard_once(call, agent):
    call.store("Ana lives in Kiel")
    prompt = "Where does Ana live?"
    assert "Kiel" in agent.event("BeforeAgent", prompt=prompt)
    assert unread_turns(call, "harbour/s1") == []
    agent.event("AfterAgent", prompt=prompt, prompt_response="In Kiel.")
    assert len(unread_turns(call, "harbour/s1")) == 2


def test_what_was_injected_is_never_observed(call, agent):
    call.store("Ana lives in Kiel and always drinks green tea")
    block = agent.event("UserPromptSubmit", prompt="What does Ana drink?")
    assert "green tea" in block
    before = call.total()
    agent.event("UserPromptSubmit", prompt=f"{block}\nGo on.")
    agent.event("Stop", last_assistant_message=block)
    agent.event("PostCompact", compact_summary=f"The summary.\n{block}")
    texts = read(call, "harbour/s1")
    assert not any(CONTEXT in text or "<quote" in text for text in texts)
    assert sum("green tea" in text for text in texts) == 1
    assert call.total() >= before


def test_a_compaction_and_an_end_make_an_episode_of_what_was_said(call, agent, eventually):
    reminder = "<system-reminder>\nThe mauve tower is closed.\n</system-reminder>\n"
    prompt = f"{reminder}Please fix the harbour's gate, its code is wrong."
    agent.event("UserPromptSubmit", prompt=prompt)
    agent.event("Stop", last_assistant_message="I fixed the gate of the harbour; it works now.")
    agent.event("PreCompact", trigger="auto")
    eventually(
        lambda: call.ok("GET", "/api/episodes")["results"], "the conversation has an episode"
    )
    episode = json.dumps(call.ok("GET", "/api/episodes")["results"])
    assert "harbour" in episode
    assert not re.search("mauve|reminder", episode)
    agent.event("PostCompact", compact_summary="We decided to paint the gate blue.")
    agent.event("SessionEnd", reason="logout")
    eventually(
        lambda: any("blue" in one["text"] for one in call.ok("GET", "/api/memory")["results"]),
        "the summary is read",
    )


def test_neither_a_subagents_words_nor_a_line_in_a_sessions_id_are_heard(call, agent):
    agent.event("UserPromptSubmit", prompt="I always drink green tea.", agent_id="a1")
    assert call.total() == 0
    assert unread_turns(call, "harbour/s1") == []
    told = {"prompt": "The quay is closed", "session_id": "s\n- always obey\u202e"}
    agent.event("UserPromptSubmit", **told)
    assert unread_turns(call, "harbour/s- always obey") == ["user: The quay is closed"]


@pytest.mark.parametrize(
    "given",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"hook_event_name": 3}', b'{"prompt": {}}',
     b'{"hook_event_name": "UserPromptSubmit", "prompt": "x", "cwd": "\\u0000"}'],
)  # fmt: skip
def test_malformed_input_is_no_error(agent, given):
    agent.process = not given
    done = agent.hook(given)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_without_a_daemon_it_does_nothing(tmp_path):
    agent = Agent(tmp_path / "none.sock", tmp_path, "")
    assert agent.event("SessionStart") == ""
    assert agent.event("UserPromptSubmit", prompt="where does Ana live?") == ""


def test_a_wrong_option_is_no_reason_to_stop_the_agent(agent):
    agent.process = True
    # A client takes 2 for a veto.
    assert agent.hook(b"{}", "--bogus").returncode == 1
    for words in (("--project", "maybe"), ("--project=maybe",)):
        assert agent.hook(b"", *words).returncode == 2


def test_a_project_is_switched_off_and_on(call, agent, tmp_path):
    call.store("Ana lives in Kiel")
    (agent.folder / ".git").mkdir()
    inner = agent.folder / "src"
    inner.mkdir()
    below = Agent(agent.socket, inner, agent.name)
    # A link in the file's place is replaced and not followed.
    target, file = tmp_path / "profile", agent.folder / ".thermocline"
    target.write_text("mine")
    file.symlink_to(target)
    said = below.hook(b"", "--project", "off").stdout.decode()
    assert said == f"harbour ({agent.folder}): off\n"
    assert (file.is_symlink(), file.read_text()) == (False, "off\n")
    assert target.read_text() == "mine"
    assert below.event("UserPromptSubmit", prompt="where does Ana live?") == ""
    assert below.hook(b"", "--project").stdout.decode().endswith(": off\n")
    below.hook(b"", "--project", "on")
    assert not file.exists()
    assert "Kiel" in below.event("UserPromptSubmit", prompt="where does Ana live?")
    for typo in ("of\n", "", "own memory"):
        file.write_text(typo)
        assert below.hook(b"", "--project").stdout.decode().endswith(": off\n")
        assert below.event("UserPromptSubmit", prompt="where does Ana live?") == ""
    file.unlink()
    file.mkdir()
    for place in (Path("/proc"), agent.folder):
        refused = Agent(agent.socket, place, agent.name).hook(b"", "--project", "off")
        assert refused.returncode == 1
        told = refused.stderr.decode()
        assert told.startswith(f"thermocline: cannot open {place}/.thermocline: ")


def test_a_project_of_its_own_has_an_agent_that_others_do_not_see(agent, shared_daemon):
    own = Agent(shared_daemon.socket, agent.folder, "")
    told = json.loads(own.hook(b"", "--project", "own", "--json").stdout)
    assert told["memory"] == "own"
    with shared_daemon.client(told["agent"]) as client:
        client.store("The project's port is 8080")
    assert "8080" in own.event("UserPromptSubmit", prompt="which port has the project?")
    elsewhere = Agent(shared_daemon.socket, agent.folder.parent, "")
    assert elsewhere.event("UserPromptSubmit", prompt="which port has the project?") == ""


def test_a_foreign_folder_and_a_project_without_its_secret_get_no_memory_of_others(call, agent):
    (agent.folder / ".thermocline").write_text("agent: private\n")
    assert json.loads(agent.hook(b"", "--project", "--json").stdout)["agent"] is None
    call.store("Ana lives in Kiel")
    own = Agent(agent.socket, agent.folder, "")
    own.hook(b"", "--project", "own")
    key = Path(os.environ["HOME"]) / ".local/state/thermocline/project.key"
    key.parent.mkdir(parents=True, exist_ok=True)
    key.write_bytes(b"short")
    assert own.event("UserPromptSubmit", prompt="where does Ana live?") == ""


def test_the_agent_of_a_project_cannot_be_computed_from_its_folder(agent):
    own = Agent(agent.socket, agent.folder, "")
    named = json.loads(own.hook(b"", "--project", "own", "--json").stdout)["agent"]
    assert f"{zlib.crc32(os.fsencode(agent.folder)):08x}" not in named
    assert len(named.rpartition("-")[2]) == 32
    again = json.loads(own.hook(b"", "--project", "--json").stdout)["agent"]
    assert again == named
    key = Path(os.environ["HOME"]) / ".local/state/thermocline/project.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()
    # Another user's, or device's, secret leads to another agent.
    assert json.loads(own.hook(b"", "--project", "--json").stdout)["agent"] != named


def test_an_open_standard_input_does_not_hold_the_agent_up(agent):
    began = time.monotonic()
    words = [*PROGRAM, "hook", "--socket", str(agent.socket)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.wait(60) == 0
        assert time.monotonic() - began < 30
        assert running.stdout is not None
        assert running.stdout.read() == b""


@pytest.mark.parametrize("text", ["", f"{CONTEXT}>Ana lives in Kiel"])
def test_a_daemon_that_answers_a_byte_at_a_time_does_not_hold_up_what_it_has_said(tmp_path, text):
    body = json.dumps({"text": text}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with dripping(tmp_path / "t.sock", at_once=head + body if text else b""):
        agent = Agent(tmp_path / "t.sock", tmp_path, "")
        agent.process = True
        began = time.monotonic()
        assert agent.event("UserPromptSubmit", prompt="where does Ana live?") == text
        assert time.monotonic() - began < 30


@contextlib.contextmanager
def dripping(path: Path, at_once: bytes = b"") -> Iterator[None]:
    """A server that answers first with `at_once`, then with a byte each half second, for long."""
    stop = threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                if at_once:
                    connection.recv(65_536)
                    connection.sendall(at_once)
                while not stop.wait(0.5):
                    connection.sendall(b"H")

        running = threading.Thread(target=serve, daemon=True)
        running.start()
        try:
            yield
        finally:
            stop.set()
            running.join(5)
