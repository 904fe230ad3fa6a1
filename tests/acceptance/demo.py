"""The daemon's story in a temporary folder: run it with `make demo`."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "fixtures"))

from daemon_process import Daemon, wait_until

from thermocline.daemon.client import Client, ClientError


class Stage(Daemon):
    """One daemon in a temporary folder, and a narrator."""

    def __init__(self, folder: Path) -> None:
        # Here a file; in earnest a database at Turso.
        self.replica = f"file:{folder / 'replica.db'}"
        super().__init__(folder, "--set", f"sync.url={self.replica}")
        self.agent = self.folder()

    def say(self, text: str) -> None:
        print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)

    def show(self, *words: str) -> None:
        """Run a command as a person would, and show both sides."""
        print(f"  $ thermocline {shlex.join(words)}")
        command = [sys.executable, *self.program, "--socket", str(self.socket), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for line in (done.stdout + done.stderr).splitlines():
            print(f"    {line}")


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
    wait_until(
        lambda: "Ask before paying" in (stage.agent / "MEMORY.md").read_text(),
        "the page shows the lesson",
    )
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
    stage.kill()
    for writer in writers:
        writer.join()
    began = time.monotonic()
    stage.start()
    seconds = time.monotonic() - began
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
    wait_until(
        lambda: path.exists() and "Ask before paying" in path.read_text(),
        "the file shows the lesson",
    )
    document = json.loads(path.read_text())
    document["critical_lessons"][0]["text"] = "Ask before paying more than 20 euros"
    path.write_text(json.dumps(document))
    wait_until(
        lambda: bool([*stage.agent.glob("hot-memory-state.json.changed-*")]) and path.exists(),
        "the file is written again",
    )
    stage.show("status")
    stage.say("Zeros in the middle of the database are found, it is set aside and rebuilt.")
    stage.stop()
    stage.start()
    stage.show("store", "The power went at noon", "--category", "home")
    with stage.client() as client:
        before = sum(1 for _ in all_texts(client))
        client.sync()
    # After an end like this the whole database is read.
    stage.kill()
    database = stage.agent / "memory.db"
    with database.open("r+b") as file:
        file.seek(database.stat().st_size // 8192 * 4096)
        file.write(bytes(16384))
    stage.start()
    with stage.client() as client:
        # What cannot be read any more comes back from the replica.
        wait_until(lambda: sum(1 for _ in all_texts(client)) >= before, "all memories are back")
        wait_until(
            lambda: "database_rebuilt" in {p.code for p in client.status().problems},
            "the daemon tells of it",
        )
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
    stage.kill()
    shutil.rmtree(stage.state)
    stage.show("restore", "--url", stage.replica, "--to", str(stage.state))
    stage.start()
    stage.show("retrieve", "when does Maya arrive on a flight?")
    wait_until(note.exists, "the note is back")
    with stage.client() as client:
        after = sum(1 for _ in all_texts(client))
    print(f"    {before} memories before, {after} after; the note says: {note.read_text()!r}")
    if after < before:
        raise SystemExit("a memory was lost")


def main() -> None:
    for name in [name for name in os.environ if name.startswith(("THERMOCLINE_", "XDG_"))]:
        del os.environ[name]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="thermocline-demo-") as folder:
        stage = Stage(Path(folder))
        stage.start()
        stage.say(f"A memory began in {folder}; it was ready in {time.monotonic() - began:.2f} s.")
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
            stage.stop()
        stage.say(f"Stopped cleanly. The whole story took {time.monotonic() - began:.0f} s.")


if __name__ == "__main__":
    main()
