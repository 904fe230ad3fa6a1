"""`thermocline hot`: the hot state, which is always in the agent's context."""

from __future__ import annotations

from ..client import Client
from .arguments import json_of, stdin_once, text_of
from .database import add_database, database_of, patience, synced
from .terminal import show_json, size, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from ..answers import Database

_KEYS: Final = "identity, owner_profile, lesson, event, task or project"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--update",
        nargs=2,
        metavar=("KEY", "JSON"),
        help=f"merge into, or append to, a part: {_KEYS}; - reads the JSON from stdin",
    )
    one.add_argument("--remove", nargs=2, metavar=("KEY", "NAME"), help="remove an entry of a part")
    one.add_argument("--rebuild", action="store_true", help="write MEMORY.md anew")
    add_database(parser)
    parser.epilog = (
        "examples:\n"
        '  thermocline hot --update identity \'{"agent_name": "Nova"}\'\n'
        '  thermocline hot --update lesson \'{"text": "ask before deploying", '
        '"importance": 0.9}\''
    )


def run(args: argparse.Namespace) -> int:
    """Show it, or do what an option says."""
    key, text = args.update or ("", "null")
    stdin_once(text, args.token_file)
    value = json_of(text_of(text), f"--update {key}")
    database = database_of(args)
    with Client(args.socket, args.agent, patience(database)) as client:
        if args.update:
            updated = client.hot_update(key, value)
            told = f"updated {visible(key)}"
            _changed(client, dict(updated), told, database, as_json=args.json)
        elif args.remove:
            removed = client.hot_remove(*args.remove)
            told = f"removed {visible(args.remove[1])} from {visible(args.remove[0])}"
            _changed(client, dict(removed), told, database, as_json=args.json)
        elif args.rebuild:
            _rebuild(client, as_json=args.json)
        elif args.json:
            show_json(client.hot()["state"])
        else:
            print(visible(client.hot_markdown(), keep="\n\t").rstrip("\n"))
    return 0


def _changed(
    client: Client, answer: dict[str, Any], told: str, database: Database, *, as_json: bool
) -> None:
    if database:
        answer["cold_synced"] = synced(client, database, critical=True)
    if as_json:
        show_json(answer)
    else:
        print(told)


def _rebuild(client: Client, *, as_json: bool) -> None:
    rebuilt = client.hot_rebuild()
    if as_json:
        show_json(rebuilt)
        return
    sizes = f"({size(rebuilt['size_bytes'])} of {size(rebuilt['max_bytes'])})"
    print("wrote", visible(rebuilt["output"]), sizes)
