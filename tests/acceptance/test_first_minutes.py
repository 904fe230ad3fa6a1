"""What a person sees first: the welcome's commands work as shown."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import wait_until

import thermocline.daemon

BIN = Path(sys.executable).parent
FLIGHT = "Maya's flight lands on Friday at 18:40"


@pytest.fixture
def welcome(tmp_path: Path) -> Iterator[str]:
    """What `thermocline daemon --welcome` prints in an empty folder; it runs during the test."""
    words = [str(BIN / "thermocline"), "--socket", str(tmp_path / "t.sock"), "daemon"]
    words += ["--welcome", "--state-dir", str(tmp_path / "state")]
    shown = tmp_path / "welcome.txt"
    with (
        shown.open("wb") as out,
        subprocess.Popen(words, stdout=out, stderr=subprocess.DEVNULL) as process,
    ):
        wait_until(lambda: "Ctrl-C" in shown.read_text(), "it welcomes")
        yield shown.read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.fixture
def shown_commands(welcome: str) -> list[list[str]]:
    """The commands that the welcome suggests."""
    return [shlex.split(line) for line in welcome.splitlines() if line.startswith("  ")]


def test_starting_it_twice_ends_with_the_message_alone(welcome, tmp_path):
    assert welcome
    words = ["--state-dir", str(tmp_path / "state"), "--socket", str(tmp_path / "other.sock")]
    makefile = tmp_path / "Makefile"
    text = (Path(thermocline.daemon.__file__).parents[1] / "Makefile").read_text()
    makefile.write_text(text.replace("daemon --welcome", f"daemon --welcome {' '.join(words)}"))
    done = subprocess.run(
        ["make", "--no-print-directory", "-f", str(makefile), "-o", ".venv/.ready", "run"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(thermocline.daemon.__file__).parents[1],
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("thermocline: cannot use ")
    assert "make" not in done.stderr


def _run(words: list[str], **more: str) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **more}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_question_that_the_welcome_suggests_is_answered(shown_commands):
    store, question, _ = shown_commands
    assert ("store" in store, "retrieve" in question) == (True, True)
    assert re.fullmatch(r"stored [0-9a-f]{8} in general\n", _run(store))
    assert _run(question).splitlines()[-1].endswith(FLIGHT)
    again = _run(store)
    assert re.fullmatch(r"already known: [0-9a-f]{8} in general \(used \d times?\)\n", again)


def test_the_agent_that_the_welcome_suggests_is_connected(shown_commands, tmp_path):
    connect = shown_commands[-1]
    assert connect[-2:] == ["connect", "claude-code"]
    _run([*connect, "--yes"], HOME=str(tmp_path))
    assert "connected: tools, hooks" in _run([*connect[:-1], "--list"], HOME=str(tmp_path))
