"""The plug-in for OpenClaw, loaded by Node with a stand-in for OpenClaw, and the daemon."""

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

NODE = shutil.which("node")
PLUGIN = files("thermocline.daemon.connect") / "plugins" / "openclaw" / "index.js"
# Runs the hooks that standard input lists, and writes their answers.
HOST = """
import fs from "node:fs";
import plugin from "./index.mjs";
const [config, calls] = JSON.parse(fs.readFileSync(0));
const hooks = {};
plugin.register({
  pluginConfig: config,
  registerMemoryCapability() {},
  registerTool() {},
  on(name, hook) { hooks[name] = hook; },
});
const context = { agentId: "main", sessionKey: "s" };
const answers = [];
for (const [name, event] of calls) answers.push((await hooks[name](event, context)) ?? null);
console.log(JSON.stringify(answers));
"""


@pytest.fixture
def hooks(call: Any, tmp_path: Path) -> Any:
    """Calls hooks of the plug-in, which uses the agent of `call`."""
    package = tmp_path / "node_modules" / "openclaw"
    package.mkdir(parents=True)
    (package / "entry.js").write_text("export const definePluginEntry = (entry) => entry;")
    exports = {"./plugin-sdk/plugin-entry": "./entry.js"}
    (package / "package.json").write_text(json.dumps({"type": "module", "exports": exports}))
    (tmp_path / "index.mjs").write_text(PLUGIN.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "host.mjs").write_text(HOST)

    def run(*calls: tuple[str, Any]) -> list[Any]:
        config = {"socket": str(call.path), "agent": call.agent}
        done = subprocess.run(
            [str(NODE), "host.mjs"], input=json.dumps([config, calls]), capture_output=True,
            text=True, cwd=tmp_path, check=True, timeout=60,
        )  # fmt: skip
        answers: list[Any] = json.loads(done.stdout)
        return answers

    return run


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
def test_a_turn_is_learned_once_whatever_it_begins_or_is_cut_with(call, hooks):
    call.store("Ana drinks green tea")
    messages: list[dict[str, Any]] = []
    calls: list[tuple[str, Any]] = []
    prompts = (
        "My sister is Mia",
        "/etc/hosts was written by my brother Ole",
        "/reset",
        "I live in Graz\0 " + "." * 15_983 + "👍👍",
    )
    for prompt in prompts:
        messages += [{"role": "user", "content": prompt}, {"role": "assistant", "content": "Fine"}]
        calls.append(("agent_end", {"success": True, "messages": [*messages]}))
    question = "/home/ana/tea.md is empty, what does Ana drink? " + "." * 3_951 + "👍"
    *_, answer = hooks(*calls, ("before_prompt_build", {"prompt": question}))
    assert "Ana drinks green tea" in answer["prependContext"]
    heard = call.ok("POST", "/api/files/get", {"path": "chat://openclaw/s"})["text"]
    users = [line[:22] for line in heard.splitlines() if line.startswith("user")]
    assert users == ["user: My sister is Mia", "user: /etc/hosts was w", "user: I live in Graz ."]
