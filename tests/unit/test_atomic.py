"""Files in folders that others may write to: nothing followed, waited for or written into."""

import os
import socket

import pytest

from thermocline.daemon.errors import Conflict
from thermocline.daemon.runtime import atomic


@pytest.fixture
def secret(tmp_path):
    """A file that must be neither read nor changed."""
    path = tmp_path / "secret"
    path.write_bytes(b"secret")
    yield path
    assert path.read_bytes() == b"secret"


def make_link(path, secret):
    path.symlink_to(secret)


def make_pipe(path, _secret):
    os.mkfifo(path)


def make_folder(path, _secret):
    path.mkdir()


def make_socket(path, _secret):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [make_link, make_pipe, make_folder, make_socket])
def test_only_a_regular_file_is_read_or_replaced(tmp_path, secret, make):
    path = tmp_path / "file"
    make(path, secret)
    with pytest.raises(Conflict):
        atomic.read(path, 100)
    with pytest.raises(Conflict):
        atomic.write(path, b"new")


def test_several_files_become_durable_together_and_take_their_names_one_by_one(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    new = [atomic.Replacement(tmp_path / name, name.encode()) for name in "ab"]
    assert (tmp_path / "a").read_bytes() == b"old"
    atomic.sync(new)
    stood = new[0].finish()
    new[1].discard()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"a"}
    assert stood.st_ino == (tmp_path / "a").stat().st_ino


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path):
    with pytest.raises(Conflict, match="owner"):
        atomic.Replacement(tmp_path / "file", b"x", owner=_somebody_else())
    assert [*tmp_path.iterdir()] == []


def _somebody_else():
    if os.getuid() == 0:
        pytest.skip("root may give a file to anybody")
    return 0, 0


def test_the_parent_of_every_folder_that_is_made_is_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(atomic, "sync_folder", synced.append)
    atomic.make_folder(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    atomic.make_folder(tmp_path / "a" / "b")
    assert len(synced) == 3
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        atomic.make_folder(tmp_path / "file")
