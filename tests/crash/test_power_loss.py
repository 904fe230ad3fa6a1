"""Power loss: of what was asked of the disk, only what was synced is certain to be there.

The calls of a real daemon under load are recorded. At moments of the recording the power fails, and
what `recorded_disk.Disk` then chooses to have kept is given to a new daemon.
"""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest
import recorded_disk
from agent_files import broken_files
from daemon_process import wait_until
from device import Device, ending
from recorded_disk import Disk
from workers import things

from thermocline.daemon.client import ApiError, Client

LOSSES = int(os.environ.get("THERMOCLINE_LOSSES", "1000"))
SEED = int(os.environ.get("THERMOCLINE_SEED", "28"))
FEW_AND_MANY = [4, pytest.param(LOSSES, marks=pytest.mark.crash)]
AGENTS = ("default", "second", "third")
STEPS = 150
FEW_STEPS = 25
# The database's log is put into the database before it is closed, too.
LARGE = {"text": "x" * 50_000}
WORDS = ["amber", "brook", "cedar", "delta", "ember", "fjord", "grove", "heron"]

Things = dict[tuple[str, str, str], str]
Changes = dict[tuple[str, str, str], str | None]
# What a call changes, and the call.
Planned = tuple[Changes, Callable[[], object]]


class Told(NamedTuple):
    """A call: what it was to change (None: to delete), and whether it was acknowledged."""

    agent: str
    changes: Changes
    done: bool


