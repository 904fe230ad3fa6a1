"""Each call on the way to the disk in turn: the process is killed at it, or it fails."""

import contextlib
import itertools
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import injecting
import pytest
from agent_files import broken_files
from daemon_process import wait_until
from device import AGENT, Device, ending
from injecting import WRITING, Injected
from workers import Worker, things

from thermocline.daemon.client import ApiError

POINTS = int(os.environ.get("THERMOCLINE_POINTS", "600"))
ERRORS = int(os.environ.get("THERMOCLINE_ERRORS", "400"))
SEED = int(os.environ.get("THERMOCLINE_SEED", "29"))
WATCHFUL = ("store.state_file_check_seconds=0.1", "store.state_file_delay_seconds=0.05")
PAGE = 2048
ALL = ",".join(WRITING)
RENAME = "rename,renameat,renameat2"

Points = list[tuple[str, int]]
FEW_KILLS: Points = [("pwrite64", 9), ("fdatasync", 2), (RENAME, 2)]
FEW_KILLS_OF_A_REBUILD: Points = [(RENAME, 2)]
FEW_ERRORS = [
    *(("pwrite64", "ENOSPC", "20+"), ("fdatasync", "EIO", "2"), ("mkdir", "ENOSPC", "1+")),
]
IDS = ["few", "all"]
STATE_FILES = ("hot-memory-state.json", "warm-memory.json", "MEMORY.md", "metrics.json")
# While another thread of a start looks into the database, the log is not put into it, and a start
# makes a tenth of the calls: a kill that was not met is tried at so many.
STARTS = 5
# A state file that could not be written is tried again after five seconds.
WELL_SECONDS = 120.0

pytestmark = pytest.mark.skipif(not injecting.is_there(), reason=injecting.WHY_NOT)


