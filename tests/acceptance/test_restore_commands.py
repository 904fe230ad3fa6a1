"""`restore` on the command line: on a bare machine, as a person and as a program use it."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.cli.main import main
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.store import outgoing
from thermocline.sync import FileRemote, Remote, Replica, Row

COMMAND = [sys.executable, "-m", "thermocline.daemon.cli.main"]


def rows(number: int) -> list[Row]:
    """Memories as they travel."""
    made = (
        Memory(
            id=f"m{place:03d}", text=f"Ana likes number {place}", created_at=1e9, updated_at=1e9,
            clock=place + 1, device="d", filed_clock=place + 1, filed_device="d",
        )
        for place in range(number)
    )  # fmt: skip
    return [outgoing.memory_row(memory, 0) for memory in made]


async def push(remote: Remote, *agents: str) -> None:
    for agent in agents:
        replica = Replica(remote, agent)
        await replica.prepare(time.time())
        await replica.push(rows(3))
    await remote.close()


@pytest.fixture
def replica(tmp_path: Path) -> str:
    """The URL of a file that holds the memories of two agents."""
    asyncio.run(push(FileRemote(tmp_path / "replica.db"), "default", "other"))
    return f"file:{tmp_path / 'replica.db'}"


@pytest.fixture
def guarded(sqld_with_auth: Any) -> Any:
    """A server that asks for a token, and holds a memory."""

    async def fill() -> None:
        from thermocline.sync import turso  # noqa: PLC0415 - slow to load

        await push(await turso.connect(sqld_with_auth.url, sqld_with_auth.token()), "default")

    asyncio.run(fill())
    return sqld_with_auth


def run(*words: str | Path, code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, (words, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_what_there_is_can_be_seen_first(replica: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    out, _ = run("restore", "--url", replica, "--to", state, "--dry-run")
    first, second = out.splitlines()
    assert first.startswith("default: 3 memories and 0 other rows, ")
    assert ", about 1 s; " in first
    assert second.endswith(f"would go to {state / 'agents/other'}")
    assert not state.exists()


def test_a_bare_machine_gets_its_memories_back(
    replica: str, make_daemon: Callable[..., Any]
) -> None:
    daemon = make_daemon("--set", f"sync.url={replica}")
    out, err = run("restore", "--url", replica, "--to", daemon.state)
    assert "restored  default\n" in out
    assert "compared  3 rows, all as the replica holds them\n" in out
    assert "also      1 category, 0 hot entries, 0 key-value pairs, 0 notes\n" in out
    assert out.endswith(f'put this into its config.json:\n{{"sync": {{"url": "{replica}"}}}}\n')
    assert "default: comparing what came with what the replica holds\n" in err
    with daemon.start().client() as client:
        assert client.recall("what does Ana like?")["results"]
        assert client.sync()["received"] == 0
        assert sorted(agent["id"] for agent in client.agents()["results"]) == ["default", "other"]
    refused = run("restore", "--url", replica, "--to", daemon.state, code=1)
    assert "stop it, restore, and start it again" in refused[1]


def test_a_program_gets_one_object_of_json(replica: str, tmp_path: Path) -> None:
    words = ("restore", "--url", replica, "--to", tmp_path / "state", "--agent-id", "other")
    restored = json.loads(run(*words, "--json")[0])
    [other] = restored.pop("restored")
    assert restored == {"failed": {}, "passed_over": []}
    assert (other["agent"], other["memories"], other["rows"]) == ("other", 3, 3)
    out, err = run(*words, "--json", code=1)
    assert out == ""
    assert "holds a memory\n  --replace keeps it" in err
    replaced = json.loads(run(*words, "--json", "--replace")[0])["restored"][0]
    assert Path(replaced["set_aside"]).is_dir()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.tar.gz", "--url", "file:/x"], "a FILE is restored without a database"),
        (["--verify", "--url", "file:/x"], "--verify rehearses with the daemon's own database"),
        (["--wait", "-1"], "--wait: expected a number of seconds"),
        (["--token-file", "/x", "--auth-token", "y"], "give the token once"),
    ],
)
def test_options_that_contradict_one_another_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_token_opens_the_database_and_is_not_shown(guarded: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(guarded.token(read_only=True))
    words = ("restore", "--url", guarded.url, "--to", tmp_path / "state")
    _, err = run(*words, "--auth-token", "no.such.token", code=1)
    assert "every user of this machine can see --auth-token" in err
    assert "cannot log in" in err
    assert "no.such.token" not in err.replace("--auth-token", "")
    _, err = run(*words, code=1)
    assert "make a token, and give it with --token-file\n" in err
    out, err = run(*words, "--token-file", tmp_path / "token")
    assert "memories  3" in out
    assert f'"token_file": "{tmp_path / "token"}"' in out
    assert guarded.token(read_only=True) not in out + err


def test_a_person_is_asked_for_the_token(guarded: Any, tmp_path: Path) -> None:
    words = [*COMMAND, "restore", "--url", guarded.url, "--to", str(tmp_path / "state")]
    ours, terminal = pty.openpty()
    with subprocess.Popen(
        words, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        preexec_fn=lambda: take_terminal(terminal),  # noqa: PLW1509 - one call, no lock
    ) as process:  # fmt: skip
        os.close(terminal)
        said = read_until(ours, b"token of")
        os.write(ours, guarded.token().encode() + b"\n")
        said += read_until(ours, b"folder")
        assert process.wait(20) == 0, said
    assert guarded.token() not in said.decode()
    assert b"\r\x1b" not in said[:20]
    assert b"3 of 3 rows, 100 %" in said
    os.close(ours)


def take_terminal(terminal: int) -> None:
    """Make it the one that the process is run from."""
    import fcntl  # noqa: PLC0415
    import termios  # noqa: PLC0415

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def read_until(handle: int, what: bytes, seconds: float = 30.0) -> bytes:
    found, deadline = b"", time.monotonic() + seconds
    while what not in found:
        left = deadline - time.monotonic()
        assert left > 0, f"waited in vain for {what!r}: {found!r}"
        if select.select([handle], [], [], left)[0]:
            try:
                found += os.read(handle, 65_536)
            except OSError:
                raise AssertionError(f"ended before {what!r}: {found!r}") from None
    return found


def test_ctrl_c_leaves_a_restore_to_go_on_with(guarded: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(guarded.token())
    words = ["restore", "--url", guarded.url, "--to", str(tmp_path / "state")]
    words += ["--token-file", str(tmp_path / "token")]
    guarded.stop()
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline().decode() == f"asking {guarded.url}\n"
        first = process.stderr.readline().decode()
        assert first.startswith("waiting for the replica, next try in ")
        assert " s: cannot reach the remote: " in first
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read().decode()
        assert process.wait(20) == 130
    assert rest.endswith("what has come is kept, and the same command goes on with it\n")
    guarded.start()
    assert "memories  3" in run(*words)[0]


def test_who_does_not_want_to_wait_says_so(guarded: Any, tmp_path: Path) -> None:
    guarded.stop()
    words = ("restore", "--url", guarded.url, "--to", tmp_path / "state", "--wait", "0")
    assert "the replica: cannot reach the remote" in run(*words, code=4)[1]


def test_an_archive_is_restored_by_the_same_verb(daemon: Any, tmp_path: Path) -> None:
    with daemon.client() as client:
        client.store("Ana prefers tea")
    run("--socket", daemon.socket, "backup", tmp_path / "a.tar.gz")
    words = ("restore", tmp_path / "a.tar.gz", "--to", tmp_path / "state")
    assert "would restore" in run(*words, "--dry-run")[0]
    out, _ = run(*words)
    assert "memories    1\n" in out
    assert "deletions" not in out
    assert out.endswith("\nnext: start the daemon, with the same state folder\n")
    assert "it is not empty" in run(*words, code=1)[1]


def test_a_daemon_rehearses_on_demand(daemon: Any) -> None:
    with daemon.client() as client:
        client.store("Ana prefers tea")
    out, _ = run("--socket", daemon.socket, "restore", "--verify")
    assert out.startswith("verified ")
    for path in daemon.folder().glob("replica.db*"):
        path.unlink()
    found = json.loads(run("--socket", daemon.socket, "restore", "--verify", "--json")[0])
    assert (found["verified"], found["missing"]) == (True, 0)
