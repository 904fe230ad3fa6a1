"""The daemon's story in a temporary folder: run it with `make demo`."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from thermocline.daemon.client import Client, ClientError, DaemonUnreachable

PROGRAM = (sys.executable, "-m", "thermocline.daemon.cli.main")
DEADLINE_SECONDS = 15.0


class Stage:
    """One daemon in a temporary folder, and a narrator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agent = folder / "state" / "agents" / "default"
        self.socket = folder / "t.sock"
        # Here a file; in earnest a database at Turso.
        self.replica = f"file:{folder / 'replica.db'}"
        self.process: subprocess.Popen[bytes] | None = None

    def say(self, text: str) -> None:
        print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)

    def show(self, *words: str) -> None:
        """Run a command as a person would, and show both sides."""
        print(f"  $ thermocline {shlex.join(words)}")
        command = [*PROGRAM, "--socket", str(self.socket), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for line in (done.stdout + done.stderr).splitlines():
            print(f"    {line}")

    def start(self) -> float:
        """Start the daemon; return the seconds until it answered."""
        began = time.monotonic()
        command = [*PROGRAM, "--socket", str(self.socket), "daemon"]
        command += ["--state-dir", str(self.folder / "state"), "--set", f"sync.url={self.replica}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        while not self.answers():
            if time.monotonic() - began > DEADLINE_SECONDS or self.process.poll() is not None:
                raise SystemExit(f"the daemon did not start:\n{(self.folder / 'log').read_text()}")
            time.sleep(0.01)
        return time.monotonic() - began

    def answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.status().ready)
        except DaemonUnreachable:
            return False

    def client(self) -> Client:
        return Client(str(self.socket))

    def end(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(DEADLINE_SECONDS)


def remember(stage: Stage) -> None:
    stage.say("An agent tells it what it learns. Each answer means: it is on the disk.")
    stage.show("store", "Maya's flight lands on Friday at 18:40", "--category", "travel/maya")
    stage.show(
        "store", "Never deploy on Fridays", "--event", "correction", "--category", "work/ops"
    )
    stage.show("store", "Das Passwort fürs Gäste-WLAN hängt am Kühlschrank", "--category", "home")
    stage.show("store", "打开车库门的密码是四七一一", "--category", "home/garage")
    stage.say("It asks in its own words, in any script, and gets ranked answers.")
    stage.show("retrieve", "when does Maya arrive on a flight?")
    stage.show("retrieve", "车库门")
    stage.say("What must always be in context goes into the hot state: at most 5 KB.")
    stage.show("hot", "--update", "identity", '{"agent_name": "Ada", "owner_name": "Bo"}')
    stage.show("hot", "--update", "lesson", '{"text": "Ask before paying", "importance": 0.9}')


def look(stage: Stage) -> None:
    stage.say("SQLite is the truth; plain files show it, for people and for older tools.")
    wait_for(lambda: "Ask before paying" in (stage.agent / "MEMORY.md").read_text())
    for path in sorted(stage.agent.glob("[!.]*")):
        print(f"    {path.name:26}{path.stat().st_size:>8} bytes")
    print()
    for line in (stage.agent / "MEMORY.md").read_text().splitlines()[6:16]:
        print(f"    {line}")


def survive(stage: Stage) -> None:
    stage.say("Now eight writers at once, and kill -9 in the middle.")
    told: list[str] = []
    writers = [threading.Thread(target=write, args=(stage, n, told)) for n in range(8)]
    for writer in writers:
        writer.start()
    time.sleep(1.0)
    stage.end(signal.SIGKILL)
    for writer in writers:
        writer.join()
    seconds = stage.start()
    with stage.client() as client:
        found = set(all_texts(client))
    lost = [text for text in told if text not in found]
    print(f"    acknowledged {len(told)}, found {len(told) - len(lost)}, lost {len(lost)};")
    print(f"    back {seconds:.2f} s after it was started again.")
    if lost:
        raise SystemExit("an acknowledged memory was lost")


def write(stage: Stage, writer: int, told: list[str]) -> None:
    try:
        with stage.client() as client:
            for number in range(100_000):
                text = f"measurement {number} of sensor {writer}"
                client.store(text, category="sensors", importance=0.4)
                told.append(text)
    except ClientError:
        return


def all_texts(client: Client) -> Iterator[str]:
    offset = 0
    while page := client.list(limit=500, offset=offset).results:
        yield from (memory.text for memory in page)
        offset += len(page)


def mend(stage: Stage) -> None:
    stage.say("A state file that somebody else changes is set aside, and written again.")
    path = stage.agent / "hot-memory-state.json"
    wait_for(lambda: path.exists() and "Ask before paying" in path.read_text())
    document = json.loads(path.read_text())
    document["critical_lessons"][0]["text"] = "Ask before paying more than 20 euros"
    path.write_text(json.dumps(document))
    wait_for(lambda: [*stage.agent.glob("hot-memory-state.json.changed-*")] and path.exists())
    stage.show("status")
    stage.say("Zeros in the middle of the database are found, it is set aside and rebuilt.")
    stage.end(signal.SIGTERM)
    stage.start()
    stage.show("store", "The power went at noon", "--category", "home")
    with stage.client() as client:
        before = sum(1 for _ in all_texts(client))
        client.sync()
    # After an end like this the whole database is read.
    stage.end(signal.SIGKILL)
    database = stage.agent / "memory.db"
    with database.open("r+b") as file:
        file.seek(database.stat().st_size // 8192 * 4096)
        file.write(bytes(16384))
    stage.start()
    with stage.client() as client:
        # What cannot be read any more comes back from the replica.
        wait_for(lambda: sum(1 for _ in all_texts(client)) >= before)
        wait_for(lambda: "database_rebuilt" in {p.code for p in client.status().problems})
        after = sum(1 for _ in all_texts(client))
    print(f"    {before} memories before, {after} after.")
    stage.show("status")
    if after < before:
        raise SystemExit("a memory was lost")


def condense(stage: Stage) -> None:
    stage.say("A conversation is condensed: here by rules, with a model if there is one.")
    talk = (
        "User: the nightly backup fails again. Agent: the disk was full, I removed the old images."
        " User: great, it works now. Let's keep only two images from now on."
    )
    stage.show("distill", "--text", talk, "--core-summary", "--store")


def lose(stage: Stage) -> None:
    stage.say("The device is lost, with its notes. One command brings all of it back.")
    note = stage.agent / "memory" / "2026-03-01.md"
    note.parent.mkdir(exist_ok=True)
    note.write_text("# First of March\n\n- [x] Oiled the garage door\n")
    stage.show("sync", "--now")
    with stage.client() as client:
        before = sum(1 for _ in all_texts(client))
    stage.end(signal.SIGKILL)
    shutil.rmtree(stage.folder / "state")
    stage.show("restore", "--url", stage.replica, "--to", str(stage.folder / "state"))
    stage.start()
    stage.show("retrieve", "when does Maya arrive on a flight?")
    wait_for(note.exists)
    with stage.client() as client:
        after = sum(1 for _ in all_texts(client))
    print(f"    {before} memories before, {after} after; the note says: {note.read_text()!r}")
    if after < before:
        raise SystemExit("a memory was lost")


def wait_for(true: object) -> None:
    assert callable(true)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise SystemExit("waited in vain")
        time.sleep(0.02)


@contextmanager
def a_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="thermocline-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def main() -> None:
    for name in [name for name in os.environ if name.startswith(("THERMOCLINE_", "XDG_"))]:
        del os.environ[name]
    began = time.monotonic()
    with a_folder() as folder:
        stage = Stage(folder)
        seconds = stage.start()
        stage.say(f"A memory began in {folder}; it was ready in {seconds:.2f} s.")
        print("While the demo runs, its commands work in another terminal, after this one:")
        print(f"  $ export THERMOCLINE_SOCKET={shlex.quote(str(stage.socket))}")
        try:
            remember(stage)
            look(stage)
            survive(stage)
            mend(stage)
            condense(stage)
            lose(stage)
        finally:
            stage.end(signal.SIGTERM)
        stage.say(f"Stopped cleanly. The whole story took {time.monotonic() - began:.0f} s.")


if __name__ == "__main__":
    main()
