"""`thermocline kv`: key-value pairs."""

from __future__ import annotations

import time

from ..client import Client
from .arguments import text_of, whole
from .list import tell_rest
from .terminal import moment, show_json, show_rows, show_text, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    # Named as words, not as parsers of their own: those would not know the common options.
    parser.usage = (
        "thermocline kv get KEY | set KEY VALUE | delete KEY | list [PREFIX] "
        "[--limit N] [--offset N]"
    )
    parser.add_argument("action", choices=("get", "set", "delete", "list"), help="what to do")
    parser.add_argument("key", nargs="?", metavar="KEY", help="the key; for list, how it begins")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="for set; - reads it from stdin")
    parser.add_argument("--limit", type=whole, default=50, metavar="N", help="for list (50)")
    parser.add_argument("--offset", type=whole, default=0, metavar="N", help="for list")
    parser.epilog = "example:\n  thermocline kv set timezone Europe/Vienna"
    parser.set_defaults(refuse=parser.error)


def run(args: argparse.Namespace) -> int:
    """Do what the first word says."""
    _check(args)
    with Client(args.socket, args.agent) as client:
        if args.action == "list":
            _list(client, args)
        elif args.action == "get":
            _get(client, args)
        elif args.action == "set":
            _set(client, args)
        else:
            _delete(client, args)
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.action != "list" and args.key is None:
        args.refuse(f"{args.action} needs a KEY")
    if args.action == "set" and args.value is None:
        args.refuse("set needs a VALUE")
    if args.action != "set" and args.value is not None:
        args.refuse(f"{args.action} takes no VALUE, got {args.value[:40]!r}")


def _list(client: Client, args: argparse.Namespace) -> None:
    pairs = client.kv_list(args.key or "", args.limit, args.offset)
    if args.json:
        show_json(pairs)
        return
    now = time.time()
    rows = [
        (pair["key"], moment(pair["updated_at"], now), pair["value"]) for pair in pairs["results"]
    ]
    show_rows(rows)
    tell_rest(len(rows), pairs["total"], args.offset)


def _get(client: Client, args: argparse.Namespace) -> None:
    pair = client.kv_get(args.key)
    if args.json:
        show_json(pair)
    else:
        show_text(pair["value"])


def _set(client: Client, args: argparse.Namespace) -> None:
    updated = client.kv_set(args.key, text_of(args.value))
    if args.json:
        show_json(updated)
    else:
        print("set", visible(args.key))


def _delete(client: Client, args: argparse.Namespace) -> None:
    deleted = client.kv_delete(args.key)
    if args.json:
        show_json(deleted)
    else:
        print("deleted", visible(args.key))