class Story:
    """Calls one after another, and what each was to change.

    Attributes:
        told: the calls, by the run of the daemon.
        refused: the answers to the calls that were refused.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._ids: dict[tuple[str, str], str] = {}
        self._made = 0
        self._now: Things = {}
        self.told: list[list[Told]] = []
        self.refused: list[ApiError] = []

    def make_calls(self, device: Device, steps: int) -> None:
        clients = {agent: device.client(agent) for agent in AGENTS}
        self.told.append([])
        with pytest.raises(ApiError, match="not DELETE"):
            clients["default"].request("DELETE", "/api/status")
        for number in range(steps):
            # Agents begin one after another: each has a folder that is new.
            agent = self._chance.choice([*AGENTS[: 1 + number // 10], *AGENTS[:1] * 3])
            calls = [self._store, self._batch, self._pair, self._identity, self._change, self._drop]
            changes, call = self._chance.choice(calls)(clients[agent], agent)
            told = Told(agent, changes, done=True)
            try:
                call()
            except ApiError as error:
                self.refused.append(error)
                told = told._replace(done=False)
            else:
                _apply(changes, self._now)
            self.told[-1].append(told)
        for client in clients.values():
            client.close()

    def until(self, run: int, answered: int) -> list[Told]:
        """What stands, or may, when so many calls of a run were answered: one was on its way.

        What was refused, because it could not be synced, is in the log until the next commit.
        """
        on_its_way = [told._replace(done=False) for told in self.told[run][answered:][:1]]
        standing: list[Told] = []
        for calls in (*self.told[:run], self.told[run][:answered] + on_its_way):
            last = {told.agent: n for n, told in enumerate(calls) if told.done}
            standing += [
                told for n, told in enumerate(calls) if told.done or n > last.get(told.agent, -1)
            ]
        return standing

    def _text(self) -> tuple[str, str]:
        self._made += 1
        return f"n{self._made}", f"n{self._made} {' '.join(self._chance.choices(WORDS, k=6))}"

    def _store(self, client: Client, agent: str) -> Planned:
        name, text = self._text()

        def call() -> None:
            self._ids[agent, name] = client.store(text, subject=name, importance=0.9).id

        return {(agent, "memory", name): text}, call

    def _batch(self, client: Client, agent: str) -> Planned:
        made = dict(self._text() for _ in range(self._chance.randint(2, 30)))
        given: list[dict[str, Any]] = [{"text": v, "subject": k} for k, v in made.items()]
        given[0]["data"] = LARGE

        def call() -> None:
            for name, stored in zip(made, client.batch(given), strict=True):
                self._ids[agent, name] = stored.id

        return {(agent, "memory", name): text for name, text in made.items()}, call

    def _pair(self, client: Client, agent: str) -> Planned:
        name, text = f"key{self._chance.randrange(5)}", self._text()[1]
        return {(agent, "kv", name): text}, lambda: client.kv_set(name, text)

    def _identity(self, client: Client, agent: str) -> Planned:
        identity = {"agent_name": self._text()[1]}
        changes: Changes = {(agent, "identity", name): text for name, text in identity.items()}
        return changes, lambda: client.hot_update("identity", identity)

    def _change(self, client: Client, agent: str) -> Planned:
        if (name := self._some(agent)) is None:
            return self._store(client, agent)
        text, key = f"{name} changed {self._text()[1]}", self._ids[agent, name]
        return {(agent, "memory", name): text}, lambda: client.update(key, text=text)

    def _drop(self, client: Client, agent: str) -> Planned:
        if (name := self._some(agent)) is None:
            return self._store(client, agent)
        key = self._ids[agent, name]
        return {(agent, "memory", name): None}, lambda: client.forget(key)

    def _some(self, agent: str) -> str | None:
        names = [name for of, kind, name in self._now if (of, kind) == (agent, "memory")]
        return self._chance.choice(names) if names else None


class Recorded:
    """A story, and the calls of the daemons that it was told to, one after the other.

    Args:
        folder: where; what is below `disk` in it is recorded.
        fault: one that is built into the daemon.
        errors: errors that the disk has, as `recorded_disk.recording` takes them.
        runs: how many daemons, each of which is told a part.

    Attributes:
        calls: those of all, with the run that made each.
        errors: how many of them failed because they were made to.
    """

    def __init__(self, folder: Path, fault: str = "", errors: str = "", runs: int = 2) -> None:
        self.root = folder / "disk"
        self.root.mkdir(parents=True)
        self.traces = [folder / f"trace{run}" for run in range(runs)]
        self.story = Story(SEED)
        device = Device(folder / "device")
        device.state = self.root / "state"
        device.broken(fault)
        with ending(device):
            for trace in self.traces:
                device.start(prefix=recorded_disk.recording(trace, errors))
                self.story.make_calls(device, STEPS if runs > 1 else FEW_STEPS)
                device.files_written()
                assert device.stop() == 0
                assert device.process is not None
                number = device.process.pid
                wait_until(lambda: recorded_disk.is_whole(trace, number), "all is recorded")  # noqa: B023
            self.errors = sum(one.read_bytes().count(b"(INJECTED)") for one in self.traces)
        shutil.rmtree(self.root)
        self.calls = [
            (run, call)
            for run, trace in enumerate(self.traces)
            for call in recorded_disk.recorded(trace, self.root)
        ]

    def power_losses(self, number: int, folder: Path, chance: random.Random) -> dict[str, int]:
        """Lose power so many times, at any moment.

        Returns:
            What was found after them: how many lost something that was acknowledged, had a state
            file that was not whole, or did not start; and how many bytes were forgotten by syncs
            that failed.
        """
        moments = sorted(chance.choices(range(len(self.calls)), k=number))
        return self._lose(moments, folder, chance)

    def worst_losses(self, answers: slice, folder: Path) -> dict[str, int]:
        """Likewise at these answers of a story, when the disk has nothing that was not synced."""
        sent = [n for n, (_, call) in enumerate(self.calls) if call.name == "answer"]
        begun = [n for n in sent if self.calls[n][1].data.endswith(recorded_disk.BEGINNING)]
        first = sent.index(begun[0]) + 1
        of_story = sent[first : first + len(self.story.told[-1])]
        return self._lose(of_story[answers], folder, None)

    def _lose(
        self, moments: list[int], folder: Path, chance: random.Random | None
    ) -> dict[str, int]:
        disk = Disk(self.root)
        before = 0
        with Judge(folder / "judge") as judge:
            for position, (run, call) in enumerate(self.calls):
                if run != before:
                    before, disk.answers = run, None
                disk.take(call)
                while moments and moments[0] == position:
                    del moments[0]
                    left = folder / "left"
                    disk.after_power_loss(left, chance)
                    judge(left / "state", self.story.until(run, disk.answers or 0))
                    shutil.rmtree(left)
        return judge.found | {"forgotten": disk.losing}


class Judge:
    """Looks at what a power loss has left, and counts what is not as it should be.

    Every tenth is given to a daemon that is started with it; of the others the agents' folders are
    given to one that runs, which opens them as if it had been started.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._device = Device(folder)
        self.found = {"losses": 0, "lost": 0, "files": 0, "starts": 0}

    def __enter__(self) -> Self:
        self._device.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._device.kill()

    def __call__(self, state: Path, standing: list[Told]) -> None:
        number = self.found["losses"]
        self.found["losses"] += 1
        self.found["files"] += bool(state.exists() and broken_files(state))
        try:
            there = self._moved_in(state, number) if number % 10 else self._started(state)
        except (AssertionError, ApiError) as error:
            print(f"loss {number}: {error}")
            self.found["starts"] += 1
            return
        if there != _expected(standing, there):
            print(f"loss {number}: not as promised")
            self.found["lost"] += 1

    def _started(self, state: Path) -> Things:
        device = Device(self._folder / "own")
        device.state = state
        with ending(device):
            device.start()
            return _seen(device, {agent: agent for agent in AGENTS})

    def _moved_in(self, state: Path, number: int) -> Things:
        names = {agent: f"{agent}{number}" for agent in AGENTS}
        for agent, name in names.items():
            if (state / "agents" / agent).exists():
                shutil.move(state / "agents" / agent, self._device.folder(name))
        try:
            return _seen(self._device, names)
        finally:
            for name in names.values():
                shutil.rmtree(self._device.folder(name), ignore_errors=True)


