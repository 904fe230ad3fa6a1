"""`thermocline install` and `uninstall`, into a folder in place of the system's."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import PROGRAM

SYSTEM = {
    "etc/systemd/system/thermocline.service",
    "etc/systemd/system/thermocline.socket",
    "etc/sysusers.d/thermocline.conf",
    "etc/tmpfiles.d/thermocline.conf",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def run(
    *words: str, env: dict[str, str] | None = None, stdin: int = subprocess.DEVNULL
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *PROGRAM, *words],
        stdin=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
    )


def install(root: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = ("--command", "/opt/thermocline/bin/thermocline")
    return run("install", "--prefix", str(root), *command, *more)


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_install_shows_what_it_does_does_it_once_and_uninstall_takes_it_away(root):
    shown = install(root, "--dry-run")
    assert shown.returncode == 0
    assert shown.stdout.count("write ") == 4
    assert files(root) == set()

    done = install(root, "--yes")
    assert done.returncode == 0, done.stderr
    assert files(root) == SYSTEM
    assert "systemctl enable --now thermocline.socket thermocline.service" in done.stdout
    service = (root / "etc/systemd/system/thermocline.service").read_text()
    assert "ExecStart=/opt/thermocline/bin/thermocline daemon\n" in service
    assert "@" not in service.replace("@system-service", "").replace("@privileged @resources", "")
    assert all((root / name).stat().st_mode & 0o777 == 0o644 for name in SYSTEM)

    before = {name: (root / name).stat().st_mtime_ns for name in SYSTEM}
    again = install(root, "--yes")
    assert again.stdout.count("keep ") == 4
    assert {name: (root / name).stat().st_mtime_ns for name in SYSTEM} == before

    kept = root / "var/lib/thermocline/agents/default/memory.db"
    kept.parent.mkdir(parents=True)
    kept.write_text("memories")
    gone = run("uninstall", "--prefix", str(root), "--yes")
    assert gone.returncode == 0, gone.stderr
    assert files(root) == {str(kept.relative_to(root))}
    assert "nothing is installed" in run("uninstall", "--prefix", str(root), "--yes").stdout


def test_a_moved_command_is_written_into_the_unit(root):
    install(root, "--yes")
    moved = run("install", "--prefix", str(root), "--command", "/usr/bin/a b%", "--yes", "--json")
    actions = {
        Path(step["path"]).name: step["action"] for step in json.loads(moved.stdout)["files"]
    }
    assert actions["thermocline.service"] == "replace"
    assert actions["thermocline.socket"] == "keep"
    service = (root / "etc/systemd/system/thermocline.service").read_text()
    assert 'ExecStart="/usr/bin/a b%%" daemon\n' in service


def test_a_unit_that_a_person_wrote_is_neither_replaced_nor_removed(root):
    own = root / "etc/systemd/system/thermocline.service"
    own.parent.mkdir(parents=True)
    own.write_text("[Service]\nExecStart=/bin/true\n")
    refused = install(root, "--yes")
    assert refused.returncode == 1
    assert "move it away first" in refused.stderr
    assert files(root) == {"etc/systemd/system/thermocline.service"}
    assert "keep " in run("uninstall", "--prefix", str(root), "--yes").stdout
    assert own.read_text() == "[Service]\nExecStart=/bin/true\n"


def test_a_user_gets_units_of_their_own(root, tmp_path):
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    words = ("--user", "--prefix", str(root), "--command", "/usr/bin/thermocline", "--yes")
    assert run("install", *words, env=env).returncode == 0
    folder = root / (tmp_path / "config/systemd/user").relative_to("/")
    assert sorted(path.name for path in folder.iterdir()) == [
        "thermocline.service",
        "thermocline.socket",
    ]
    assert "User=" not in (folder / "thermocline.service").read_text()


@pytest.mark.parametrize(("said", "code", "found"), [(b"\n", 1, set()), (b"y\n", 0, SYSTEM)])
def test_a_person_is_asked_and_without_one_nothing_is_changed(root, said, code, found):
    refused = install(root)
    assert (refused.returncode, files(root)) == (2, set())
    assert "--yes" in refused.stderr
    person, terminal = pty.openpty()
    os.write(person, said)
    words = ("install", "--prefix", str(root), "--command", "/usr/bin/thermocline")
    asked = run(*words, stdin=terminal)
    os.close(person)
    os.close(terminal)
    assert "do it? [y/N]" in asked.stderr
    assert asked.returncode == code
    assert files(root) == found


def test_a_command_that_no_unit_can_start_is_refused(tmp_path):
    at_home = tmp_path / "thermocline"
    at_home.write_text("#!/bin/sh\n")
    at_home.chmod(0o755)
    for words, code, reasons in (
        (("--command", "thermocline"), 2, ["expected an absolute path"]),
        (("--command", "/nowhere/thermocline"), 1, ["cannot start /nowhere/thermocline"]),
        (("--command", "/usr/bin/a\nUser=root", "--prefix", "/x"), 2, ["cannot use"]),
        (("--for-all",), 2, ["--for-all"]),
        (("--command", str(at_home)), 1, ["the service could not read", "--user"]),
    ):
        refused = run("install", *words, "--dry-run")
        assert refused.returncode == code, refused.stderr
        assert all(reason in refused.stderr for reason in reasons)
