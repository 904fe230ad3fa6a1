"""The log: forms, levels, and nothing of what is stored, asked or secret."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MARK = "zanzibarquokka"
SECRET = "ghp_" + "zanzibarquokka" + "A1b2C3d4E5f6G7h8I9j0"
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (DEBUG|INFO|WARNING|ERROR) \S")


def everything(call: Any, tmp_path: Path) -> None:
    """Send marked texts through every group of calls, with and without success."""
    text = f"{MARK} prefers tea, token {SECRET}"
    key = call.store(text, subject=MARK, tags=[MARK], category=f"people/{MARK}")["id"]
    call("PUT", f"/api/memory/{key}", {"text": f"{text} and coffee"})
    call("POST", "/api/memory/batch", {"memories": [{"text": text}, {"text": f"two {text}"}]})
    for path, body in (
        ("/api/recall", {"query": MARK}),
        ("/api/context", {"query": MARK}),
        ("/api/observe", {"messages": [{"role": "user", "content": f"I prefer {text}."}]}),
        ("/api/turns", {"conversation": MARK, "messages": [{"role": "user", "content": text}]}),
        ("/api/distill", {"text": text, "store": True}),
        ("/api/reflections", {"text": text, "score": 0.5}),
        ("/api/episodes", {"text": text}),
        ("/api/skills", {"name": MARK, "text": text}),
        ("/api/experiences", {"task": text, "approach": text, "outcome": "success"}),
        ("/api/preferences", {"text": text}),
        ("/api/sessions", {"title": MARK}),
        ("/api/metadata", {"text": text}),
        ("/api/import", {"path": f"/{MARK}"}),
        ("/api/files/paths", {"path": str(tmp_path)}),
        ("/api/consolidate", {"mode": "quick"}),
        ("/api/memory", {"text": text, MARK: 1}),
        ("/api/memory", {"text": text, "importance": MARK}),
        (f"/api/{MARK}", {"text": text}),
    ):
        call("POST", path, body)
    call("PUT", f"/api/kv/{MARK}", {"value": text})
    call("PUT", "/api/hot/identity", {"agent_name": MARK})
    call("PUT", "/api/tree", {"path": MARK, "desc": text})
    call("PUT", f"/api/graph/{MARK}", {"aliases": [MARK]})
    for target in (
        f"/api/kv/{MARK}", f"/api/memory/{MARK}", f"/api/memory?q={MARK}", f"/api/cold?q={MARK}",
        f"/api/files/search?query={MARK}", f"/api/graph?entity={MARK}", f"/{MARK}?{MARK}={SECRET}",
        "/api/history", "/api/hot", "/api/tree", "/api/status",
    ):  # fmt: skip
        call("GET", target)
    call(MARK.upper(), "/api/health")
    call("GET", "/api/health", headers={"X-Agent": f"{MARK}!", MARK: SECRET})
    call("POST", "/api/memory", raw=text.encode() + b"\xff\xfe")
    call("POST", "/api/memory/forget", {"text": MARK, "dry_run": True})
    call("DELETE", f"/api/memory/{key}")


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_at_debug_has_no_stored_or_asked_text_and_no_secret(
    form, make_daemon, calls_of, tmp_path
):
    token = tmp_path / "token"
    token.write_text(SECRET)
    token.chmod(0o600)
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "note.md").write_text(f"# {MARK}\n\n{MARK} {SECRET}\n")
    daemon = make_daemon(
        "--set=log.level=debug", f"--set=log.format={form}", "--set=observe.debounce_seconds=0",
        "--set=sync.url=http://127.0.0.1:9", f"--set=sync.token_file={token}",
    ).start()  # fmt: skip
    everything(calls_of(daemon, "agent"), docs)
    assert daemon.stop() == 0
    said = daemon.log.read_text()
    assert MARK not in said.lower(), re.findall(f".*{MARK}.*", said, re.IGNORECASE)[:5]
    assert SECRET not in said
    assert said.count("/api/memory") > 5
    assert "/api/kv/{key}" in said


def test_each_request_is_one_line_at_debug_and_none_otherwise(make_daemon, calls_of, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"log": {"level": "debug", "format": "json"}}))
    daemon = make_daemon(f"--config={config}").start()
    call = calls_of(daemon, "agent7")
    call.store("a fact")
    assert call("GET", "/api/memory/unknown").status == 404
    call.ok("PUT", "/api/config", {"set": {"log.level": "info"}})
    call.store("another fact")
    daemon.stop()
    lines = [json.loads(line) for line in daemon.log.read_text().splitlines()]
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    asked = [
        (line["method"], line["path"], line["agent"], line["status"])
        for line in lines
        if line.get("action") == "request" and line["agent"] == "agent7"
    ]
    assert asked[:2] == [
        ("POST", "/api/memory", "agent7", 201),
        ("GET", "/api/memory/{id}", "agent7", 404),
    ]
    assert len(asked) <= 3
    assert all(line["ms"] >= 0 for line in lines if line.get("action") == "request")


def test_in_the_journal_a_line_has_its_priority_and_no_second_time(tmp_path):
    log = tmp_path / "journal"
    code = (
        "import logging\n"
        "from thermocline.daemon.runtime.problems import configure\n"
        "configure('info', 'text')\n"
        "log = logging.getLogger('thermocline.x')\n"
        "log.error('two\\nlines'); log.warning('w'); log.info('i'); log.debug('d')\n"
    )
    with log.open("wb") as file:
        found = os.fstat(file.fileno())
        for stream in (f"{found.st_dev}:{found.st_ino}", "1:2"):
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "JOURNAL_STREAM": stream},
                stderr=file,
                check=True,
            )
    lines = log.read_text().splitlines()
    assert lines[:4] == ["<3>two", "<3>lines", "<4>w", "<6>i"]
    # Inherited, but standard error goes elsewhere.
    assert [bool(LINE.match(line)) for line in lines[4:]] == [True, False, True, True]
