"""Claude Code, Codex, Gemini CLI and OpenClaw use the memory, once one command connects them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from client_programs import Desk
from daemon_process import Daemon, wait_until
from fake_models import FakeModel, UseTool

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]
TOLD = "I always drink green tea, never coffee. Please greet me."
ASKED = "What should you bring me to drink?"
CODE = "The gate code of the harbour is 4711"
REMEMBER = UseTool("remember", {"text": CODE})
RECALL = UseTool("recall", {"query": "gate code of the harbour"})


def connect(desk: Desk, client: str, *options: str) -> str:
    """What a person types, in a home where the client has never run."""
    return desk.run(
        "thermocline", "--socket", str(desk.socket), "connect", client, *options, "--yes"
    )


def learned(daemon: Daemon, words: str) -> Callable[[], bool]:
    """Whether what was said in a session has become a memory."""

    def is_stored() -> bool:
        with daemon.client() as client:
            return any(words in one.text for one in client.list(limit=50).results)

    return is_stored


def calls(*tools: UseTool) -> Any:
    """A model that calls the tools one after the other, as soon as each is in its list."""
    waiting = list(tools)

    def reply(_: str, offered: list[str]) -> str | UseTool:
        there = any(name.endswith(waiting[0].name) for name in offered) if waiting else False
        return waiting.pop(0) if there else "Understood."

    return reply


def first_and_second(say: Callable[[str], str], model: FakeModel, daemon: Daemon) -> None:
    """The first session says something and keeps something; the second has both by itself."""
    model.script = calls(REMEMBER)
    say(TOLD)
    wait_until(learned(daemon, "green tea"), "the preference is kept")
    assert learned(daemon, CODE)()
    model.script = calls(RECALL)
    del model.requests[:]
    say(ASKED)
    first, last = (json.dumps(model.requests[at]) for at in (0, -1))
    assert "<thermocline-context" in first
    assert "green tea" in first
    # The call's answer comes after what the context has of it.
    assert last.count("4711") > first.count("4711")


# Claude Code


def claude(desk: Desk, model: FakeModel, prompt: str, *more: str) -> str:
    env = {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # As with Anthropic's own address: tools are hidden behind a search.
        "ENABLE_TOOL_SEARCH": "true",
        "IS_SANDBOX": "1",
    }
    options = ("--output-format", "json", "--dangerously-skip-permissions", *more)
    return desk.run("claude", "-p", prompt, *options, env=env)


def test_claude_code_uses_the_memory_once_it_is_connected(desk, model, daemon):
    connect(desk, "claude-code")
    first_and_second(lambda prompt: claude(desk, model, prompt), model, daemon)
    ours = [one for one in model.requests[0]["tools"] if "thermocline" in one["name"]]
    assert {one["name"].rpartition("__")[2] for one in ours} == {
        *("recall", "remember", "context", "forget")
    }
    assert not any(one.get("defer_loading") for one in ours)
    connect(desk, "claude-code", "--undo")
    left = json.loads((desk.home / ".claude.json").read_text())
    assert "thermocline" not in left.get("mcpServers", {})
    assert not (desk.home / ".claude" / "settings.json").exists()


def test_the_plug_in_alone_makes_claude_code_recall(desk, model, daemon):
    folder = desk.run("thermocline", "connect", "claude-code", "--plugin").strip()
    desk.run("claude", "plugin", "validate", folder, "--strict")
    with daemon.client() as client:
        client.store("Ana always drinks green tea")
        client.store(CODE)
    model.script = calls(RECALL)
    claude(desk, model, "What does Ana drink?", "--plugin-dir", folder)
    assert "green tea" in json.dumps(model.requests[0])
    assert "4711" in json.dumps(model.requests[-1])


# Codex


def codex(desk: Desk, prompt: str) -> str:
    options = (
        *("--skip-git-repo-check", "--dangerously-bypass-hook-trust"),
        "--dangerously-bypass-approvals-and-sandbox",
    )
    return desk.run("codex", "exec", *options, prompt, env={"FAKE_KEY": "dummy"})


def test_codex_uses_the_memory_once_it_is_connected(desk, model, daemon):
    config = desk.write(
        ".codex/config.toml",
        f"""
model = "fake"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "{model.url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
""",
    )
    before = config.read_text()
    connect(desk, "codex")
    first_and_second(lambda prompt: codex(desk, prompt), model, daemon)
    connect(desk, "codex", "--undo")
    assert "thermocline" not in config.read_text()
    assert config.read_text().startswith(before.rstrip())
    assert not (desk.home / ".codex" / "hooks.json").exists()


# Gemini CLI


def gemini(desk: Desk, model: FakeModel, prompt: str) -> str:
    env = {"GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_API_KEY": "dummy"}
    options = ("--skip-trust", "--approval-mode", "yolo", "--model", "gemini-2.5-flash")
    return desk.run("gemini", *options, "--prompt", prompt, env=env)


def test_gemini_cli_uses_the_memory_once_it_is_connected(desk, model, daemon):
    mine = {
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    }
    settings = desk.write(".gemini/settings.json", mine)
    connect(desk, "gemini")
    first_and_second(lambda prompt: gemini(desk, model, prompt), model, daemon)
    connect(desk, "gemini", "--undo")
    left = json.loads(settings.read_text())
    assert {key: left[key] for key in mine} == mine
    assert "thermocline" not in settings.read_text()


# OpenClaw


def openclaw(desk: Desk, prompt: str, session: str) -> str:
    options = ("--local", "--agent", "main", "--session-id", session, "--json")
    return desk.run("openclaw", "agent", *options, "-m", prompt)


def openclaw_config(model: FakeModel) -> dict[str, Any]:
    limits = {"reasoning": False, "input": ["text"], "contextWindow": 128_000, "maxTokens": 4_096}
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    provider = {
        "baseUrl": f"{model.url}/v1",
        "apiKey": "dummy",
        "api": "openai-completions",
        "models": [{"id": "m", "name": "m", "cost": cost, **limits}],
    }
    return {
        "models": {"providers": {"f": provider}},
        "agents": {"defaults": {"model": {"primary": "f/m"}, "skipBootstrap": True}},
    }


def test_openclaw_uses_the_memory_once_it_is_connected(desk, model, daemon):
    config = desk.write(".openclaw/openclaw.json", openclaw_config(model))
    before = json.loads(config.read_text())
    connect(desk, "openclaw")
    openclaw(desk, TOLD, "first")
    wait_until(learned(daemon, "green tea"), "the preference is kept")
    with daemon.client() as client:
        client.store(CODE)
    searched = UseTool("memory_search", {"query": "gate code of the harbour"})
    kept = UseTool("tool_call", {"id": "thermocline__remember", "args": {"text": "Tide is at 6"}})
    model.script = calls(searched, kept)
    del model.requests[:]
    openclaw(desk, ASKED, "second")
    turn = next(one for one in model.requests[0]["messages"] if "bring me" in json.dumps(one))
    assert "<thermocline-context" in json.dumps(turn)
    assert "green tea" in json.dumps(turn)
    results = [one for one in model.requests[-1]["messages"] if one["role"] == "tool"]
    assert "4711" in json.dumps(results[0])
    assert learned(daemon, "Tide is at 6")()
    offered = json.dumps(model.requests[0]["tools"])
    assert "memory_get" in offered
    assert "resources_list" not in offered
    connect(desk, "openclaw", "--undo")
    left = json.loads(config.read_text())
    assert {key: left[key] for key in before} == before
    assert "thermocline" not in json.dumps(left)
