"""`thermocline hot`: the hot state, which is always in the agent's context."""

from __future__ import annotations

from ..client import Client
from .arguments import add_cloud, json_of, refuse_cloud, text_of
from .terminal import show_json, size, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

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
    add_cloud(parser)
    parser.epilog = (
        "examples:\n"
        '  thermocline hot --update identity \'{"agent_name": "Nova"}\'\n'
        '  thermocline hot --update lesson \'{"text": "ask before deploying", '
        '"importance": 0.9}\''
    )


def run(args: argparse.Namespace) -> int:
    """Show it, or do what an option says."""
    refuse_cloud(args)
    with Client(args.socket, args.agent) as client:
        if args.update:
            _update(client, *args.update, as_json=args.json)
        elif args.remove:
            _remove(client, *args.remove, as_json=args.json)
        elif args.rebuild:
            _rebuild(client, as_json=args.json)
        elif args.json:
            show_json(client.hot()["state"])
        else:
            print(visible(client.hot_markdown(), keep="\n\t").rstrip("\n"))
    return 0


def _update(client: Client, key: str, value: str, *, as_json: bool) -> None:
    updated = client.hot_update(key, json_of(text_of(value), f"--update {key}"))
    if as_json:
        show_json(updated)
    else:
        print("updated", visible(updated["updated"]))


def _remove(client: Client, key: str, name: str, *, as_json: bool) -> None:
    removed = client.hot_remove(key, name)
    if as_json:
        show_json(removed)
    else:
        print("removed", visible(name), "from", visible(key))


def _rebuild(client: Client, *, as_json: bool) -> None:
    rebuilt = client.hot_rebuild()
    if as_json:
        show_json(rebuilt)
        return
    sizes = f"({size(rebuilt['size_bytes'])} of {size(rebuilt['max_bytes'])})"
    print("wrote", visible(rebuilt["output"]), sizes)