def _apply(changes: Changes, to: Things) -> None:
    for key, value in changes.items():
        if value is None:
            to.pop(key, None)
        else:
            to[key] = value


def _expected(told: list[Told], there: Things) -> Things:
    """What must be there after these calls, of which those that were not acknowledged may stand."""
    now: Things = {}
    for call in told:
        if call.done or all(there.get(key) == value for key, value in call.changes.items()):
            _apply(call.changes, now)
    return now


def _seen(device: Device, names: dict[str, str]) -> Things:
    """What a daemon shows of agents; it knows them by the second name."""
    there: Things = {}
    for agent, name in names.items():
        with device.client(name) as client:
            for (kind, key), values in things(client).items():
                there[agent, kind, key] = " and ".join(values)
    return there


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Recorded]:
    """`record(fault=…, errors=…, steps=…)` tells the story to a daemon whose calls are recorded."""
    if not recorded_disk.is_there():
        pytest.skip(recorded_disk.WHY_NOT)
    return lambda **how: Recorded(tmp_path / "recorded", **how)


@pytest.mark.parametrize("losses", FEW_AND_MANY)
@pytest.mark.timeout(7200)
def test_what_was_acknowledged_survives_power_loss_at_any_moment(losses, record, tmp_path, figure):
    recorded = record(runs=1 if losses < LOSSES else 2)
    assert recorded.story.refused == []
    found = recorded.power_losses(losses, tmp_path, random.Random(SEED))
    figure("power losses", found["losses"])
    figure("power losses: acknowledged and lost", found["lost"])
    figure("power losses: state files not whole", found["files"])
    figure("power losses: daemon did not start", found["starts"])
    assert found == {"losses": losses, "lost": 0, "files": 0, "starts": 0, "forgotten": 0}


