"""`thermocline hook`: what Claude Code, Codex, Gemini CLI and Cursor run in a session.

It gives the agent the memories for the turn, and reports the turn to the memory. Nothing here may
delay an agent: no model, no child process, a short wait for the daemon, and no error. Every turn
waits for it, so it imports a tenth of what another verb does (`program.py`).
"""

from __future__ import annotations

import _thread
import io
import json
import os
import sys

from ..client.wire import Connection, named, perform, request_of
from ..runtime.places import default_socket
from ..runtime.project import OFF, OWN, Project, project_of, switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from ..client.caller import Caller
    from .usage import Args

# A client cuts what is longer: Codex beyond 9,900 characters, Claude Code beyond 10,000.
_MOST_CHARS: Final = 9_000
_TOKENS: Final = 2_000
_PROMPT_CHARS: Final = 4_000
_TURN_CHARS: Final = 16_000
# Claude Code gives the last hook of a session a second and a half.
_PATIENCE_SECONDS: Final = 1.0
# For everything, however slowly standard input or the daemon send.
_DEADLINE_SECONDS: Final = 2.0
_MOST_INPUT: Final = 4 << 20


def run(args: Args, client: Caller) -> None:
    """Handle the event on standard input, or the project of this folder."""
    if args.project is not None:
        project = switch(os.getcwd(), args.project) if args.project else project_of(os.getcwd())
        _show(project, as_json=bool(args.json))
        return
    handle(client.socket_path, args.agent, args.client)


def handle(socket: str | None, agent: str | None, program: str | None = None) -> None:
    """Handle the event on standard input; a failure is no reason for the agent to stop.

    At the deadline it returns with the answer so far; the process can end then.
    """
    answers: list[dict[str, Any]] = []
    ended = _thread.allocate_lock()
    ended.acquire()

    def run() -> None:
        try:
            event = json.loads(_input())
            session = SessionEvent(event, agent, answers.append, program)
            session.handle(socket or default_socket(os.environ))
        except Exception:  # noqa: BLE001, S110
            pass
        finally:
            ended.release()

    waits = sys.stdin.isatty()
    if waits:
        print("thermocline: waiting for an event on standard input", file=sys.stderr)
    # A plain thread: it does not hold up the end of the process, and takes no time to import.
    _thread.start_new_thread(run, ())
    ended.acquire(timeout=-1 if waits else _DEADLINE_SECONDS)
    try:
        for answer in answers[:1]:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    except (OSError, ValueError):
        pass


def _input() -> bytes:
    """Standard input, read without its buffer, whose lock would hold up the end of the process."""
    try:
        source = sys.stdin.fileno()
    except io.UnsupportedOperation:
        return sys.stdin.buffer.read(_MOST_INPUT)
    pieces, room = [], _MOST_INPUT
    while room and (piece := os.read(source, room)):
        pieces.append(piece)
        room -= len(piece)
    return b"".join(pieces)


class _Daemon:
    """One connection to the daemon, about one agent's memory."""

    def __init__(self, socket: str, agent: str | None, program: str) -> None:
        self._connection = perform(Connection.open(socket, _PATIENCE_SECONDS))
        self._agent = agent
        self._headers = {"X-Program": program}

    def ask(self, path: str, body: Any) -> Any:
        """The answer to a POST; None where it was refused."""
        request = request_of("POST", path, {"agent": self._agent}, self._headers, body)
        answer = perform(self._connection.converse(request))
        return json.loads(answer.body) if answer.status < 400 else None


