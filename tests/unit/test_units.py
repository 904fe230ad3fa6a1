"""The units of systemd, as systemd's own tools judge them, and the wheel's list of packages."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import thermocline.daemon
from thermocline.daemon.cli.install import UNITS, System, contents

ROOT = Path(thermocline.daemon.__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze (apt install systemd)"
)


def written(folder: Path, *, user: bool) -> list[Path]:
    """The units with a command that exists, in a folder."""
    units = []
    for path, content in contents(System(folder, user), sys.executable).items():
        if path.suffix in {".service", ".socket"}:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            units.append(path)
    return units


@needs_systemd
@pytest.mark.parametrize("user", [False, True])
def test_systemd_finds_no_fault_in_the_units(tmp_path, user):
    kind = ["--user"] if user else []
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *kind, *written(tmp_path, user=user)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
    )
    said = [line for line in checked.stderr.splitlines() if "thermocline" in line]
    assert said == []
    assert checked.returncode == 0, checked.stderr


@needs_systemd
def test_the_service_is_exposed_to_little(tmp_path):
    service = next(path for path in written(tmp_path, user=False) if path.suffix == ".service")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=15"]
    judged = subprocess.run([*command, service], capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout[-300:]


def test_the_users_of_callers_stay_visible_to_the_service():
    for unit in UNITS.rglob("*.service"):
        assert not re.search(r"^PrivateUsers=", unit.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_wheel_has_every_package_and_every_file_beside_the_code():
    built = PROJECT["tool"]["setuptools"]
    folders = {
        path.parent for top in ("daemon", "sync", "tui") for path in ROOT.glob(f"{top}/**/*.py")
    }
    names = {"thermocline." + ".".join(path.relative_to(ROOT).parts) for path in folders}
    assert {*built["packages"]} == names | {"thermocline.systemd"}
    packed = {
        path
        for package, patterns in built["package-data"].items()
        for pattern in patterns
        for path in (ROOT / Path(*package.split(".")[1:])).glob(pattern)
    }
    beside = {
        path
        for top in ("daemon", "sync", "systemd", "tui")
        for path in ROOT.glob(f"{top}/**/*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    }
    assert beside - packed == set()
