"""What a person sees first: the welcome's commands and README's first examples work as shown."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon, wait_until

import thermocline.daemon

BIN = Path(sys.executable).parent
README = (Path(thermocline.daemon.__file__).parents[1] / "README.md").read_text(encoding="utf-8")
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


def _run(words: list[str], **more: str) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **more}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_question_that_the_welcome_suggests_is_answered(
    shown_commands: list[list[str]],
) -> None:
    store, question, _ = shown_commands
    assert ("store" in store, "retrieve" in question) == (True, True)
    assert re.fullmatch(r"stored [0-9a-f]{8} in general\n", _run(store))
    assert _run(question).splitlines()[-1].endswith(FLIGHT)
    again = _run(store)
    assert re.fullmatch(r"already known: [0-9a-f]{8} \(used \d times?\)\n", again)


def test_the_agent_that_the_welcome_suggests_is_connected(
    shown_commands: list[list[str]], tmp_path: Path
) -> None:
    connect = shown_commands[-1]
    assert connect[-2:] == ["connect", "claude-code"]
    _run([*connect, "--yes"], HOME=str(tmp_path))
    assert "connected: tools, hooks" in _run([*connect[:-1], "--list"], HOME=str(tmp_path))


@pytest.fixture
def reader(
    make_daemon: Callable[..., Daemon], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of somebody who follows README, with a daemon at the usual place."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    daemon = make_daemon()
    daemon.socket = tmp_path / "thermocline" / "thermocline.sock"
    daemon.start()
    return tmp_path


@pytest.mark.usefixtures("reader")
def test_the_first_example_of_readme_prints_the_flight_first() -> None:
    [example] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    first = _run([sys.executable, "-c", example]).splitlines()[0]
    assert re.fullmatch(rf"[01]\.\d\d {FLIGHT}", first)


def test_the_gate_of_readme_opens(reader: Path) -> None:
    lines = [line for line in README.splitlines() if "gate" in line]
    by_shell = [line for line in lines if line.startswith("thermocline ")]
    assert len(by_shell) == 4
    for line in by_shell:
        text = _run(["bash", "-c", line.partition("  #")[0]])
        assert "stored" in text or "The gate code is 4711" in text or "cold" in line
    store, question = (line for line in lines if line.startswith("curl "))
    socket = f"S={reader}/thermocline/thermocline.sock; "
    assert '"known"' in _run(["bash", "-c", socket + store])
    assert '"text":"The gate code is 4711"' in _run(["bash", "-c", socket + question])
