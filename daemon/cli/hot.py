"""`thermocline hot`: the hot state, which is always in the agent's context."""

from __future__ import annotations

import argparse
import json
from typing import Final

from ..client import Client
from ..client.wording import size
from .arguments import json_of, say, text_of
from .database import add_database, database_of, patience, synced
from .terminal import Shown, show_json, visible

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


def run_hot(args: argparse.Namespace, client: Client) -> Shown | None:
    """Show it, or do what an option says."""
    key, text = args.update or ("", "null")
    value = json_of(text_of(text), f"--update {key}")
    database = database_of(args)
    client.timeout = patience(database)
    if args.update:
        updated = client.hot_update(key, value)
        for warning in updated.warnings or ():
            say(visible(warning))
        return _changed(args, client, f"updated {key}", database)
    if args.remove:
        client.hot_remove(*args.remove)
        key, name = args.remove
        return _changed(args, client, f"removed {name} from {key}", database)
    if args.rebuild:
        rebuilt = client.hot_rebuild()
        sizes = f"({size(rebuilt.size_bytes)} of {size(rebuilt.max_bytes)})"
        return f"wrote {rebuilt.output} {sizes}"
    if args.json:
        show_json(client.hot().state)
    else:
        print(visible(client.hot_markdown(), keep="\n\t").rstrip("\n"))
    return None


def _changed(
    args: argparse.Namespace, client: Client, told: str, database: dict[str, str]
) -> Shown | None:
    if not database:
        return told
    done = {"cold_synced": synced(client, database, critical=True)}
    if not args.json:
        return told
    show_json({**json.loads(client.answered), **done})
    return None
