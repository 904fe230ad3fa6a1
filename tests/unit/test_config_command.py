"""`thermocline config`, with real files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from thermocline.daemon.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the verb in an environment whose only layers are in the test's folder."""
    for name in ("HOME", "XDG_CONFIG_HOME", "CONFIGURATION_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / name))
    socket = f"--socket={tmp_path}/none.sock"

    def call(*arguments: str, as_json: bool = False) -> int:
        return main([socket, *(["--json"] if as_json else []), "config", *arguments])

    return call


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    file = tmp_path / "XDG_CONFIG_HOME" / "thermocline" / "config.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"hot": {"max_bytes": 4000}}')
    return file


# Changing it, where no daemon answers


def test_only_who_names_a_replica_hears_that_it_can_be_sealed(run, capsys):
    for url, is_told in (("file:/mnt/replica.db", True), ("null", False)):
        assert run("--set", f"sync.url={url}") == 0
        assert ("thermocline seal" in capsys.readouterr().out) is is_told


def test_a_wrong_change_is_refused_with_exit_2_and_writes_nothing(run, user_file, capsys):
    # Others could read such a replica on the way.
    hosts = ("db.example", "127.0.0.1.example", "localhost.example:8080")
    assert run("--check", "--set", "sync.url=http://[::1]:8080/{agent}") == 0
    capsys.readouterr()
    for arguments in (
        ("--set", "hot.max_bytes=1"), ("--set", "nonsense"), ("--unset", "hot.max_byte"),
        ("--set", "agents={}"),
        ("--check", "--set", "hot.max_bytes=1"), ("--check", "--unset", "hot.max_bytes"),
        *(("--set", f"sync.url=http://{host}") for host in hosts),
        ("--set", "sync.url=file:/mnt/{agnt}.db"), ("--set", "sync.url=libsql://{}.example"),
    ):  # fmt: skip
        assert run(*arguments) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("thermocline: ")
        for reason in ("http:// only on this device", "the only placeholder is {agent}"):
            assert (reason in told.err) == ("sync.url" in arguments[-1])
        assert json.loads(user_file.read_text()) == {"hot": {"max_bytes": 4000}}
