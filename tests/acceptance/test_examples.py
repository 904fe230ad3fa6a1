"""The programs in examples/ that need no other library, run as they are."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon, wait_until

import thermocline.daemon

EXAMPLES = Path(thermocline.daemon.__file__).parents[1] / "examples"


@pytest.fixture
def environment(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Daemon:
    """The daemon and the commands that a reader has."""
    monkeypatch.setenv("THERMOCLINE_SOCKET", str(daemon.socket))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return daemon


@pytest.fixture
def short() -> Iterator[str]:
    """A folder whose path leaves room for the name of a socket."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def run(name: str, text: str = "") -> list[str]:
    """The lines that an example prints."""
    done = subprocess.run(
        words(name), input=text, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def words(name: str) -> list[str]:
    program = [sys.executable, "-W", "error"] if name.endswith(".py") else ["sh"]
    return [*program, str(EXAMPLES / name)]


@pytest.mark.usefixtures("environment")
def test_the_client_corrects_finds_and_undoes():
    printed = run("client.py")
    assert printed[0] == "supersedes the older: True"
    assert printed[1].endswith(": Maya moved to Rostock")
    assert any("Answer in German" in line for line in printed)
    assert printed[-1] == "after undo: Maya moved to Rostock"


@pytest.mark.usefixtures("environment")
def test_a_shell_stores_finds_and_forgets_over_http():
    stored, pair, recalled, forgotten = map(json.loads, run("http.sh"))
    assert stored["stored"]
    assert pair["value"] == "dark"
    assert recalled["results"][0]["text"] == "The boat is moored at pier 7"
    assert forgotten["total"] == 1


@pytest.mark.usefixtures("environment")
def test_a_conversation_is_remembered_in_the_next():
    first = run("observer.py", "My sister Ana lives in Kiel\n")
    assert first == ["I know nothing about that yet.", "stored: My sister Ana lives in Kiel"]
    assert "My sister Ana lives in Kiel" in run("observer.py", "Where does my sister live?\n")[0]


def test_a_listener_hears_what_others_store(environment, tmp_path):
    heard = tmp_path / "heard"
    with heard.open("w") as out, environment.client("events-example") as client:
        listener = subprocess.Popen(words("events.py"), stdout=out)
        try:
            # It hears what happens after it has connected.
            numbers = iter(range(10_000))

            def has_heard() -> bool:
                assert listener.poll() is None
                client.store(f"ship {next(numbers)}")
                return "memory.stored" in heard.read_text()

            wait_until(has_heard, "the listener has heard of a memory")
            assert environment.stop() == 0
            assert listener.wait(60) == 0
        finally:
            listener.kill()
            listener.wait()


def test_a_second_device_has_the_memory_and_so_has_the_one_after_a_loss(
    environment, short, monkeypatch
):
    environment.stop()
    monkeypatch.delenv("THERMOCLINE_SOCKET")
    monkeypatch.setenv("TMPDIR", short)
    # Whoever seals their own replica runs it too.
    config = Path.home() / ".config" / "thermocline" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"sync": {"seal": "on"}}')
    printed = run("second_device.sh")
    assert sum(line.endswith("The boat is moored at pier 7") for line in printed) == 2
    assert any(line.endswith("with the replica: no difference") for line in printed)
    assert [*Path(short).iterdir()] == []
