"""`thermocline hot`: the hot state, which is always in the agent's context."""

from __future__ import annotations

import argparse
import json
from typing import Final

from ..client import Client
from ..client.wording import size
from .arguments import json_of, say, stdin_once, text_of
from .database import add_database, database_of, patience, synced
from .terminal import show_answer, show_json, visible

_KEYS: Final = "identity, owner_profile, lesson, event, task or project"


def add_hot(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hot`."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--update",
        nargs=2,
        metavar=("KEY", "JSON"),
        help=f"change or append to a part: {_KEYS}; - reads the JSON from stdin",
    )
    one.add_argument("--remove", nargs=2, metavar=("KEY", "NAME"), help="remove an entry of a part")
    one.add_argument("--rebuild", action="store_true", help="rewrite the section in MEMORY.md")
    add_database(parser)
    parser.epilog = (
        "examples:\n"
        '  thermocline hot --update identity \'{"agent_name": "Nova"}\'\n'
        '  thermocline hot --update lesson \'{"text": "ask before deploying", '
        '"importance": 0.9}\''
    )


def run_hot(args: argparse.Namespace, client: Client) -> None:
    """Show it, or do what an option says."""
    key, text = args.update or ("", "null")
    stdin_once(text, args.token_file)
    value = json_of(text_of(text), f"--update {key}")
    database = database_of(args)
    client.timeout = patience(database)
    if args.update:
        updated = client.hot_update(key, value)
        for warning in updated.warnings or ():
            say(visible(warning))
        _changed(client, f"updated {key}", database, as_json=args.json)
    elif args.remove:
        client.hot_remove(*args.remove)
        key, name = args.remove
        _changed(client, f"removed {name} from {key}", database, as_json=args.json)
    elif args.rebuild:
        rebuilt = client.hot_rebuild()
        if args.json:
            show_answer(client.answered)
        else:
            sizes = f"({size(rebuilt.size_bytes)} of {size(rebuilt.max_bytes)})"
            print("wrote", visible(rebuilt.output), sizes)
    elif args.json:
        show_json(client.hot().state)
    else:
        print(visible(client.hot_markdown(), keep="\n\t").rstrip("\n"))


def _changed(client: Client, told: str, database: dict[str, str], *, as_json: bool) -> None:
    answer = json.loads(client.answered)
    done = {"cold_synced": synced(client, database, critical=True)} if database else {}
    if as_json:
        show_json({**answer, **done})
    else:
        print(visible(told))
