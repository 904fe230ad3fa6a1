"""What a daemon that starts makes of a restore that was killed, and what the next restore does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from thermocline.daemon.restoring.interrupted import finish, take_up
from thermocline.daemon.restoring.moving import Run

URL = "https://replica"


class Report(msgspec.Struct):
    rows: int = 3


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    folder = tmp_path / "agents"
    folder.mkdir()
    return folder


def made(folder: Path, content: str = "new") -> Path:
    folder.mkdir()
    (folder / "memory.db").write_text(content)
    return folder


def names(agents: Path) -> list[str]:
    return sorted(path.name for path in agents.iterdir())


@pytest.mark.parametrize("left", [".ana.restoring-x1.whole", ".ana.restoring.whole"])
def test_what_is_whole_is_put_into_its_empty_place(left: str, agents: Path) -> None:
    made(agents / left)
    made(agents / "ana.before-restore-20260101T000000", "old")
    finish(agents.parent)
    assert names(agents) == ["ana", "ana.before-restore-20260101T000000"]
    assert (agents / "ana/memory.db").read_text() == "new"


@pytest.mark.parametrize(
    ("left", "stays"),
    [
        (".ana.restoring-x1.whole", []),
        (".ana.restoring-x1", []),
        (".ana.restoring.whole", [".ana.restoring"]),
        (".ana.restoring", [".ana.restoring"]),
    ],
)
def test_a_place_that_holds_something_stays_as_it_is(
    left: str, stays: list[str], agents: Path
) -> None:
    made(agents / left)
    made(agents / "ana", "old")
    finish(agents.parent)
    assert names(agents) == [*stays, "ana"]
    assert (agents / "ana/memory.db").read_text() == "old"


def test_what_is_not_whole_is_not_put_anywhere(agents: Path) -> None:
    made(agents / ".ana.restoring-x1")
    made(agents / ".bea.restoring")
    finish(agents.parent)
    assert names(agents) == [".bea.restoring"]


def test_other_names_are_nobodys(agents: Path, tmp_path: Path) -> None:
    for name in (".a b.restoring.whole", ".ana.restoring.whole.old", ".x.y.restoring", "ana"):
        made(agents / name)
    before = names(agents)
    finish(tmp_path)
    take_up(tmp_path)
    assert names(agents) == before
    finish(tmp_path / "nowhere")


def test_the_next_restore_from_the_replica_goes_on_with_what_is_whole(agents: Path) -> None:
    made(agents / ".ana.restoring.whole")
    made(agents / ".bea.restoring-x1.whole")
    take_up(agents.parent)
    assert names(agents) == [".ana.restoring", ".bea.restoring-x1.whole"]


def test_a_run_is_gone_on_with_until_what_it_restored_was_used(agents: Path) -> None:
    state = agents.parent
    Run(URL).note(state, "ana", Report())
    assert "ana" in Run.of(state, URL, replace=True).reports
    finish(state)
    finish(state)
    assert "ana" in Run.of(state, URL, replace=False).reports
    assert not Run.of(state, URL, replace=True).reports
    assert not Run.of(state, "https://another", replace=False).reports
