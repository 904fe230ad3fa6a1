"""`thermocline hook`: what Claude Code, Codex, Gemini CLI and Cursor run in a session.

It gives the agent the memories for the turn, and reports the turn to the memory. Nothing here may
delay an agent: no model, no child process, a short wait for the daemon, and no error. Every turn
waits for it, so it imports a tenth of what another verb does (`program.py`).
"""

from __future__ import annotations

import json
import os
import sys

from ..client.wire import Connection, request_of
from ..runtime.places import default_socket
from ..runtime.project import FILE, OFF, OWN, WORDS, Project, project_of, switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from ..client import Client

# A client cuts what is longer: Codex beyond 9,900 characters, Claude Code beyond 10,000.
_MOST_CHARS: Final = 9_000
_TOKENS: Final = 2_000
_PROMPT_CHARS: Final = 4_000
_TURN_CHARS: Final = 16_000
# Claude Code gives the last hook of a session a second and a half.
_PATIENCE_SECONDS: Final = 1.0
_MOST_INPUT: Final = 4 << 20


def add_hook(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hook`."""
    parser.add_argument(
        "--project",
        nargs="?",
        const=False,
        choices=WORDS,
        metavar="WORD",
        help="show or set what the project of this folder does: on, off, or own (an agent"
        " that other projects do not see)",
    )
    parser.epilog = (
        "A client runs this command by itself, with the event on standard input: at the start\n"
        "of a session and at each prompt it prints what the memory has for it, and from\n"
        "prompts and answers the memory learns. Without a daemon it does nothing. Its exit\n"
        "code is 0.\n\n"
        f"The word is kept in the file {FILE}, in the project's folder, for all below it.\n\n"
        "example:\n  thermocline hook --project off"
    )


def run_hook(args: argparse.Namespace, client: Client) -> None:
    """Handle the event on standard input, or the project of this folder."""
    if args.project is not None:
        project = switch(os.getcwd(), args.project) if args.project else project_of(os.getcwd())
        _show(project, as_json=args.json)
        return
    handle(client.socket_path, args.agent)


def handle(socket: str | None, agent: str | None) -> None:
    """Handle the event on standard input; a failure is no reason for the agent to stop."""
    try:
        if sys.stdin.isatty():
            print("thermocline: waiting for an event on standard input", file=sys.stderr)
        event = json.loads(sys.stdin.buffer.read(_MOST_INPUT))
        told = SessionEvent(event, agent).handled(socket or default_socket(os.environ))
        if told:
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
    except Exception:  # noqa: BLE001, S110
        pass


class _Daemon:
    """One connection to the daemon, about one agent's memory."""

    def __init__(self, socket: str, agent: str | None) -> None:
        self._connection = Connection(socket, _PATIENCE_SECONDS)
        self._agent = agent

    def ask(self, path: str, body: Any) -> Any:
        """The answer to a POST; None where it was refused."""
        request = request_of("POST", path, {"agent": self._agent}, {}, body)
        answer = self._connection.converse(request)
        return json.loads(answer.body) if answer.status < 400 else None


class SessionEvent:
    """One event of a session.

    Args:
        given: what the client wrote.
        agent: whose memory; None: the project's, or the daemon's default.
    """

    def __init__(self, given: Mapping[str, Any], agent: str | None) -> None:
        self._given = given
        self._name = self._text("hook_event_name")
        # Cursor tells the folders of its window, and has another word for the session.
        roots = given.get("workspace_roots")
        root = str(roots[0]) if isinstance(roots, list) and roots else ""
        self._project = project_of(self._text("cwd") or root or os.getcwd())
        self._agent = agent or self._project.agent
        session = self._text("session_id") or self._text("conversation_id") or "session"
        # Where it was said can be seen from what is kept of it.
        self._conversation = f"{self._project.name}/{session}"[:200]

    def handled(self, socket: str) -> dict[str, Any] | None:
        """Handle the event; return the answer for the client."""
        handler = _HANDLERS.get(self._name)
        # What a subagent is told to do, no person has said.
        if handler is None or self._project.word == OFF or self._text("agent_id"):
            return None
        block = handler(self, _Daemon(socket, self._agent))
        if not block or len(block) > _MOST_CHARS:
            return None
        if self._name == "sessionStart":
            return {"additional_context": block}
        inner = {"hookEventName": self._name, "additionalContext": block}
        return {"hookSpecificOutput": inner}

    def started(self, daemon: _Daemon) -> str:
        """What is always worth knowing."""
        return self._block(daemon, {})

    def prompted(self, daemon: _Daemon) -> str:
        """The memories that answer the prompt, which is observed too."""
        prompt = self._text("prompt")
        if not prompt.strip() or prompt.startswith("/"):
            return ""
        block = self._block(daemon, {"query": prompt[:_PROMPT_CHARS], "found": True})
        if self._name == "UserPromptSubmit":
            # Gemini CLI tells it once more with the answer.
            self._observe(daemon, [("user", prompt)])
        return block

    def answered(self, daemon: _Daemon) -> str:
        """Observe the agent's answer, and the prompt if the client repeats it."""
        answer = self._text("last_assistant_message") or self._text("prompt_response")
        prompt = self._text("prompt")
        self._observe(daemon, [("user", prompt), ("assistant", answer)])
        return ""

    def compacted(self, daemon: _Daemon) -> str:
        """Observe the summary of a compaction."""
        self._observe(daemon, [("assistant", self._text("compact_summary"))])
        return ""

    def ended(self, daemon: _Daemon) -> str:
        """End the conversation, or its compacted part: it becomes an episode."""
        self._observe(daemon, [], end=True)
        return ""

    def _observe(self, daemon: _Daemon, said: list[tuple[str, str]], *, end: bool = False) -> None:
        turns = [
            {"role": role, "text": text[:_TURN_CHARS]}
            for role, text in said
            if text.strip() and not text.startswith("/")
        ]
        if turns or end:
            body = {"conversation": self._conversation, "turns": turns, "end": end}
            daemon.ask("/api/observe", body)

    def _block(self, daemon: _Daemon, asked: dict[str, Any]) -> str:
        body = {"max_tokens": _TOKENS, **asked}
        return str((daemon.ask("/api/context", body) or {}).get("text") or "")

    def _text(self, name: str) -> str:
        value = self._given.get(name)
        return value if isinstance(value, str) else ""


# By the names of Claude Code and Codex, and of Gemini CLI and Cursor where they differ.
_HANDLERS: Final[dict[str, Callable[[SessionEvent, _Daemon], str]]] = {
    "SessionStart": SessionEvent.started,
    "sessionStart": SessionEvent.started,
    "UserPromptSubmit": SessionEvent.prompted,
    "BeforeAgent": SessionEvent.prompted,
    "Stop": SessionEvent.answered,
    "AfterAgent": SessionEvent.answered,
    "PreCompact": SessionEvent.ended,
    "PreCompress": SessionEvent.ended,
    "PostCompact": SessionEvent.compacted,
    "SessionEnd": SessionEvent.ended,
}


def _show(project: Project, *, as_json: bool) -> None:
    told = {"project": project.name, "folder": project.root, "memory": project.word}
    if as_json:
        print(json.dumps({**told, "agent": project.agent}))
        return
    says = {OFF: "off", OWN: f"its own, agent {project.agent}"}.get(project.word, "on")
    print(f"{project.name} ({project.root}): {says}")
