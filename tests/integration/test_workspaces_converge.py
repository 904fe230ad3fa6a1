"""Devices whose notes are written, changed and deleted at random: in the end all show the same.

Every line that somebody wrote, and did not take out again, is on every disk then, in the note that
it was written into or in a copy beside it, unless that note was deleted somewhere.
"""

import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from desks import Desk, Replica, meet
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from thermocline.daemon.store import outbox
from thermocline.sync import Cursor

NAMES = ("2026-03-01.md", "notes.txt", "episodes.jsonl")
whom = st.integers(0, 2)
names = st.sampled_from(NAMES)


class Notes(RuleBasedStateMachine):
    """What may happen to notes, one thing after the other; afterwards all must be well."""

    def __init__(self) -> None:
        super().__init__()
        fast = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=fast if fast.is_dir() else None))
        self.replica = Replica()
        self.desks: list[Desk] = []
        self.written = 0
        self.lines: dict[str, set[str]] = {name: set() for name in NAMES}
        self.deleted: set[str] = set()

    @initialize(skews=st.lists(st.integers(-5, 5), min_size=2, max_size=3))
    def begin(self, skews: list[int]) -> None:
        for place, skew in enumerate(skews):
            folder = self.folder / f"d{place}"
            desk = Desk(f"d{place}", self.replica, folder, ahead=skew * 3600.0)
            self.desks.append(desk)
            # So that its folder never looks as if it had been emptied by accident.
            desk.type("stays\n", f"own-{place}.md")
            desk.sync()

    def teardown(self) -> None:
        try:
            if self.desks:
                self.heal()
        finally:
            for desk in self.desks:
                desk.db.close()
            shutil.rmtree(self.folder)

    def desk(self, who: int) -> Desk:
        return self.desks[who % len(self.desks)]

    def line(self, name: str) -> str:
        self.written += 1
        line = f'{{"n": {self.written}}}'
        self.lines[name].add(line)
        return line

    @rule(who=whom, name=names, place=st.integers(0, 3))
    def add_a_line(self, who: int, name: str, place: int) -> None:
        lines = self.desk(who).files().get(f"memory/{name}", "").splitlines()
        lines.insert(len(lines) - min(place, len(lines)), self.line(name))
        self.desk(who).type("".join(f"{line}\n" for line in lines), name)

    @rule(who=whom, name=names, number=st.integers(0, 5), replace=st.booleans())
    def change_a_line(self, who: int, name: str, number: int, replace: bool) -> None:
        lines = self.desk(who).files().get(f"memory/{name}", "").splitlines()
        if lines:
            number %= len(lines)
            self.lines[name].discard(lines[number])
            lines[number : number + 1] = [self.line(name)] if replace else []
            self.desk(who).type("".join(f"{line}\n" for line in lines), name)

    @rule(who=whom, name=names)
    def delete_a_note(self, who: int, name: str) -> None:
        if f"memory/{name}" in self.desk(who).files():
            self.desk(who).type(None, name)
            self.deleted.add(name)

    @rule(who=whom)
    def look(self, who: int) -> None:
        self.desk(who).look()

    @rule(who=whom)
    def keep(self, who: int) -> None:
        self.desk(who).keep()

    @rule(who=whom)
    def receive(self, who: int) -> None:
        self.desk(who).receive()

    @rule(who=whom)
    def push(self, who: int) -> None:
        self.desk(who).push()

    @rule(who=whom)
    def push_and_lose_the_answer(self, who: int) -> None:
        self.replica.push(self.desk(who).pending())

    @rule(who=whom)
    def sync(self, who: int) -> None:
        self.desk(who).sync()

    @rule(who=whom)
    def set_back(self, who: int) -> None:
        """A copy of the database takes its place, all that was written since was synced."""
        desk = self.desk(who)
        desk.keep()
        copy = sqlite3.connect(":memory:", isolation_level=None)
        desk.db.backup(copy)
        files = self.folder / "copy"
        assert desk.top is not None
        shutil.copytree(desk.top, files)
        desk.sync()
        desk.db.close()
        desk.db, desk.name = copy, f"{desk.name}x"
        shutil.rmtree(desk.top)
        files.rename(desk.top)

    @rule()
    def replace_the_replica(self) -> None:
        self.replica.rows.clear()
        for desk in self.desks:
            desk.write(lambda tx: outbox.offer_all(tx, Cursor()))

    @rule()
    def heal(self) -> None:
        everything = set("".join(meet(*self.desks).values()).splitlines())
        for name in NAMES:
            if name not in self.deleted:
                lost = self.lines[name] - everything
                assert not lost, f"{name} has lost {lost}"


QUICK = settings(
    max_examples=12,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)


def test_all_disks_show_the_same_whatever_was_written_where():
    run_state_machine_as_test(Notes, settings=QUICK)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_all_disks_show_the_same_after_very_much_was_written():
    run_state_machine_as_test(
        Notes,
        settings=settings(
            QUICK, max_examples=1000, stateful_step_count=100, derandomize=False, database=None
        ),
    )
