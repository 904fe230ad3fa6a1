"""README's code, run as it is written, against one daemon."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_process import Daemon

import thermocline.daemon

README = (Path(thermocline.daemon.__file__).parents[1] / "README.md").read_text(encoding="utf-8")
# Files that the reader has.
FILES = {
    "notes.md": "- call Ana about https://example.org\n",
    "MEMORY.md": "# Memory\n\n- Ana drinks tea\n",
    "chat.txt": "User: We left Heroku because it was too slow.\nAgent: Noted.\n",
}
SAMPLES = Path(__file__).parents[1] / "fixtures" / "imports"
# Folders of the reader's machine that a test must not use.
FOLDERS = ("/mnt/usb", "/tmp/restored")


def test_the_code_in_readme_runs(
    make_daemon: Callable[..., Daemon], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "mnt" / "usb").mkdir(parents=True)
    (Path.home() / "docs").mkdir()
    shutil.copytree(SAMPLES / "claude-code", Path.home() / ".claude")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    daemon = make_daemon()
    daemon.socket = tmp_path / "thermocline" / "thermocline.sock"
    daemon.start()

    [example] = _blocks("python")
    shown = _run(tmp_path, sys.executable, "-c", example).splitlines()
    assert re.fullmatch(r"[01]\.\d\d Maya's flight lands on Friday at 18:40", shown[0])

    script = "".join(_blocks("sh"))
    assert script.count("\n") > 40
    for folder in FOLDERS:
        script = script.replace(folder, f"{tmp_path}{folder}")
    _run(tmp_path, "bash", "-euxc", script)


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def _run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