class SessionEvent:
    """One event of a session.

    Without an `agent` it is the project's, or the daemon's default. `answer` is called with the
    answer for the client, if there is one; its turns are recorded with the name of its `program`.
    """

    def __init__(
        self,
        event: Mapping[str, Any],
        agent: str | None,
        answer: Callable[[dict[str, Any]], None],
        program: str | None = None,
    ) -> None:
        self._event = event
        self._program = named(program or "") or "hook"
        self._answer = answer
        self._name = self._text("hook_event_name")
        # Cursor tells the folders of its window, and has another word for the session.
        roots = event.get("workspace_roots")
        root = str(roots[0]) if isinstance(roots, list) and roots else ""
        self._project = project_of(self._text("cwd") or root or os.getcwd())
        self._agent = agent or self._project.agent
        session = self._text("session_id") or self._text("conversation_id") or "session"
        # Where it was said can be seen from what is kept of it.
        self._conversation = f"{self._project.name}/{named(session) or 'session'}"[:200]

    def handle(self, socket: str) -> None:
        handler = _HANDLERS.get(self._name)
        # What a subagent is told to do, no person has said.
        if handler is None or self._project.word == OFF or self._text("agent_id"):
            return
        handler(self, _Daemon(socket, self._agent, self._program))

    def started(self, daemon: _Daemon) -> None:
        self._send_context(daemon, {})

    def prompted(self, daemon: _Daemon) -> None:
        """The memories that answer the prompt, which is observed too."""
        prompt = self._text("prompt")
        if not prompt.strip() or _is_command(prompt):
            return
        self._send_context(daemon, {"query": prompt[:_PROMPT_CHARS], "found": True})
        if self._name == "UserPromptSubmit":
            # Gemini CLI tells it once more with the answer.
            self._observe(daemon, [("user", prompt)])

    def answered(self, daemon: _Daemon) -> None:
        """Observe the agent's answer, and the prompt if the client repeats it."""
        answer = self._text("last_assistant_message") or self._text("prompt_response")
        prompt = self._text("prompt")
        self._observe(daemon, [("user", prompt), ("assistant", answer)])

    def compacted(self, daemon: _Daemon) -> None:
        self._observe(daemon, [("assistant", self._text("compact_summary"))])

    def ended(self, daemon: _Daemon) -> None:
        """End the conversation, or its compacted part: it becomes an episode."""
        self._observe(daemon, [], end=True)

    def _observe(
        self, daemon: _Daemon, messages: list[tuple[str, str]], *, end: bool = False
    ) -> None:
        turns = [
            {"role": role, "text": text[:_TURN_CHARS]}
            for role, text in messages
            if text.strip() and not (role == "user" and _is_command(text))
        ]
        if turns or end:
            body = {"conversation": self._conversation, "turns": turns, "end": end}
            daemon.ask("/api/observe", body)

    def _send_context(self, daemon: _Daemon, options: dict[str, Any]) -> None:
        """Answer with a context block, unless it is empty or too long for the client."""
        body = {"max_tokens": _TOKENS, **options}
        block = str((daemon.ask("/api/context", body) or {}).get("text") or "")
        if not block or len(block) > _MOST_CHARS:
            return
        if self._name == "sessionStart":
            self._answer({"additional_context": block})
        else:
            inner = {"hookEventName": self._name, "additionalContext": block}
            self._answer({"hookSpecificOutput": inner})

    def _text(self, name: str) -> str:
        value = self._event.get(name)
        # Half of a character, and NUL, which no memory takes, are no reason to learn nothing.
        text = value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
        return text.replace("\0", "")


def _is_command(prompt: str) -> bool:
    """Whether a prompt is a command of the client, such as `/clear`, and not a path."""
    return prompt.startswith("/") and "/" not in prompt.split(maxsplit=1)[0][1:]


# By the names of Claude Code and Codex, and of Gemini CLI and Cursor where they differ.
_HANDLERS: Final[dict[str, Callable[[SessionEvent, _Daemon], None]]] = {
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
    fields = {"project": project.name, "folder": project.root, "memory": project.word}
    if as_json:
        print(json.dumps({**fields, "agent": project.agent}))
        return
    says = {OFF: "off", OWN: f"its own, agent {project.agent}"}.get(project.word, "on")
    print(f"{project.name} ({project.root}): {says}")
