"""Devices whose notes are written, changed and deleted at random: in the end all show the same.

Every line that somebody wrote, and did not take out again, is on every disk then, in the note that
it was written into or in a copy beside it, unless that note was deleted somewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest
from desks import Desk, meet
from devices import Clock, Device
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from thermocline.daemon.store.transaction import Rules
from thermocline.sync import FileRemote, SyncError
from thermocline.sync.faulty import Fault, FaultyRemote

START = 1_700_000_000.0
NAMES = ("2026-03-01.md", "notes.txt", "episodes.jsonl")

whom = st.integers(0, 2)
names = st.sampled_from(NAMES)
faults = st.lists(st.sampled_from(["", "", "before", "after"]), max_size=6)


class Desks(RuleBasedStateMachine):
    """What may happen to notes, one thing after the other; afterwards all must be well."""

    def __init__(self) -> None:
        super().__init__()
        fast = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=fast if fast.is_dir() else None))
        self.runner = asyncio.Runner()
        self.threads = ThreadPoolExecutor(2)
        self.desks: list[Desk] = []
        self.written = 0
        self.lines: dict[str, set[str]] = {name: set() for name in NAMES}
        self.deleted: set[str] = set()
        self.coming: list[Literal["", "before", "after"]] = []

    @initialize(skews=st.lists(st.integers(-5, 5), min_size=2, max_size=3))
    def begin(self, skews: list[int]) -> None:
        for place, skew in enumerate(skews):
            inner = FileRemote(self.folder / "remote.db")
            remote = FaultyRemote(inner, asyncio.sleep, self._faults())
            device = Device(
                *(self.folder / f"d{place}", f"d{place}", remote),
                now=Clock(START + skew * 3600.0),
                threads=self.threads,
                rules=Rules(),
            )
            self.desks.append(Desk(device))
            # So that its folder is never one that was emptied by accident.
            self.desks[-1].write(f"own-{place}.md", "stays\n")
            self.runner.run(self.desks[-1].sync())

    def teardown(self) -> None:
        try:
            if self.desks:
                self.heal()
        finally:
            for desk in self.desks:
                self.runner.run(desk.device.stop())
                self.runner.run(desk.device.remote.close())
            self.runner.close()
            self.threads.shutdown()
            shutil.rmtree(self.folder)

    def _faults(self) -> Iterator[Fault]:
        while True:
            yield Fault(self.coming.pop(0)) if self.coming else Fault()

    def desk(self, who: int) -> Desk:
        return self.desks[who % len(self.desks)]

    def line(self, name: str) -> str:
        self.written += 1
        line = f'{{"n": {self.written}}}'
        self.lines[name].add(line)
        return line

    @rule(who=whom, name=names)
    def add_a_line(self, who: int, name: str) -> None:
        desk = self.desk(who)
        before = desk.notes().get(name, "")
        desk.write(name, f"{before}{self.line(name)}\n")

    @rule(who=whom, name=names, number=st.integers(0, 5))
    def change_a_line(self, who: int, name: str, number: int) -> None:
        desk = self.desk(who)
        lines = desk.notes().get(name, "").splitlines()
        if lines:
            gone = lines[number % len(lines)]
            self.lines[name].discard(gone)
            lines[number % len(lines)] = self.line(name)
            desk.write(name, "".join(f"{line}\n" for line in lines))

    @rule(who=whom, name=names)
    def delete_a_note(self, who: int, name: str) -> None:
        if name in self.desk(who).notes():
            (self.desk(who).top / name).unlink()
            self.deleted.add(name)

    @rule(who=whom)
    def look(self, who: int) -> None:
        self.runner.run(self.desk(who).keep())

    @rule(who=whom)
    def replicate_alone(self, who: int) -> None:
        self.runner.run(self.desk(who).device.sync())

    @rule(who=whom)
    def sync(self, who: int) -> None:
        self.runner.run(self.desk(who).sync())

    @rule(who=whom, faults=faults)
    def sync_over_a_bad_network(
        self, who: int, faults: list[Literal["", "before", "after"]]
    ) -> None:
        self.coming = list(faults)
        with contextlib.suppress(SyncError):
            self.runner.run(self.desk(who).sync())
        self.coming = []

    @rule(who=whom)
    def restart(self, who: int) -> None:
        desk = self.desk(who)
        self.runner.run(desk.device.stop())
        desk.device.start()
        desk.start()

    @rule()
    def heal(self) -> None:
        notes = self.runner.run(meet(*self.desks))
        everything = set("".join(notes.values()).splitlines())
        for name in NAMES:
            if name not in self.deleted:
                assert self.lines[name] <= everything, f"{name} has lost a line"


QUICK = settings(
    max_examples=8,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)


def test_all_disks_show_the_same_whatever_was_written_where() -> None:
    run_state_machine_as_test(Desks, settings=QUICK)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_all_disks_show_the_same_after_very_much_was_written() -> None:
    run_state_machine_as_test(
        Desks,
        settings=settings(
            QUICK, max_examples=1000, stateful_step_count=100, derandomize=False, database=None
        ),
    )
