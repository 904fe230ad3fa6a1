"""`thermocline connect`, in a home folder of the test's own."""

import json
import os
import select
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import shells

CLIENTS = (
    "claude-code", "claude-desktop", "codex", "gemini", "cursor", "vscode", "opencode", "zed",
    "openclaw",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, which the commands take for the user's."""
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def out(*words: str | Path, code: int = 0) -> str:
    """What `connect` prints."""
    return shells.run("connect", *words, code=code).stdout


def tree(folder: Path) -> dict[str, str]:
    """All files below a folder with their texts."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_connected_once_and_taken_out_without_a_trace(home, client):
    shown = out(client, "--print")
    assert not tree(home)
    assert "thermocline" in shown
    assert "is connected" in out(client, "--yes")
    made = tree(home)
    assert any("mcp" in text for text in made.values())
    assert "connected already" in out(client, "--yes")
    assert tree(home) == made
    listed = {one["client"]: one for one in json.loads(out("--list", "--json"))}
    assert listed[client]["server"]
    assert "is disconnected" in out(client, "--undo", "--yes")
    assert not tree(home)
    assert "not connected" in out(client, "--undo", "--yes")


@pytest.mark.parametrize(
    ("file", "client"),
    [(".cursor/hooks.json", "cursor"), (".cursor/mcp.json", "cursor"),
     (".claude/settings.json", "claude-code"), (".codex/AGENTS.md", "codex")],
)  # fmt: skip
@pytest.mark.parametrize("text", ["", "{}", "{}\n", '{"version": 1}\n'])
def test_a_file_that_said_nothing_is_as_it_was_after_an_undo(home, client, file, text):
    (home / file).parent.mkdir()
    (home / file).write_text(text)
    out(client, "--instructions", "--yes") if file.endswith(".md") else out(client, "--yes")
    assert (home / file).read_text() != text
    out(client, "--undo", "--yes")
    assert tree(home) == {file: text}


def test_a_version_that_cursors_hooks_did_not_have_goes_with_ours(home):
    file = home / ".cursor" / "hooks.json"
    file.parent.mkdir()
    file.write_text(text := '{"hooks": {"stop": [{"command": "notify"}]}}\n')
    out("cursor", "--yes")
    assert json.loads(file.read_text())["version"] == 1
    out("cursor", "--undo", "--yes")
    assert tree(home) == {".cursor/hooks.json": text}


def test_a_second_way_to_connect_leaves_no_copy_of_a_file_that_is_ours_alone(home):
    out("claude-code", "--yes")
    assert "is connected" in out("--agent-id", "work", "claude-code", "--yes")
    assert sorted(tree(home)) == [".claude.json", ".claude/settings.json"]
    out("claude-code", "--undo", "--yes")
    assert not tree(home)


def test_what_others_wrote_stays_as_it_is(home):
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    own = {"hooks": [{"type": "command", "command": "notify done"}]}
    before = json.dumps({"model": "x", "hooks": {"Stop": [own]}}, indent=4)
    settings.write_text(before)
    settings.chmod(0o640)
    out("claude-code", "--yes")
    changed = json.loads(settings.read_text())
    assert changed["model"] == "x"
    assert changed["hooks"]["Stop"][0] == own
    assert changed["hooks"]["Stop"][1]["hooks"][0]["command"].endswith("hook --client claude-code")
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640
    copy = settings.with_name("settings.json.before-thermocline")
    assert copy.read_text() == before
    out("claude-code", "--undo", "--yes")
    assert json.loads(settings.read_text()) == json.loads(before)


def test_codex_gets_a_table_hooks_and_instructions(home):
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text('model = "o"  # mine\n')
    (folder / "AGENTS.md").write_text("Be brief.\n")
    assert "trust" not in out("codex", "--no-hooks", "--yes")
    assert "trust" in out("codex", "--instructions", "--yes")
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["mcp_servers"]["thermocline"]["args"] == ["mcp", "--start"]
    hooks = json.loads((folder / "hooks.json").read_text())["hooks"]
    assert {"SessionStart", "UserPromptSubmit", "Stop"} <= hooks.keys()
    text = (folder / "AGENTS.md").read_text()
    assert text.startswith("Be brief.\n")
    assert "thermocline reflect add" in text
    out("codex", "--undo", "--yes")
    assert (folder / "config.toml").read_text() == 'model = "o"  # mine\n'
    assert (folder / "AGENTS.md").read_text() == "Be brief.\n"


def test_a_project_alone_is_connected_and_the_command_runs_with_the_options_it_was_given(home):
    project = home / "project"
    project.mkdir()
    out("claude-code", "--project", project, "--yes")
    assert sorted(tree(home)) == ["project/.claude/settings.json", "project/.mcp.json"]
    options = ["--agent-id", "work", "--socket", str(home / "s.sock")]
    out(*options, "cursor", "--yes")
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["thermocline"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["mcp", "--start", *options]


@pytest.mark.parametrize("link", [".cursor", ".cursor/mcp.json"])
def test_a_link_stays_one_and_one_to_nothing_is_refused(home, link):
    target = home / "dotfiles" / "there"
    (home / link).parent.mkdir(exist_ok=True)
    (home / link).symlink_to(target)
    said = shells.run("connect", "cursor", "--yes", code=1)
    assert f"{home / link}' is a link to" in said.stderr
    assert "does not exist" in said.stderr
    assert not target.parent.exists()
    out("cursor", "--undo", "--yes")
    assert (home / link).is_symlink()
    target.parent.mkdir()
    target.mkdir() if link == ".cursor" else target.write_text('{"mcpServers": {}}\n')
    out("cursor", "--yes")
    assert (home / link).is_symlink()
    assert "thermocline" in (home / ".cursor" / "mcp.json").read_text()


def test_a_link_out_of_a_project_is_refused_with_the_file_that_it_means(home):
    project = home / "somebody" / "elses"
    project.mkdir(parents=True)
    target = home / ".profile.json"
    target.write_text("{}")
    (project / ".mcp.json").symlink_to(target)
    said = shells.run("connect", "claude-code", "--project", project, "--yes", code=1)
    assert str(target) in said.stderr
    assert target.read_text() == "{}"
    (project / ".mcp.json").unlink()
    (home / ".ssh").mkdir()
    (project / ".claude").symlink_to(home / ".ssh")
    said = shells.run("connect", "claude-code", "--project", project, "--yes", code=1)
    assert str(home / ".ssh") in said.stderr
    assert not list((home / ".ssh").iterdir())
    assert not (project / ".mcp.json").exists()


def test_what_changes_while_it_asks_is_shown_again(home):
    config = home / ".claude.json"
    config.write_text('{"numStartups": 1}')
    ours, theirs = os.openpty()
    words = [*shells.COMMAND, "connect", "claude-code"]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        _read_until(ours, "write this?")
        config.write_text('{"numStartups": 2}')
        os.write(ours, b"y\n")
        assert '"numStartups": 2' in _read_until(ours, "write this?")
        os.write(ours, b"y\n")
        _read_until(ours, "is connected")
        assert running.wait(60) == 0
    os.close(ours)
    changed = json.loads(config.read_text())
    assert changed["numStartups"] == 2
    assert "thermocline" in changed["mcpServers"]


def _read_until(terminal: int, text: str) -> str:
    shown = ""
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], 60)
        assert ready, shown
        shown += os.read(terminal, 4096).decode()
    return shown


def test_a_file_that_is_not_json_is_left_alone_and_what_to_write_by_hand_is_printed(home):
    config = home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    config.write_text("{ not json")
    refused = shells.run("connect", "cursor", "--yes", code=1).stderr
    assert "line 1 is not valid JSON" in refused
    assert "use --print" in refused
    assert '"thermocline"' in out("cursor", "--print")
    assert out("--instructions").startswith("## Long-term memory")
    assert tree(home) == {".cursor/mcp.json": "{ not json"}


# Callers run the scripts with the interpreter of the system, which has none of our packages.
BASE_PYTHON = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
SCRIPTS = ".openclaw/workspace/skills/tiered-memory/scripts"


@pytest.fixture
def scripts(home: Path, call: Any) -> Path:
    """EvoClaw's scripts, replaced."""
    folder = home / SCRIPTS
    folder.mkdir(parents=True)
    for name in ("memory_cli", "distiller", "tree_search", "tree_rebuild"):
        (folder / f"{name}.py").write_text("print('the old one')\n")
    said = out("--socket", call.path, "--agent-id", call.agent, "openclaw", "--yes")
    assert "cron" in said
    return folder


def test_evoclaws_script_is_replaced_by_one_that_answers_in_json(scripts, call):
    script = scripts / "memory_cli.py"
    stored = _script(script, "store", "--text", "Ana prefers tea", "--category", "people/ana")
    assert {"id", "category", "tier"} <= stored.keys()
    assert stored["tier"] == "warm"
    assert call.ok("GET", f"/api/memory/{stored['id']}")["importance"] == 0.5
    found = _script(script, "retrieve", "--query", "tea", "--limit", "5")
    assert found[0]["text"] == "Ana prefers tea"
    assert _script(script, "consolidate", "--mode", "quick")
    deep = ("store", "--category", "a/b/c/d/e", "--importance", "0.9", "--text")
    assert _script(script, *deep, "deep down")["category"] == "a/b/c/d"
    shown = _said(script, "tree", "--show").stdout
    assert shown.startswith("Memory Tree Index\n")
    counts = [line.strip() for line in shown.split("\n") if "Memories:" in line]
    assert counts.count("Memories: warm=1, cold=0") == 2
    assert _said(script, "tree").stdout == shown
    assert _script(script, "tree", "--add", "boat", "The ketch") == {"path": "boat", "added": True}
    assert _said(script, "store", "--text", "", "--category", "x", code=1).stdout
    out("openclaw", "--undo", "--yes")
    assert script.read_text() == "print('the old one')\n"


def test_evoclaws_other_scripts_answer_or_say_what_to_call(scripts, call, tmp_path):
    call.store("Ada likes oolong", category="people/ada")
    text = "User: Let's deploy to testnet first. Agent: Good idea, safer that way."
    note = tmp_path / "talk.txt"
    note.write_text(text)
    told = _script(scripts / "distiller.py", "--file", str(note), "--core-summary")
    assert told["distilled"]["fact"] == "Let's deploy to testnet first"
    assert {"mode", "timestamp", "original_size", "distilled_size", "core_size"} <= told.keys()
    assert _script(scripts / "distiller.py", "--text", text, "--mode", "rule", "--max-bytes", "60")
    file = tmp_path / "answer.json"
    query = ("--query", "what does Ada drink?", "--tree-file", "memory/memory-tree.json")
    search = scripts / "tree_search.py"
    found = _script(search, *query)
    assert [one["path"] for one in found["results"]] == ["people/ada"]
    assert (found["count"], found["mode"]) == (1, "keyword")
    assert _said(search, *query, "--output", str(file)).stdout == ""
    assert json.loads(file.read_text()) == found
    prompt = tmp_path / "prompt.txt"
    assert _said(search, *query, "--mode", "llm", "--llm-prompt-file", str(prompt)).stdout == ""
    assert " ada: Ada likes oolong" in prompt.read_text()
    wrong = _said(search, *query, "--mode", "llm", "--llm-endpoint", "ftp://x", code=1).stderr
    assert "--llm-endpoint: expected" in wrong
    away = _said(scripts / "distiller.py", "--file", str(tmp_path / "none.txt"), code=1).stderr
    assert away == f"thermocline: cannot open {tmp_path / 'none.txt'}: No such file or directory\n"
    done = _said(scripts / "tree_rebuild.py", "--tree-file", "x", "--dry-run", code=2)
    assert "thermocline consolidate --mode monthly --dry-run" in done.stderr


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace counts the processes")
def test_a_script_of_evoclaw_starts_no_second_interpreter(scripts, tmp_path):
    trace = tmp_path / "trace"
    words = ["strace", "-f", "-e", "trace=execve", "-o", str(trace), BASE_PYTHON]
    done = subprocess.run(
        [*words, scripts / "memory_cli.py", "metrics"], capture_output=True, check=False
    )
    if b"PTRACE" in done.stderr:
        pytest.skip("strace may not trace here")
    assert json.loads(done.stdout)
    assert trace.read_text().count("execve(") == 1


def test_a_script_of_evoclaw_runs_under_another_interpreter_too(scripts):
    script = scripts / "memory_cli.py"
    tag = repr(sys.implementation.cache_tag)
    assert tag in script.read_text()
    script.write_text(script.read_text().replace(tag, "'other-99'"))
    assert _script(script, "store", "--text", "--odd one", "--category", "x")["tier"] == "warm"


def _script(script: Path, *words: str) -> Any:
    return json.loads(_said(script, *words).stdout)


def _said(script: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [BASE_PYTHON, script, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done
    return done


def test_openclaws_json5_is_entered_and_taken_out_and_the_rest_stays(home):
    config = home / ".openclaw" / "openclaw.json"
    config.parent.mkdir()
    before = "{\n  channels: { telegram: { botToken: 'it\\'s \"x\"' } }, // mine\n  $x: [1],\n}\n"
    config.write_text(before)
    out("openclaw", "--yes")
    assert "  channels: { telegram: { botToken: 'it\\'s \"x\"' } }, // mine\n" in config.read_text()
    listed = {one["client"]: one for one in json.loads(out("--list", "--json"))}
    assert listed["openclaw"]["server"]
    out("openclaw", "--undo", "--yes")
    assert config.read_text() == before.replace("[1],", "[1]")


def test_a_file_with_the_line_ends_of_windows_keeps_them(home):
    config = home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    before = b'{\r\n\t"mcpServers": {\r\n\t\t"a": {"url": "b"} // c\r\n\t}\r\n}\r\n'
    config.write_bytes(before)
    shown = out("cursor", "--yes", "--no-hooks")
    assert '+\t\t"thermocline": {' in shown
    assert config.read_bytes().count(b"\n") == config.read_bytes().count(b"\r\n") == 9
    out("cursor", "--undo", "--yes")
    assert config.read_bytes() == before


def test_tables_and_instructions_have_the_line_ends_of_windows_if_their_file_has(home):
    folder = home / ".codex"
    folder.mkdir()
    files = {"config.toml": b'model = "o"\r\n[mcp_servers.a]\r\ncommand = "b"\r\n'}
    files["AGENTS.md"] = b"# Mine\r\n\r\nUse tabs.\r\n"
    for name, before in files.items():
        (folder / name).write_bytes(before)
    out("codex", "--yes", "--instructions")
    for name, before in files.items():
        now = (folder / name).read_bytes()
        assert len(now) > len(before)
        assert now.count(b"\n") == now.count(b"\r\n")
    out("codex", "--undo", "--yes")
    assert {name: (folder / name).read_bytes() for name in files} == files


def test_openclaw_gets_the_plug_in_in_the_place_of_its_memory(home):
    config = home / ".openclaw" / "openclaw.json"
    config.parent.mkdir()
    before = {"plugins": {"load": {"paths": ["/their/own"]}, "slots": {"memory": "other"}}}
    config.write_text(json.dumps(before))
    out("openclaw", "--yes", "--agent-id", "work")
    plugins = json.loads(config.read_text())["plugins"]
    theirs, ours = plugins["load"]["paths"]
    assert theirs == "/their/own"
    assert (Path(ours) / "openclaw.plugin.json").is_file()
    assert plugins["slots"]["memory"] == "thermocline"
    entry = plugins["entries"]["thermocline"]
    assert entry["config"] == {"agent": "work"}
    assert entry["hooks"]["allowConversationAccess"] is True
    out("openclaw", "--undo", "--yes")
    # The memory that it had before answers again.
    assert json.loads(config.read_text()) == before


def test_the_folder_of_a_plug_in_is_printed(home):
    folder = Path(out("claude-code", "--plugin").strip())
    manifest = json.loads((folder / ".claude-plugin" / "plugin.json").read_text())
    assert manifest["name"] == "thermocline"
    hooks = json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]
    out("claude-code", "--yes")
    written = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]
    assert hooks.keys() == written.keys()


def test_a_wrong_call_says_what_is_wrong(home):
    for words, told in [
        (("cursor", "--plugin"), "no plug-in for Cursor"),
        (("emacs",), "expected one of"),
        (("--yes",), "which client?"),
        (("claude-desktop", "--project"), "no configuration of projects"),
        (("claude-desktop", "--instructions"), "no file for instructions"),
        (("cursor", "--print", "--undo"), "exclude each other"),
        (("cursor",), "give --yes"),
        (("cursor", "--project", "/nowhere/at/all"), "not a folder"),
    ]:
        assert told in shells.run("connect", *words, code=2).stderr
        assert not tree(home)
    no_agent = shells.run("connect", "cursor", "--yes", "--agent-id", "a b", code=1).stderr
    assert "cannot use 'a b' as an agent id" in no_agent
    assert not tree(home)
