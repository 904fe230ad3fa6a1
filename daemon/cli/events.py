"""`thermocline events`: print events as they happen."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any, Final

from ..client import Client
from .arguments import say
from .terminal import cut, show_json, visible, width

# The exit code of every verb when no daemon answers.
_UNREACHABLE: Final = 3


def add_events(parser: argparse.ArgumentParser) -> None:
    """Add the options of `events`."""
    parser.add_argument(
        "--type",
        dest="types",
        action="append",
        default=[],
        metavar="TYPE",
        help="only these, such as memory.stored; may be repeated",
    )
    parser.add_argument("--after", metavar="ID", help="start after this event")
    parser.epilog = "With --json each line is an object with id, type and data."


def run_events(args: argparse.Namespace, client: Client) -> int:
    """Print events as they come, until Ctrl-C or until the daemon stops."""
    for event_id, kind, data in client.events(args.types, args.after):
        if args.json:
            show_json({"id": event_id, "type": kind, "data": data}, one_line=True)
        else:
            line = f"{time.strftime('%H:%M:%S')}  {kind}  {_told(data)}"
            print(cut(visible(line.rstrip()), width()))
        sys.stdout.flush()
    say("the daemon ended the stream")
    return _UNREACHABLE


def _told(data: Any) -> str:
    if not isinstance(data, dict):
        return json.dumps(data, ensure_ascii=False)
    return "  ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in data.items()
    )
