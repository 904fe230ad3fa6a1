"""The code in README and in docs/, run as it is written, each page against a daemon of its own."""

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

ROOT = Path(thermocline.daemon.__file__).parents[1]
# Files that the reader has.
FILES = {
    "notes.md": "- call Ana about https://example.org\n",
    "deploy.md": "# Deploy\n\nMigrate, then restart.\n",
    "MEMORY.md": "# Memory\n\n- Ana drinks tea\n",
    "chat.txt": "User: We left Heroku because it was too slow.\nAgent: Noted.\n",
    "standup.txt": "Ana: I moved the deploy to Tuesday.\nBo: We agreed to drop the old queue.\n",
}
SAMPLES = Path(__file__).parents[1] / "fixtures" / "imports"
# Folders of the reader's machine that a test must not use.
FOLDERS = ("/mnt/usb", "/tmp/restored")
LANGUAGES = ("sh", "python")


def _code_of(page: Path) -> list[tuple[str, str]]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"```({'|'.join(LANGUAGES)})\n(.*?)```", text, re.DOTALL)


PAGES = [page for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))) if _code_of(page)]


@pytest.fixture
def reader(
    make_daemon: Callable[..., Daemon], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of somebody who has what the pages assume, with a daemon at the usual place."""
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
    for agent in ("default", "assistant"):
        with daemon.client(agent) as client:
            client.store("The dentist is on Tuesday")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, reader):
    blocks = _code_of(page)
    for language, code in blocks:
        if language == "python":
            _run(reader, sys.executable, "-c", code)
    script = "".join(code for language, code in blocks if language == "sh")
    for folder in FOLDERS:
        script = script.replace(folder, f"{reader}{folder}")
    _run(reader, "bash", "-euxc", script)


def test_the_first_example_of_readme_prints_the_flight_first(reader):
    [example] = [code for language, code in _code_of(ROOT / "README.md") if language == "python"]
    shown = _run(reader, sys.executable, "-c", example).splitlines()
    assert re.fullmatch(r"[01]\.\d\d Maya's flight lands on Friday at 18:40", shown[0])


def test_readme_shows_what_its_first_commands_print(reader):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.findall(
        r"^    \.venv/bin/(thermocline (?:store|retrieve) .+)$", readme, re.MULTILINE
    )
    shown = re.findall(r"^    ((?:stored|0\.\d\d) .+)$", readme, re.MULTILINE)
    assert len(first) == len(shown) == 2
    for command, line in zip(first, shown, strict=True):
        printed = _run(reader, "bash", "-c", command).strip()
        assert _without_what_varies(printed) == _without_what_varies(line)


def _without_what_varies(line: str) -> str:
    """Without id, relevance and time."""
    return re.sub(r"\b[0-9a-f]{8}\b|\b0\.\d\d\b|[A-Z][a-z]{2} \d\d \d\d:\d\d", "…", line)


def _run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