# After an `fsync` that failed, which only folders have, nothing is acknowledged: see
# `test_system_calls`.
@pytest.mark.parametrize(("call", "when"), [("fdatasync", "5+7"), ("syncfs", "2+3")])
@pytest.mark.parametrize("losses", [pytest.param(LOSSES // 5, marks=pytest.mark.crash)])
@pytest.mark.timeout(7200)
def test_what_was_acknowledged_survives_power_loss_after_syncs_that_failed(
    call, when, losses, record, tmp_path, figure
):
    """What a sync could not write the kernel takes for written: a later one says nothing of it."""
    recorded = record(errors=f"{call}:error=EIO:when={when}")
    found = recorded.power_losses(losses, tmp_path, random.Random(SEED))
    forgotten = found.pop("forgotten")
    figure(f"power losses after {call} failed", found["losses"])
    figure(f"power losses after {call} failed: acknowledged and lost", found["lost"])
    assert found == {"losses": losses, "lost": 0, "files": 0, "starts": 0}
    assert recorded.errors
    # The other one syncs names and files that are not yet there.
    assert forgotten or call != "fdatasync", "the kernel has forgotten something"


# The state files' digests are written without waiting for the disk.
WRITES = """
import asyncio, os, sqlite3, sys
from contextlib import closing
from pathlib import Path
from thermocline.daemon.config.settings import Rules
from thermocline.daemon.store.database import meta
from thermocline.daemon.store.agent_paths import FailedSyncs
from thermocline.daemon.store.database.memory_database import connect_writer, migrate
from thermocline.daemon.store.database.schema import MIGRATIONS
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.writer import Writer
from thermocline.sync import HybridClock

failed_syncs = FailedSyncs()

def opened(path):
    db = connect_writer(path)
    if len(sys.argv) > 3:
        # A sync of the file system fails while this statement runs.
        db.set_trace_callback(lambda sql: sys.argv[3] in sql and failed_syncs.note())
    clock, rules = HybridClock(lambda: 1.0), Rules()
    return Writer(
        path, db, enforce_limits=lambda tx: None, committed=lambda committed: None,
        begin=lambda db, cache: Transaction(
            db, now=1.0, device="d", rules=rules, clock=clock, cache=cache),
        loop=asyncio.get_running_loop(), failed_syncs=failed_syncs)

def make(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA journal_mode = WAL")
        migrate(db, path, MIGRATIONS)
    # Not by fdatasync, which is to fail for the writer alone.
    os.fsync(os.open(path, os.O_RDONLY))

async def main(path):
    make(path)
    writer = opened(path)
    for name in sys.argv[2]:
        if name == "t":
            await writer.truncate_log()
            continue
        if name == "r":
            await writer.close()
            writer = opened(path)
            continue
        # A name in upper case waits for the disk; M takes pages of its own, L moves the log.
        value = "x" * {"L": 10_000_000, "M": 100_000}.get(name, 1)
        try:
            await writer.submit(lambda tx: meta.write(tx, name, value), durable=name.isupper())
        except Exception:
            continue
        os.fsync(os.open(path.parent, os.O_RDONLY))
        if name.isupper():
            print(name, flush=True)
    os._exit(0)

asyncio.run(main(Path(sys.argv[1])))
"""


def _write(folder: Path, *words: str, errors: str = "") -> tuple[str, list[recorded_disk.Call]]:
    """What `WRITES` prints in a new folder, and its recorded calls."""
    if not recorded_disk.is_there():
        pytest.skip(recorded_disk.WHY_NOT)
    trace = folder.with_suffix(".trace")
    folder.mkdir()
    command = (*recorded_disk.recording(trace, errors), sys.executable, "-c", WRITES)
    words = (*command, str(folder / "memory.db"), *words)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        acknowledged = "".join(process.communicate()[0].split())
    wait_until(lambda: recorded_disk.is_whole(trace, process.pid), "all is recorded")
    return acknowledged, [*recorded_disk.recorded(trace, folder)]


def _left(folder: Path, calls: list[recorded_disk.Call]) -> set[str]:
    """The names that are in the database after the power failed."""
    disk = Disk(folder)
    for call in calls:
        disk.take(call)
    disk.after_power_loss(left := folder.with_suffix(".left"), None)
    with closing(sqlite3.connect(left / "memory.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {name for (name,) in db.execute("SELECT key FROM meta")}


@pytest.mark.parametrize("steps", ["AbCD", "AbtD", "AbrD"], ids=["commit", "emptying", "closing"])
def test_a_commit_after_a_sync_that_failed_holds_though_one_before_it_was_not_synced(
    steps, tmp_path
):
    acknowledged, made = _write(tmp_path / "begun", "A")
    assert acknowledged == "A"
    # strace counts the calls of each thread.
    threads = [call.process for call in made if call.name == "fdatasync" and call.number == 0]
    after = threads.count(threads[-1]) + 1
    errors = f"fdatasync:error=EIO:when={after}"
    acknowledged, made = _write(tmp_path / "failing", steps, errors=errors)
    assert acknowledged == "AD"
    assert {"A", "D"} <= _left(tmp_path / "failing", made)


@pytest.mark.parametrize(
    ("steps", "during"),
    [("MLD", "COMMIT"), ("MtD", "PASSIVE"), ("MrD", "PASSIVE")],
    ids=["commit", "emptying", "closing"],
)
def test_what_moves_from_the_log_while_a_sync_of_the_file_system_fails_is_not_lost(
    steps, during, tmp_path
):
    acknowledged, made = _write(tmp_path / "moving", steps, during)
    assert acknowledged == steps.replace("t", "").replace("r", "")
    database = str(tmp_path / "moving" / "memory.db")
    written = [at for at, call in enumerate(made) if call[1:3] == ("pwrite64", database)]
    moved = [at for at, call in enumerate(made) if call[1:3] == ("fdatasync", database)]
    first = next(at for at in moved if at > written[0])
    failing = [
        recorded_disk.Call("other", "syncfs", str(tmp_path / "moving"), number=number)
        for number in (None, -1)
    ]
    made[first:first] = failing
    assert {*acknowledged} <= _left(tmp_path / "moving", made)


def test_the_judge_of_power_losses_notices_a_daemon_that_does_not_wait_for_the_disk(
    record, tmp_path
):
    assert record(fault="unsynced", runs=1).worst_losses(slice(-3, None), tmp_path)["lost"]


@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_the_judge_of_power_losses_notices_names_that_are_not_synced(record, tmp_path):
    # Until state files are written, which syncs everything: at the first answers about an agent.
    assert record(fault="unnamed", runs=1).worst_losses(slice(None), tmp_path)["lost"]


@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_the_judge_of_power_losses_notices_state_files_that_are_not_synced(record, tmp_path):
    recorded = record(fault="unwritten")
    assert recorded.power_losses(100, tmp_path, random.Random(SEED))["files"]
