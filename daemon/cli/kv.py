"""`thermocline kv`: key-value pairs."""

from __future__ import annotations

import argparse

from .. import shapes
from ..client import Client
from ..client.wording import moment
from .arguments import say, text_of
from .list import tell_rest
from .options import add_page, refuse
from .terminal import Shown, show_rows, show_text

_ACTIONS = ("list", "get", "set", "delete")


def add_kv(parser: argparse.ArgumentParser) -> None:
    """Add the options of `kv`."""
    # Words, not subparsers: those would not accept the common options.
    parser.usage = (
        "thermocline kv [list [PREFIX] [--limit N] [--offset N]] | get KEY | set KEY VALUE |"
        " delete KEY"
    )
    add = parser.add_argument
    add("action", nargs="?", default="list", choices=_ACTIONS, help="default: list")
    add("key", nargs="?", metavar="KEY", help="the key; for list, its first characters")
    add("value", nargs="?", metavar="VALUE", help="for set; - reads it from stdin")
    add_page(parser, 50)
    parser.epilog = "example:\n  thermocline kv set timezone Europe/Vienna"


def run_kv(args: argparse.Namespace, client: Client) -> Shown:
    """Do what the first word says."""
    action, key, value = args.action, args.key, args.value
    refuse(action != "list" and key is None, f"{action} needs a KEY")
    refuse(action == "set" and value is None, "set needs a VALUE")
    refuse(action != "set" and value is not None, f"{action} takes no VALUE, got {value!r:.40}")
    if action == "list":
        pairs = client.kv_list(key or "", args.limit, args.offset)
        return lambda: _show(pairs, args.offset)
    if action == "get":
        found = client.kv_get(key)
        return lambda: show_text(found.value)
    if action == "delete":
        client.kv_delete(key)
        return f"deleted {key}"
    stored = client.kv_set(key, text_of(value))
    if stored.warning and not args.json:
        say(stored.warning)
    return f"set {key}"


def _show(page: shapes.pairs.PairPage, offset: int) -> None:
    show_rows((pair.key, moment(pair.updated_at), pair.value) for pair in page.results)
    tell_rest(len(page.results), page.total, offset)
