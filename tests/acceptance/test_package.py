"""The wheel and the sdist, built from the files that git knows, and run from where they install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest
from daemon_process import Daemon, wait_until

import thermocline.daemon
from thermocline.daemon.client import DaemonUnreachable

pytestmark = pytest.mark.package
ROOT = Path(thermocline.daemon.__file__).parents[1]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout without what a build leaves behind."""
    folder = tmp_path_factory.mktemp("source") / "thermocline"
    listed = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"]
    names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.splitlines()
    for name in names:
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def build(source: Path, kind: str, folder: Path) -> Path:
    """The built file, made without the network."""
    code = f"import setuptools.build_meta as built; print(built.build_{kind}({str(folder)!r}))"
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=source, check=True, capture_output=True, text=True
    )
    return folder / made.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist: what is not in the one is not in the other."""
    folder = tmp_path_factory.mktemp("dist")
    with tarfile.open(build(source, "sdist", folder)) as packed:
        packed.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return build(unpacked, "wheel", folder)


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`thermocline` in an environment of its own, with this one's dependencies."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    into = next(folder.glob("lib/python*/site-packages"))
    # A line that only names a folder: its editable install of the checkout does not count.
    (into / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install",
         "--quiet", "--no-deps", "--no-index", wheel],
        check=True,
    )  # fmt: skip
    return folder / "bin" / "thermocline"


def run(command: Path, *words: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        [command, *words], check=True, capture_output=True, text=True, env=env, cwd="/"
    )
    return ran.stdout


def test_what_the_wheel_installs_runs_with_all_that_it_needs(command: Path, tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    words = [command, "--socket", daemon.socket, "daemon", "--state-dir", daemon.state]
    with daemon.log.open("ab") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd="/")

    def answers() -> bool:
        assert process.poll() is None, daemon.log.read_text()
        try:
            with daemon.client() as client:
                return client.status().ready
        except DaemonUnreachable:
            return False

    try:
        wait_until(answers, "the installed daemon is ready")
        socket = ("--socket", str(daemon.socket))
        assert "stored" in run(command, *socket, "store", "the gate code is 4711")
        assert "4711" in run(command, *socket, "retrieve", "gate code")
        # Words of languages, prompts and defaults are data beside the code.
        assert "deploy" in run(
            command, *socket, "distill", "--text", "We decided: deploy on Monday."
        )
        assert "warm.max_kb" in run(command, "config")
    finally:
        process.terminate()
        assert process.wait(60) == 0


def test_what_the_wheel_installs_has_the_units(command: Path, tmp_path: Path) -> None:
    run(command, "install", "--prefix", str(tmp_path), "--yes")
    unit = (tmp_path / "etc/systemd/system/thermocline.service").read_text()
    assert f"ExecStart={command} daemon" in unit
    assert (tmp_path / "etc/systemd/system/thermocline.socket").exists()
    assert "complete -o filenames" in run(command, "completion", "bash")
