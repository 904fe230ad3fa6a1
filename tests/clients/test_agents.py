"""Claude Code, Codex and OpenClaw use the memory by themselves, in whole turns."""

from __future__ import annotations

import json
from typing import Any

import pytest
from client_programs import THERMOCLINE, Desk
from daemon_process import Daemon, wait_until
from fake_models import FakeModel, UseTool

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]
TOLD = "I always drink green tea, never coffee. Please greet me."
ASKED = "What should you bring me to drink?"
HOOK = f"{THERMOCLINE} hook"
MCP = {"command": str(THERMOCLINE), "args": ["mcp"]}


def hooks(events: tuple[str, ...]) -> dict[str, Any]:
    one = {"hooks": [{"type": "command", "command": HOOK, "timeout": 10}]}
    return {"hooks": {event: [one] for event in events}}


def learned(daemon: Daemon, words: str) -> bool:
    """Whether what was said in a session has become a memory."""
    with daemon.client() as client:
        return any(words in one.text for one in client.list(limit=50).results)


def recalls(script: list[UseTool]) -> Any:
    """A model that calls the tools one after the other, and then says what it got."""
    waiting = list(script)

    def reply(_: str, tools: list[str]) -> str | UseTool:
        offered = any(name.endswith(waiting[0].name) for name in tools) if waiting else False
        return waiting.pop(0) if offered else "Understood."

    return reply


# Claude Code


def claude(desk: Desk, model: FakeModel, prompt: str, *more: str) -> str:
    env = {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # All tools are listed at once.
        "ENABLE_TOOL_SEARCH": "false",
    }
    options = ("--output-format", "json", "--dangerously-skip-permissions")
    return desk.run("claude", "-p", prompt, *options, *more, env=env | {"IS_SANDBOX": "1"})


@pytest.fixture
def claude_desk(desk: Desk) -> Desk:
    events = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "PostCompact", "SessionEnd")
    desk.write(".claude/settings.json", hooks(events))
    desk.write("mcp.json", {"mcpServers": {"thermocline": MCP}})
    return desk


def test_claude_code_recalls_in_a_second_session_what_the_first_was_told(
    claude_desk: Desk, model: FakeModel, daemon: Daemon
) -> None:
    claude(claude_desk, model, TOLD)
    wait_until(lambda: learned(daemon, "green tea"), "the preference is kept")
    del model.requests[:]
    claude(claude_desk, model, ASKED)
    assert "<thermocline-context" in model.said
    assert "green tea" in model.said


def test_claude_code_calls_the_tools(claude_desk: Desk, model: FakeModel, daemon: Daemon) -> None:
    model.script = recalls(
        [
            UseTool("remember", {"text": "The gate code of the harbour is 4711"}),
            UseTool("recall", {"query": "gate code of the harbour"}),
        ]
    )
    config = str(claude_desk.home / "mcp.json")
    claude(claude_desk, model, "Keep this.", "--mcp-config", config, "--strict-mcp-config")
    with daemon.client() as client:
        assert [one.text for one in client.recall("gate code").results] == [
            "The gate code of the harbour is 4711"
        ]
    results = [
        block
        for message in model.requests[-1]["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert "4711" in json.dumps(results[-1])


# Codex


@pytest.fixture
def codex_desk(desk: Desk, model: FakeModel) -> Desk:
    events = ("SessionStart", "UserPromptSubmit", "Stop")
    desk.write(".codex/hooks.json", hooks(events))
    desk.write(
        ".codex/config.toml",
        f"""
model = "fake"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "{model.url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
[mcp_servers.thermocline]
command = "{THERMOCLINE}"
args = ["mcp"]
env = {{ THERMOCLINE_SOCKET = "{desk.socket}" }}
""",
    )
    return desk


def codex(desk: Desk, prompt: str) -> str:
    options = (
        *("--skip-git-repo-check", "--dangerously-bypass-hook-trust"),
        "--dangerously-bypass-approvals-and-sandbox",
    )
    return desk.run("codex", "exec", *options, prompt, env={"FAKE_KEY": "dummy"})


def test_codex_recalls_in_a_second_session_what_the_first_was_told(
    codex_desk: Desk, model: FakeModel, daemon: Daemon
) -> None:
    codex(codex_desk, TOLD)
    wait_until(lambda: learned(daemon, "green tea"), "the preference is kept")
    del model.requests[:]
    codex(codex_desk, ASKED)
    assert "<thermocline-context" in model.said
    assert "green tea" in model.said


def test_codex_calls_the_tools(codex_desk: Desk, model: FakeModel, daemon: Daemon) -> None:
    with daemon.client() as client:
        client.store("The gate code of the harbour is 4711")
    model.script = recalls([UseTool("recall", {"query": "gate code of the harbour"})])
    codex(codex_desk, "Open the gate.")
    outputs = [
        one for one in model.requests[-1]["input"] if one.get("type") == "function_call_output"
    ]
    assert "4711" in json.dumps(outputs)


# OpenClaw


def openclaw(desk: Desk, prompt: str, session: str) -> str:
    options = ("--local", "--agent", "main", "--session-id", session, "--json")
    return desk.run("openclaw", "agent", *options, "-m", prompt)


def test_openclaw_calls_the_tools_in_a_second_session(
    desk: Desk, model: FakeModel, daemon: Daemon
) -> None:
    limits = {"reasoning": False, "input": ["text"], "contextWindow": 128_000, "maxTokens": 4_096}
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    provider = {
        "baseUrl": f"{model.url}/v1",
        "apiKey": "dummy",
        "api": "openai-completions",
        "models": [{"id": "m", "name": "m", "cost": cost, **limits}],
    }
    server = MCP | {"env": {"THERMOCLINE_SOCKET": str(desk.socket)}}
    desk.write(
        ".openclaw/openclaw.json",
        {
            "models": {"providers": {"f": provider}},
            "agents": {"defaults": {"model": {"primary": "f/m"}, "skipBootstrap": True}},
            "mcp": {"servers": {"thermocline": server}},
            # Else the model has to search for a tool before it can call it.
            "tools": {"toolSearch": False},
        },
    )
    model.script = recalls([UseTool("remember", {"text": "The gate code of the harbour is 4711"})])
    openclaw(desk, "Keep this.", "first")
    assert learned(daemon, "4711")
    model.script = recalls([UseTool("recall", {"query": "gate code of the harbour"})])
    del model.requests[:]
    openclaw(desk, "Open the gate.", "second")
    results = [one for one in model.requests[-1]["messages"] if one["role"] == "tool"]
    assert "4711" in json.dumps(results)
    offered = json.dumps(model.requests[0].get("tools"))
    assert "resources_list" not in offered
