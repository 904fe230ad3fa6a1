"""The wheel and the sdist, built from the files that git knows, and run from where they install."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import release
import sbom
from daemon_process import Daemon, wait_until

import thermocline.daemon
from thermocline.daemon.client import DaemonUnreachable

pytestmark = pytest.mark.package
ROOT = Path(thermocline.daemon.__file__).parents[1]
EPOCH = 1_700_000_000


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


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> release.Built:
    """The wheel is built from the sdist: what is not in the one is not in the other."""
    clean = shutil.copytree(source, tmp_path_factory.mktemp("built") / "source", symlinks=True)
    return release.build(clean, clean.with_name("dist"), EPOCH)


@pytest.fixture(scope="module")
def command(built: release.Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`thermocline` in an environment of its own, with this one's dependencies."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    into = next(folder.glob("lib/python*/site-packages"))
    # A line that only names a folder: its editable install of the checkout does not count.
    (into / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install",
         "--quiet", "--no-deps", "--no-index", built.wheel],
        check=True,
    )  # fmt: skip
    return folder / "bin" / "thermocline"


def run(command: Path, *words: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        [command, *words], check=True, capture_output=True, text=True, env=env, cwd="/"
    )
    return ran.stdout


def test_what_the_wheel_installs_runs_with_all_that_it_needs(command, tmp_path):
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


def test_what_the_wheel_installs_has_the_units(command, tmp_path):
    compiled = "lib/python*/site-packages/thermocline/daemon/language/__pycache__/concepts-*.bin"
    for path in command.parents[1].glob(compiled):
        path.unlink()
    run(command, "install", "--prefix", str(tmp_path), "--yes")
    unit = (tmp_path / "etc/systemd/system/thermocline.service").read_text()
    assert f"ExecStart={command} daemon" in unit
    assert (tmp_path / "etc/systemd/system/thermocline.socket").exists()
    assert [*command.parents[1].glob(compiled)], "the daemon, which may not write there, compiles"
    assert "complete -o filenames" in run(command, "completion", "bash")


def test_two_builds_have_the_same_hash_wherever_and_whenever_they_are_made(source, built, tmp_path):
    other = shutil.copytree(source, tmp_path / "elsewhere" / "s", symlinks=True)
    for path in (each for each in other.rglob("*") if not each.is_symlink()):
        path.chmod(path.stat().st_mode & 0o700 | 0o060)
        os.utime(path, (1_600_000_000, 1_600_000_000))
    again = release.build(other, tmp_path / "dist", EPOCH)
    assert built.differences(again) == []
    later = release.build(other, tmp_path / "later", EPOCH + 86_400)
    assert later.differences(built) == [path.name for path in built]


def test_a_release_has_every_module_and_valid_metadata(source, built, tmp_path):
    release.check(built, source)
    names = ("thermocline/daemon/store/database/schema.py", "thermocline-0.1.0.dist-info/METADATA")
    for name in names:
        damaged = release.Built(built.sdist, tmp_path / built.wheel.name)
        with zipfile.ZipFile(built.wheel) as old, zipfile.ZipFile(damaged.wheel, "w") as new:
            for each in old.namelist():
                if each != name:
                    new.writestr(each, old.read(each))
        with pytest.raises(release.Refused, match=Path(name).stem):
            release.check(damaged, source)


def test_the_sums_are_those_of_the_files(built, tmp_path):
    for path in built:
        shutil.copy(path, tmp_path)
    release.write_sums(tmp_path)
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert len((tmp_path / "SHA256SUMS").read_text().splitlines()) == len(built)


def test_the_bill_of_materials_names_all_that_the_locks_name(built):
    text = sbom.bill(ROOT, built.wheel, EPOCH)
    assert text == sbom.bill(ROOT, built.wheel, EPOCH)
    bill = json.loads(text)
    listed = {(each["name"], each["version"]): each for each in bill["components"]}
    assert len(listed) == len(bill["components"])
    required = set()
    for lock in ROOT.glob("requirements-*.lock"):
        pins = re.findall(r"^(\S+)==(\S+)", lock.read_text(), re.MULTILINE)
        assert len(pins) > 10
        assert {*pins} <= listed.keys()
        if lock.name == "requirements-base.lock":
            required = {*pins}
    assert {key for key, each in listed.items() if each["scope"] == "required"} == required
    assert all(each["externalReferences"][0]["hashes"] for each in listed.values())
    (edges,) = bill["dependencies"]
    assert len(edges["dependsOn"]) == 10
    assert {*edges["dependsOn"]} <= {each["bom-ref"] for each in bill["components"]}
