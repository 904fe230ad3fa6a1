"""The program `thermocline`: events of a session go the shortest way, all else through `main`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command of this process; return its exit code."""
    verb, *rest = sys.argv[1:] or [""]
    options = dict(zip(rest[::2], rest[1::2], strict=False))
    if verb == "hook" and len(rest) % 2 == 0 and options.keys() <= {"--socket", "--agent-id"}:
        from .hook import handle  # noqa: PLC0415 - what the other verbs load takes ten times as long

        handle(options.get("--socket"), options.get("--agent-id"))
        return 0
    from .main import main as run  # noqa: PLC0415 - likewise

    code = run()
    # For a client 2 means that the agent must not go on.
    return 1 if verb == "hook" and code else code


if __name__ == "__main__":
    sys.exit(main())
