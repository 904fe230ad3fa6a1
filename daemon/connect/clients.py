"""The programs that can be connected: the place and format of their configuration."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from .edits import NAME, Edit, Launch, hooks, listed, member, replacement, table

_SECONDS: Final = 10
PLUGINS: Final = Path(__file__).with_name("plugins")
_PLUGIN_MARK: Final = "/daemon/connect/plugins/openclaw"


class Where(msgspec.Struct, frozen=True):
    """Whose files are changed: the user's, or those of a project that is connected alone."""

    home: Path
    env: Mapping[str, str]
    project: Path | None = None

    def config(self) -> Path:
        folder = self.env.get("XDG_CONFIG_HOME", "")
        return Path(folder) if folder.startswith("/") else self.home / ".config"

    def inside(self, name: str, own: Path) -> Path:
        return self.project / name if self.project else own

    def agents_md(self) -> Path | None:
        """The instructions of the project, for all programs; a user has none."""
        return self.project / "AGENTS.md" if self.project else None

    def moved(self, variable: str, default: str) -> Path:
        """A program's folder, or the folder that an environment variable names."""
        folder = self.env.get(variable, "")
        return Path(folder) if folder.startswith("/") else self.home / default


class Program(msgspec.Struct, frozen=True):
    """One program.

    Attributes:
        commands: of which one is in the path if it is installed.
        folder: exists if it was ever used.
        server: the edits that enter the MCP server.
        hooks: the edits that enter the hooks.
        instructions: the file for standing instructions; None: it has none.
        remark: what is left to do by hand.
        hook_remark: the same, of its hooks.
        projects: whether one project can be connected alone.
    """

    title: str
    commands: tuple[str, ...]
    folder: Callable[[Where], Path]
    server: Callable[[Where, Launch], list[Edit]]
    hooks: Callable[[Where, Launch], list[Edit]] = lambda _where, _launch: []
    instructions: Callable[[Where], Path | None] = lambda _: None
    remark: str = ""
    hook_remark: str = ""
    projects: bool = False


def _stdio(launch: Launch, **more: Any) -> dict[str, Any]:
    command, *arguments = launch.words("mcp", "--start")
    return {**more, "command": command, "args": arguments}


def _group(
    launch: Launch, client: str, matcher: str = "", timeout: int = _SECONDS
) -> dict[str, Any]:
    command = launch.line("hook", "--client", client)
    run = {"type": "command", "command": command, "timeout": timeout}
    return ({"matcher": matcher} if matcher else {}) | {"hooks": [run]}


def _claude_events(launch: Launch, client: str) -> dict[str, dict[str, Any]]:
    plain = _group(launch, client)
    return {
        "SessionStart": _group(launch, client, "startup|resume|clear|compact"),
        **dict.fromkeys(
            ("UserPromptSubmit", "Stop", "PreCompact", "PostCompact", "SessionEnd"), plain
        ),
    }


def _claude(where: Where) -> Path:
    return where.moved("CLAUDE_CONFIG_DIR", ".claude")


def _claude_server(where: Where, launch: Launch) -> list[Edit]:
    if where.project:
        path = where.project / ".mcp.json"
    elif "CLAUDE_CONFIG_DIR" in where.env:
        path = _claude(where) / ".claude.json"
    else:
        path = where.home / ".claude.json"
    # Four short tools; behind a search for tools an agent would not think of them.
    return [member(path, ("mcpServers", NAME), _stdio(launch, type="stdio", alwaysLoad=True))]


def _claude_hooks(where: Where, launch: Launch) -> list[Edit]:
    folder = where.inside(".claude", _claude(where))
    return [hooks(folder / "settings.json", _claude_events(launch, "claude-code"))]


def _desktop(where: Where) -> Path:
    if sys.platform == "darwin":
        return where.home / "Library" / "Application Support" / "Claude"
    return where.config() / "Claude"


def _codex(where: Where) -> Path:
    return where.moved("CODEX_HOME", ".codex")


def _codex_server(where: Where, launch: Launch) -> list[Edit]:
    folder = where.inside(".codex", _codex(where))
    return [table(folder / "config.toml", f"mcp_servers.{NAME}", _stdio(launch))]


def _codex_hooks(where: Where, launch: Launch) -> list[Edit]:
    folder = where.inside(".codex", _codex(where))
    return [hooks(folder / "hooks.json", _claude_events(launch, "codex"))]


def _gemini_hooks(where: Where, launch: Launch) -> list[Edit]:
    # Gemini CLI counts in milliseconds.
    group = _group(launch, "gemini", timeout=_SECONDS * 1000)
    events = ("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd")
    return [hooks(_gemini(where) / "settings.json", dict.fromkeys(events, group))]


def _gemini(where: Where) -> Path:
    return (where.project or where.home) / ".gemini"


def _cursor_hooks(where: Where, launch: Launch) -> list[Edit]:
    path = (where.project or where.home) / ".cursor" / "hooks.json"
    run = {"command": launch.line("hook", "--client", "cursor"), "timeout": _SECONDS}
    return [hooks(path, {"sessionStart": run}, {"version": 1})]


def _json_server(path: Callable[[Where], Path], *keys: str, **more: Any) -> Any:
    def server(where: Where, launch: Launch) -> list[Edit]:
        return [member(path(where), (*keys, NAME), _stdio(launch, **more))]

    return server


def _opencode_server(where: Where, launch: Launch) -> list[Edit]:
    folder = where.project or where.config() / "opencode"
    value = {"type": "local", "command": launch.words("mcp", "--start"), "enabled": True}
    return [member(folder / "opencode.json", ("mcp", NAME), value)]


