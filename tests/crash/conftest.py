"""What the crash tests share: a load that knows what it was promised, and who holds it to that."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from device import pages, pairs
from small_disk import Disk

from thermocline.daemon.client import AnswerLost, ApiError, Client, DaemonUnreachable

THINGS_PER_WORKER = 120
WORDS = ["amber", "brook", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "kelp"]
Key = tuple[str, str]


class Worker(threading.Thread):
    """One client that stores, changes and deletes things of its own, and writes down each promise.

    A thing is a (kind, name) and has a text as its value, or None while it is not there. A call
    that was answered leaves one value possible; a call whose answer was lost, the value before
    and the value meant.

    Attributes:
        possible: the values that each thing may have now.
        lost_batches: the names in each batch whose answer was lost: all are there, or none.
        refused: what the daemon refused, with its code.
        counts: calls by kind and by what became of them.
    """

    def __init__(self, number: int, seed: int, socket: Path, agent: str | None) -> None:
        super().__init__(name=f"worker {number}", daemon=True)
        self._number = number
        self._random = random.Random(f"{seed}/{number}")
        self._client = Client(str(socket), agent=agent)
        self._ids: dict[str, str] = {}
        self._made = 0
        self.ending = threading.Event()
        self.possible: dict[Key, set[str | None]] = {}
        self.lost_batches: list[list[str]] = []
        self.refused: list[ApiError] = []
        self.counts: Counter[str] = Counter()

    def run(self) -> None:
        calls = [self.store, self.batch, self.update, self.delete, self.pair, self.drop_pair]
        calls += [self.project, self.identity]
        while not self.ending.is_set():
            full = len(self._ids) >= THINGS_PER_WORKER
            call = self.delete if full else self._random.choice(calls)
            self.counts["calls"] += 1
            call()
        self._client.close()

    def store(self) -> None:
        name, text = self._fresh()
        stored = self._call("store", {("memory", name): text}, lambda: self._store(name, text))
        if stored is not None:
            self._ids[name] = stored.id

    def _store(self, name: str, text: str) -> Any:
        importance = round(self._random.random(), 2)
        category = self._random.choice(WORDS)
        return self._client.store(text, subject=name, importance=importance, category=category)

    def batch(self) -> None:
        texts = dict(self._fresh() for _ in range(self._random.randint(2, 20)))
        memories = [{"text": text, "subject": name} for name, text in texts.items()]
        meant = {("memory", name): text for name, text in texts.items()}
        lost = self.counts["batch lost"]
        stored = self._call("batch", meant, lambda: self._client.batch(memories))
        self._ids.update((memory.subject, memory.id) for memory in stored or ())
        if self.counts["batch lost"] > lost:
            self.lost_batches.append([*texts])

    def update(self) -> None:
        if not self._ids:
            return
        name = self._random.choice([*self._ids])
        text = self._text(name)
        update = lambda: self._client.update(self._ids[name], text=text)  # noqa: E731
        self._call("update", {("memory", name): text}, update)

    def delete(self) -> None:
        if not self._ids:
            return
        name = self._random.choice([*self._ids])
        key = self._ids.pop(name)
        self._call("delete", {("memory", name): None}, lambda: self._client.forget(key))

    def pair(self) -> None:
        name = self._own(self._random.randrange(20))
        text = self._text(name)
        self._call("kv", {("kv", name): text}, lambda: self._client.kv_set(name, text))

    def drop_pair(self) -> None:
        present = [
            name for (kind, name), v in self.possible.items() if kind == "kv" and None not in v
        ]
        if present:
            name = self._random.choice(present)
            self._call("kv delete", {("kv", name): None}, lambda: self._client.kv_delete(name))

    def project(self) -> None:
        name, text = self._own(0), self._text("project")[:64]
        project = {"name": name, "status": text}
        self._call(
            "hot", {("project", name): text}, lambda: self._client.hot_update("project", project)
        )

    def identity(self) -> None:
        name, text = self._own(0), self._text("identity")
        self._call(
            "hot",
            {("identity", name): text},
            lambda: self._client.hot_update("identity", {name: text}),
        )

    def _own(self, number: int) -> str:
        return f"w{self._number}-{number}"

    def _fresh(self) -> tuple[str, str]:
        self._made += 1
        name = self._own(self._made)
        return name, self._text(name)

    def _text(self, name: str) -> str:
        words = " ".join(self._random.choices(WORDS, k=self._random.randint(3, 12)))
        return f"{name} {self.counts['calls']} {words}"

    def _call(self, kind: str, meant: dict[Key, str | None], call: Callable[[], Any]) -> Any:
        """Make the call, and note what the things may be after it."""
        try:
            answer = call()
        except AnswerLost:
            self.counts[f"{kind} lost"] += 1
            for key, value in meant.items():
                self.possible.setdefault(key, {None}).add(value)
        except DaemonUnreachable:
            self.ending.wait(0.01)
        except ApiError as error:
            self.counts["refused"] += 1
            if error.code != "shutting_down":
                self.refused.append(error)
                self.ending.wait(0.01)
        else:
            self.counts[kind] += 1
            self.possible.update((key, {value}) for key, value in meant.items())
            return answer
        return None


class Load:
    """Several workers at once, and the comparison of what they were promised with what is there."""

    def __init__(self, socket: Path, *, workers: int, seed: int, agent: str | None = None) -> None:
        self._socket = socket
        self._agent = agent
        self.workers = [Worker(number, seed, socket, agent) for number in range(workers)]

    def start(self) -> Load:
        """Begin."""
        for worker in self.workers:
            worker.start()
        return self

    def end(self) -> None:
        """Let each worker finish its call, and wait for them."""
        for worker in self.workers:
            worker.ending.set()
        for worker in self.workers:
            worker.join(60)
            assert not worker.is_alive(), f"{worker.name} hangs"

    def total(self) -> Counter[str]:
        """The calls of all workers."""
        return sum((worker.counts for worker in self.workers), Counter())

    def refused(self) -> Counter[str]:
        """How often the daemon refused a call, by what it said."""
        return Counter(
            f"{error.code}: {error}" for worker in self.workers for error in worker.refused
        )

    def faults(self) -> list[str]:
        """Where the memory is not what was promised: a line for each, none when all is kept."""
        found = self.found()
        possible = {key: v for worker in self.workers for key, v in worker.possible.items()}
        faults = []
        for key in sorted(possible.keys() | found.keys()):
            values = found.get(key, [None])
            if len(values) > 1:
                faults.append(f"{key} is there {len(values)} times")
            elif values[0] not in possible.get(key, {None}):
                faults.append(f"{key} is {values[0]!r}, not one of {possible.get(key)}")
        for worker in self.workers:
            for names in worker.lost_batches:
                there = sum(("memory", name) in found for name in names)
                if there not in {0, len(names)}:
                    faults.append(f"{there} of a batch of {len(names)} are there")
        return faults

    def expected(self) -> int:
        """How many things must be there."""
        return sum(
            None not in values for worker in self.workers for values in worker.possible.values()
        )

    def found(self) -> dict[Key, list[str]]:
        """Every thing that the daemon has, with all its values."""
        found: dict[Key, list[str]] = {}
        with Client(str(self._socket), agent=self._agent) as client:
            for memory in pages(client, order="oldest"):
                found.setdefault(("memory", memory["subject"]), []).append(memory["text"])
            found.update({("kv", key): [value] for key, value in pairs(client).items()})
            state = client.hot().state
        projects = state["active_context"]["projects"]
        found.update({("project", p["name"]): [p["status"]] for p in projects})
        found.update({("identity", name): [text] for name, text in state["identity"].items()})
        return found


@pytest.fixture
def make_load() -> Iterator[Callable[..., Load]]:
    """`make_load(socket, workers=…, seed=…, agent=…)`; what still runs after the test is ended."""
    made: list[Load] = []

    def make(socket: Path, *, workers: int, seed: int, agent: str | None = None) -> Load:
        made.append(Load(socket, workers=workers, seed=seed, agent=agent))
        return made[-1]

    yield make
    for load in made:
        for worker in load.workers:
            worker.ending.set()


HOLD = 'mount -t tmpfs -o "size=$2" tmpfs "$1" && echo mounted && exec cat'


@pytest.fixture
def small_disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    """A disk of 8 MB, or of the size given: mounted by root, or else in a namespace of its own."""
    size = f"{getattr(request, 'param', 8)}m"
    # Not in pytest's folder: that cannot be removed while something is mounted in it, and what a
    # run that was killed has mounted would fail those after it.
    path = Path(tempfile.mkdtemp(prefix="disk"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if os.getuid() == 0 and subprocess.run(mount, check=False).returncode == 0:
        yield Disk(path, None)
        subprocess.run(["umount", "--lazy", str(path)], check=True)
        path.rmdir()
        return
    command = ["unshare", "-rm", "sh", "-c", HOLD, "sh", str(path), size]
    pipe = subprocess.PIPE
    try:
        holder = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    except FileNotFoundError:
        pytest.skip("no disk can be mounted here: unshare is missing")
    with holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != b"mounted\n":
            _, said = holder.communicate()
            pytest.skip(f"no disk can be mounted here: {said.decode().strip()}")
        yield Disk(path, holder)
    path.rmdir()
