"""Walking a workspace without following anything out of it."""

import os
from pathlib import Path

import pytest

from thermocline.daemon.files import walker
from thermocline.daemon.files.walker import Open, Skipped, walk

NOWHERE = (0, 0)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def walked(top: Path, never: tuple[int, int] = NOWHERE) -> tuple[dict[str, bytes], dict[str, str]]:
    files: dict[str, bytes] = {}
    skipped: dict[str, str] = {}
    for one in walk(top, "memory", never):
        if isinstance(one, Skipped):
            skipped[one.path] = one.why
        else:
            files[one.path] = os.read(one.handle, one.size)
    return files, skipped


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "memory"
    (top / "skills" / "tea").mkdir(parents=True)
    (top / "2026-03-01.md").write_bytes(b"a day")
    (top / "skills" / "tea" / "SKILL.md").write_bytes(b"boil water")
    return top


def test_there_need_not_be_a_workspace(tmp_path):
    assert walked(tmp_path / "memory") == ({}, {})


def test_a_workspace_that_is_a_link_itself_is_named(top, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(top)
    assert walked(link) == ({}, {"memory": "a link"})


def test_a_folder_that_becomes_a_link_under_way_is_not_followed(top, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "SKILL.md").write_bytes(b"never")
    walking = walk(top, "memory", NOWHERE)
    first = next(walking)
    assert isinstance(first, Open)
    (top / "skills" / "tea").rename(tmp_path / "gone")
    (top / "skills" / "tea").symlink_to(secret)
    assert [*walking] == [Skipped("memory/skills/tea", "a link")]


def test_the_token_of_the_cloud_stays_where_it_is(top):
    (top / "turso-credentials.json").write_text('{"auth_token": "t"}')
    files, skipped = walked(top)
    assert "memory/turso-credentials.json" not in files
    assert "token" in skipped["memory/turso-credentials.json"]


def test_the_folder_of_the_memories_in_a_workspace_is_not_archived_into_itself(top):
    state = top / "state"
    state.mkdir()
    (state / "memory.db").write_bytes(b"x")
    files, skipped = walked(top, walker.identity(state))
    assert "memory/state/memory.db" not in files
    assert skipped == {"memory/state": "the folder of the memories themselves"}


def test_a_tree_without_a_bottom_ends_somewhere(top):
    deep = top
    for _ in range(80):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "lost.md").write_bytes(b"")
    files, skipped = walked(top)
    assert set(files) == {"memory/2026-03-01.md", "memory/skills/tea/SKILL.md"}
    assert [*skipped.values()] == ["it is over 64 folders deep"]


def test_giving_up_leaves_nothing_open(top):
    before = open_files()
    walking = walk(top, "memory", NOWHERE)
    next(walking)
    walking.close()
    assert open_files() <= before
