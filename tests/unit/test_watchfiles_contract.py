"""What the watcher uses of watchfiles beyond its documentation is there, in one module alone."""

import threading
import time
from pathlib import Path

from watchfiles._rust_notify import RustNotify

import thermocline.daemon

ROOT = Path(thermocline.daemon.__file__).parents[1]


def begun(folder: Path) -> RustNotify:
    """As `daemon/files/indexes.py` begins: no debug, no polling, not recursive."""
    return RustNotify([str(folder)], False, False, 300, False, True)


def test_changes_of_a_folder_are_told_as_pairs_with_their_paths(tmp_path):
    notify = begun(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "deep.md").write_text("x")
    (tmp_path / "note.md").write_text("x")
    paths: set[str] = set()
    until = time.monotonic() + 30
    while str(tmp_path / "note.md") not in paths and time.monotonic() < until:
        changes = notify.watch(0, 1, 1, None)
        assert isinstance(changes, set | str)
        paths |= set() if isinstance(changes, str) else {path for _, path in changes}
    assert paths == {str(tmp_path / "note.md"), str(tmp_path / "inner")}
    notify.close()


def test_waiting_ends_with_its_time_and_asks_meanwhile(tmp_path):
    notify, asked = begun(tmp_path), threading.Event()

    class Pauses:
        def is_set(self) -> bool:
            asked.set()
            return False

    assert notify.watch(0, 0, 1, Pauses()) == "timeout"
    assert asked.is_set()
    notify.close()


def test_only_one_module_knows_of_it():
    users = [
        str(path.relative_to(ROOT))
        for package in ("daemon", "sync", "tui")
        for path in (ROOT / package).rglob("*.py")
        if "_rust_notify" in path.read_text(encoding="utf-8")
    ]
    assert users == ["daemon/files/indexes.py"]