def _openclaw(where: Where) -> Path:
    return where.moved("OPENCLAW_STATE_DIR", ".openclaw")


_MARK: Final = "The calls of EvoClaw's tiered memory, answered by Thermocline."
# Each script runs in the interpreter that it was started with: a second one takes as long again.
_SHIM: Final = """#!/usr/bin/env python3
\"\"\"{mark}\"\"\"

import os
import site
import sys

packages, kind = {packages!r}, {kind!r}
script, options = {script!r}, {options!r}
if sys.implementation.cache_tag == kind:
    theirs = sys.path[1:]
    sys.path[:] = theirs
    site.addsitedir(packages)
    sys.path[:] = [path for path in sys.path if path not in theirs] + theirs
    from thermocline.daemon.cli.scripts import SCRIPTS

    sys.exit(SCRIPTS[script](options, sys.argv[1:]))
words = [script, str(len(options)), *options, *sys.argv[1:]]
os.execv({python!r}, [{python!r}, "-m", "thermocline.daemon.cli.scripts", *words])
"""
_SCRIPTS: Final = ("memory_cli", "distiller", "tree_search", "tree_rebuild")


def _openclaw_plugin(where: Where, launch: Launch) -> list[Edit]:
    path = _openclaw(where) / "openclaw.json"
    names = {"--agent-id": "agent", "--socket": "socket"}
    options = dict(zip(launch.options[::2], launch.options[1::2], strict=True))
    entry = {
        "enabled": True,
        # Without it OpenClaw calls neither the hook before a turn nor the one behind it.
        "hooks": {"allowConversationAccess": True},
        "config": {names[option]: value for option, value in options.items()},
    }
    return [
        listed(path, ("plugins", "load", "paths"), str(PLUGINS / "openclaw"), _PLUGIN_MARK),
        member(path, ("plugins", "entries", NAME), entry),
        member(path, ("plugins", "slots", "memory"), NAME, shared=True),
    ]


def _openclaw_server(where: Where, launch: Launch) -> list[Edit]:
    folder = _openclaw(where)
    scripts = folder / "workspace" / "skills" / "tiered-memory" / "scripts"
    entry = member(folder / "openclaw.json", ("mcp", "servers", NAME), _stdio(launch))
    return [entry, *(_shim(scripts / f"{name}.py", launch) for name in _SCRIPTS)]


def _shim(path: Path, launch: Launch) -> Edit:
    text = _SHIM.format(
        mark=_MARK,
        packages=sysconfig.get_paths()["purelib"],
        kind=sys.implementation.cache_tag,
        script=path.stem,
        options=launch.options,
        python=sys.executable,
    )
    return replacement(path, text, _MARK)


PROGRAMS: Final[Mapping[str, Program]] = {
    "claude-code": Program(
        "Claude Code",
        ("claude",),
        _claude,
        _claude_server,
        _claude_hooks,
        lambda where: (where.project or _claude(where)) / "CLAUDE.md",
        projects=True,
    ),
    "claude-desktop": Program(
        "Claude Desktop",
        ("claude-desktop",),
        _desktop,
        _json_server(lambda where: _desktop(where) / "claude_desktop_config.json", "mcpServers"),
        remark="restart Claude Desktop",
    ),
    "codex": Program(
        "Codex",
        ("codex",),
        _codex,
        _codex_server,
        _codex_hooks,
        lambda where: (where.project or _codex(where)) / "AGENTS.md",
        hook_remark="Codex asks once whether to trust each new hook: say yes, or they do not run",
        projects=True,
    ),
    "gemini": Program(
        "Gemini CLI",
        ("gemini",),
        _gemini,
        _json_server(lambda where: _gemini(where) / "settings.json", "mcpServers"),
        _gemini_hooks,
        lambda where: (where.project or _gemini(where)) / "GEMINI.md",
        projects=True,
    ),
    "cursor": Program(
        "Cursor",
        ("cursor", "cursor-agent"),
        lambda where: where.home / ".cursor",
        _json_server(
            lambda where: (where.project or where.home) / ".cursor" / "mcp.json", "mcpServers"
        ),
        _cursor_hooks,
        instructions=Where.agents_md,
        projects=True,
    ),
    "vscode": Program(
        "Visual Studio Code",
        ("code", "codium"),
        lambda where: where.config() / "Code",
        _json_server(
            lambda where: where.inside(".vscode", where.config() / "Code/User") / "mcp.json",
            "servers",
            type="stdio",
        ),
        instructions=Where.agents_md,
        projects=True,
    ),
    "opencode": Program(
        "OpenCode",
        ("opencode",),
        lambda where: where.config() / "opencode",
        _opencode_server,
        instructions=lambda where: (where.project or where.config() / "opencode") / "AGENTS.md",
        projects=True,
    ),
    "zed": Program(
        "Zed",
        ("zed", "zeditor"),
        lambda where: where.config() / "zed",
        _json_server(
            lambda where: where.inside(".zed", where.config() / "zed") / "settings.json",
            "context_servers",
            source="custom",
            env={},
        ),
        projects=True,
    ),
    "openclaw": Program(
        "OpenClaw",
        ("openclaw",),
        _openclaw,
        _openclaw_server,
        _openclaw_plugin,
        instructions=lambda where: _openclaw(where) / "workspace" / "AGENTS.md",
        remark="restart OpenClaw's gateway: `openclaw gateway restart`",
    ),
}
