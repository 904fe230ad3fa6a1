"""The program `thermocline`.

Agents start `hook` at each prompt and `mcp` at each session. These two take a short way: importing
what the other verbs need would take several times as long.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_OPTIONS = {
    "hook": ("--socket", "--agent-id", "--client"),
    "mcp": ("--socket", "--agent-id", "--tools", "--start"),
}
_FLAG = "--start"
_PRESETS = ("default", "scalyclaw", "profclaw")


def run() -> NoReturn:
    """Run the command of this process, and leave at once.

    Taking the interpreter apart would take a fifth of a command's time. What the command wrote is
    flushed, and a daemon has closed what it had open.
    """
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)


def main() -> int:
    """Run the command of this process; return its exit code."""
    verb, *words = sys.argv[1:] or [""]
    values = options(words, _OPTIONS[verb]) if verb in _OPTIONS else None
    if values is None or values.get("--tools", _PRESETS[0]) not in _PRESETS:
        from .main import main as run_verb  # noqa: PLC0415 - the long way, with help and errors

        code = run_verb()
        # A client takes 2 of a hook for a veto: the agent must not go on. No event has --project.
        is_event = verb == "hook" and not any(word.startswith("--project") for word in words)
        return 1 if is_event and code else code
    socket, agent = values.get("--socket"), values.get("--agent-id")
    if verb == "hook":
        from .hook import handle  # noqa: PLC0415 - one of the two

        handle(socket, agent, values.get("--client"))
        return 0
    from .mcp import serve  # noqa: PLC0415 - likewise

    try:
        serve(values.get("--tools", _PRESETS[0]), socket=socket, agent=agent, start=_FLAG in values)
    except KeyboardInterrupt:
        return 130
    # A thread that still waits for the daemon may hold a stream, and Python would abort over it.
    return 0


def options(words: Sequence[str], known: Sequence[str]) -> dict[str, str] | None:
    """The options with their values; None if there is any other word."""
    values: dict[str, str] = {}
    waiting = iter(words)
    for word in waiting:
        if word not in known or word in values:
            return None
        value = "" if word == _FLAG else next(waiting, None)
        if value is None:
            return None
        values[word] = value
    return values


if __name__ == "__main__":
    run()