class Promises:
    """A client that stores, changes and deletes, for all lives of a daemon; and newcomers."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._worker = Worker(0, SEED, device.socket, AGENT)
        self._made = 0
        self.faults: list[str] = []

    def work(self) -> None:
        """Do one of each; then let an agent that is new store something."""
        worker, self._made = self._worker, self._made + 1
        full = worker.counts["store"] > worker.counts["delete"] + 60
        for call in (worker.store, worker.pair, worker.update, worker.identity, worker.delete):
            call()
        worker.delete() if full else worker.batch()
        newcomer = Worker(1, SEED, self._device.socket, f"new{self._made}")
        newcomer.store()
        newcomer.close()
        self._newcomer = newcomer

    @property
    def newcomer(self) -> str:
        """The agent that is new when work is done next."""
        return f"new{self._made + 1}"

    def close(self) -> None:
        """Leave the daemon."""
        self._worker.close()

    def judge(self) -> None:
        """Note where what is there is not what was promised."""
        for worker, agent in ((self._worker, AGENT), (self._newcomer, f"new{self._made}")):
            with self._device.client(agent) as client:
                found = things(client)
            for key in worker.possible.keys() | found.keys():
                values = found.get(key, [None])
                possible = worker.possible.get(key, {None})
                if len(values) > 1 or values[0] not in possible:
                    self.faults.append(f"{agent} {key} is {values}, not one of {possible}")
            for names in worker.lost_batches:
                there = sum(("memory", name) in found for name in names)
                if there not in {0, len(names)}:
                    self.faults.append(f"{there} of a batch of {len(names)} are there")
            worker.lost_batches.clear()
            # What was doubtful is now known: a later look must find the same.
            worker.possible.update((key, {found.get(key, [None])[0]}) for key in worker.possible)
        with self._device.client() as client, contextlib.suppress(ApiError):
            # If it came to be: each start would look after all that there ever were.
            client.forget_agent(f"new{self._made}")
            self._newcomer.possible.clear()

    def refused(self) -> list[ApiError]:
        """What the daemon has refused since this was asked last."""
        found = [*self._worker.refused, *self._newcomer.refused]
        self._worker.refused.clear()
        self._newcomer.refused.clear()
        return found

    @property
    def acknowledged(self) -> int:
        """How many calls were answered as done."""
        kinds = ("store", "batch", "update", "delete", "kv", "hot")
        return sum(self._worker.counts[kind] for kind in kinds)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    """A device that looks after its files often; not started."""
    device = Device(tmp_path / "device", *WATCHFUL)
    with ending(device):
        yield device


@pytest.fixture
def promises(device: Device) -> Iterator[Promises]:
    """What that device is made to promise."""
    made = Promises(device)
    yield made
    made.close()


def spread(counts: Counter[str], most: int) -> Points:
    """So many (calls, number), each call as often as the others if it is made so often.

    If there are fewer, all of them again, since no two lives are the same.
    """
    points: Points = []
    left = sorted(counts.items(), key=lambda one: one[1])
    while left:
        call, made = left.pop(0)
        number = min(made, (most - len(points)) // (len(left) + 1))
        points += [(call, 1 + n * made // number) for n in range(number)]
    return [*itertools.islice(itertools.cycle(points), most)]


def live(device: Device, promises: Promises, injected: Injected) -> bool:
    """Work and end in good order, or die at any call of that; then start again and judge."""
    assert device.process is not None
    with injected.attach(device.process.pid):
        promises.work()
        if device.running:
            device.stop()
        code = device.process.wait(60)
    assert broken_files(device.state) == []
    device.start()
    promises.judge()
    return code == -signal.SIGKILL


@pytest.mark.parametrize("given", [FEW_KILLS, pytest.param(None, marks=pytest.mark.crash)], ids=IDS)
@pytest.mark.timeout(7200)
def test_nothing_is_lost_by_a_kill_at_any_call_that_writes(
    given, device, promises, tmp_path, figure
):
    device.start()
    live(device, promises, counting := Injected(tmp_path / "trace", ALL))
    hit: Counter[str] = Counter()
    points = given or spread(counting.counts(), POINTS)
    for call, number in points:
        injected = Injected(tmp_path / "trace", call, f"signal=KILL:when={number}")
        if live(device, promises, injected):
            hit[injected.hit[-1] if injected.hit else call] += 1
        if not hit.total() % 50:
            print(f"{hit.total()} kills, {len(promises.faults)} faults", flush=True)
    figure("crash points that fired", hit.total())
    figure("crash points: different calls and files", len(hit))
    figure("crash points: acknowledged calls", promises.acknowledged)
    figure("crash points: acknowledged and lost", len(promises.faults))
    print(f"\n{dict(hit.most_common())}")
    assert promises.faults == []
    assert hit.total() >= len(points) * 0.8


def test_the_sweep_of_kills_notices_a_daemon_without_transactions(device, promises, tmp_path):
    device.broken("untransacted").start()
    for number in range(60, 1000, 60):
        what = f"signal=KILL:when={number}"
        live(device, promises, Injected(tmp_path / "trace", "pwrite64", what))
        if promises.faults:
            return
    pytest.fail("nothing was noticed")


# At the start, and while a damaged database is rebuilt


@pytest.mark.parametrize(
    ("damaged", "given"),
    [
        pytest.param(True, FEW_KILLS_OF_A_REBUILD, id="rebuild-few"),
        pytest.param(True, None, marks=pytest.mark.crash, id="rebuild-all"),
        pytest.param(False, None, marks=pytest.mark.crash, id="start-all"),
    ],
)
@pytest.mark.timeout(7200)
def test_nothing_is_lost_by_a_kill_at_any_call_of_the_start(
    damaged, given, device, tmp_path, figure
):
    """With a database of which a page is gone: of the full-text index, so that nothing is lost."""
    device.start()
    texts = {f"fact {n} tells of herons" for n in range(30)}
    device.memory.batch([{"text": text} for text in texts])
    device.files_written()
    if damaged:
        assert device.stop() == 0
        with (device.folder() / "memory.db").open("r+b") as file:
            # The head of the file: not a page of it can be read without the others' help.
            file.seek(0)
            file.write(b"SQLite format 3\0" + bytes(84))
    else:
        # The log is left to be put into the database.
        device.kill()
    before = tmp_path / "before"
    shutil.copytree(device.state, before)
    paths = [
        *(device.state, device.state / "device.json", device.state / "agents", device.folder()),
        *(device.folder() / f"memory.db{end}" for end in ("", "-wal", ".building", ".rebuilt")),
        *(device.folder() / f"memory.db.building{end}" for end in ("-wal", "-journal")),
    ]
    counting = Injected(tmp_path / "trace", ALL, paths=paths)
    wait_until(
        lambda: begin(device, before, counting).counts()["pwrite64"] > 0,
        "a start puts the log into the database",
    )
    made = counting.counts()
    points = given or spread(made, min(120, made.total()))
    fired, faults = 0, []
    for call, number in points:
        what = f"signal=KILL:when={number}"
        injected = Injected(tmp_path / "trace", call, what, paths=paths)
        for _ in range(STARTS):
            if hit := begin(device, before, injected).read():
                break
        fired += bool(hit)
        found = device.start().texts()
        if found != texts:
            faults.append(f"{call} {number}: {len(found)} of {len(texts)}")
        device.kill()
        assert broken_files(device.state / "agents" / AGENT) == []
    what = "of a rebuild" if damaged else "of a start"
    figure(f"crash points {what} that fired", fired)
    figure(f"crash points {what}: lost something", len(faults))
    assert faults == []
    assert fired >= len(points) * 0.8


def begin(device: Device, state: Path, injected: Injected) -> Injected:
    """Start with a copy of a state folder; it ends at a call, or is killed once it is ready."""
    shutil.rmtree(device.state)
    shutil.copytree(state, device.state)
    device.start(prefix=injected.prefix(), wait=False)
    process = device.process
    assert process is not None
    wait_until(lambda: process.poll() is not None or answers(device), "it ends or is ready")
    device.kill()
    return injected


def answers(device: Device) -> bool:
    """Whether it is ready, or has ended before it could be asked."""
    try:
        return device.ready()
    except AssertionError:
        return True


# Errors


class Trouble:
    """A daemon that meets errors of the disk, one after another, and is not started again."""

    def __init__(self, device: Device, promises: Promises, trace: Path) -> None:
        self.device = device
        self._trace = trace
        self.promises = promises
        self.hit: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    @property
    def paths(self) -> list[Path]:
        """What the disk has of the agent, and of the one that is new next."""
        newcomer = self.device.folder(self.promises.newcomer)
        names = ("memory.db", "memory.db-wal", "memory.db-shm", "index.db", "index.db-wal")
        folders = (self.device.folder(), newcomer)
        files = [folder / name for folder in folders for name in names]
        state = [folder / name for folder in folders for name in STATE_FILES]
        return [self.device.state / "agents", *folders, *files, *state]

    def meet(self, call: str, error: str, when: str) -> None:
        """Work while the calls fail, then see that all is as it was promised and works again."""
        device = self.device
        assert device.process is not None
        what = f"error={error}:when={when}"
        with Injected(self._trace, call, what, paths=self.paths) as injected:
            injected.attach(device.process.pid)
            self.promises.work()
        self.hit.update(injected.hit)
        self.refused.update(f"{one.status} {one.code}" for one in self.promises.refused())

        def well() -> bool:
            with device.client() as client:
                return not client.health().problems

        wait_until(well, f"it is well again after {error} at {call} {when}", WELL_SECONDS)
        device.files_written()
        self.promises.judge()


@pytest.mark.parametrize(
    "given", [FEW_ERRORS, pytest.param(None, marks=pytest.mark.crash)], ids=IDS
)
@pytest.mark.timeout(7200)
def test_an_error_at_any_call_that_writes_is_told_and_over_when_the_disk_is_well(
    given, device, promises, tmp_path, figure
):
    trouble = Trouble(device.start(), promises, tmp_path / "trace")
    assert device.process is not None
    counting = Injected(tmp_path / "trace", ALL, paths=trouble.paths)
    with counting.attach(device.process.pid):
        trouble.promises.work()
        device.files_written()
    points = given or [
        (call, error, f"{number}{more}")
        for call, number in spread(counting.counts(), ERRORS // 4)
        for error in ("EIO", "ENOSPC")
        for more in ("", "+")
    ]
    for call, error, when in points:
        trouble.meet(call, error, when)
    device.kill()
    device.start()
    trouble.promises.judge()
    figure("errors of the disk that were met", trouble.hit.total())
    figure("errors: different calls and files", len(trouble.hit))
    figure("errors: calls refused, by answer", dict(trouble.refused))
    figure("errors: acknowledged and lost, or refused and there", len(trouble.promises.faults))
    assert trouble.promises.faults == []
    assert trouble.hit.total() >= len(points) * 0.8
    assert trouble.refused.keys() <= {"507 disk_full", "503 read_only"}
    assert "Traceback" not in device.log.read_text()


def test_the_sweep_of_errors_notices_a_daemon_that_lies(device, promises, tmp_path):
    trouble = Trouble(device.broken("lying").start(), promises, tmp_path / "trace")
    trouble.meet("pwrite64", "ENOSPC", "3+")
    assert trouble.promises.faults
