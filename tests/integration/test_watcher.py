"""What the watcher says has changed is all that changed before it was asked."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import thermocline.daemon
from thermocline.daemon.files import walker
from thermocline.daemon.files.indexes import Watcher

ROOT = Path(thermocline.daemon.__file__).parents[1]


def test_a_file_that_was_just_written_is_among_the_changes_on_a_busy_machine(tmp_path):
    folders = {str(tmp_path): walker.identity(tmp_path)}
    missed = []
    with closing(Watcher(lambda: None)) as watcher, busy(4 * (os.cpu_count() or 1)):
        watcher.changes(folders)
        for number in range(200):
            path = tmp_path / f"{number}.md"
            path.write_text("x")
            if str(path) not in watcher.changes(folders):
                missed.append(number)
    assert missed == []


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Other programs that want the processor."""
    others = [subprocess.Popen([sys.executable, "-c", "while 1: 0"]) for _ in range(processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_a_watcher_that_is_asked_and_left_alone_notices_and_tells(tmp_path):
    folders = {str(tmp_path): walker.identity(tmp_path)}
    noticed = threading.Event()
    with closing(Watcher(noticed.set)) as watcher:
        assert watcher.changes(folders) == {str(tmp_path)}
        assert watcher.changes(folders) == set()
        (tmp_path / "a.md").write_text("x")
        assert noticed.wait(30)
        assert watcher.changes(folders) == {str(tmp_path / "a.md")}


# What it uses of watchfiles beyond its documentation


def test_only_one_module_knows_of_it():
    users = [
        str(path.relative_to(ROOT))
        for package in ("daemon", "sync", "tui")
        for path in (ROOT / package).rglob("*.py")
        if "_rust_notify" in path.read_text(encoding="utf-8")
    ]
    assert users == ["daemon/files/indexes.py"]
