"""`thermocline kv`: key-value pairs."""

from __future__ import annotations

import argparse
import time
from typing import Any

from ..client import Client
from ..client.wording import moment
from .arguments import say, text_of
from .list import tell_rest
from .options import FILTERS, add_options, refuse
from .terminal import show_answer, show_rows, show_text, visible

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
    limit = {"default": 50, "help": "maximum number of results (default 50)"}
    add_options(parser, FILTERS, ("limit", "offset"), limit=limit, offset={"default": 0})
    parser.epilog = "example:\n  thermocline kv set timezone Europe/Vienna"


def run_kv(args: argparse.Namespace, client: Client) -> None:
    """Do what the first word says."""
    action, key, value = args.action, args.key, args.value
    refuse(action != "list" and key is None, f"{action} needs a KEY")
    refuse(action == "set" and value is None, "set needs a VALUE")
    refuse(action != "set" and value is not None, f"{action} takes no VALUE, got {value!r:.40}")
    if action == "list":
        pairs = client.kv_list(key or "", args.limit, args.offset)
        if args.json:
            show_answer(client.answered)
            return
        now = time.time()
        show_rows((p.key, moment(p.updated_at, now), p.value) for p in pairs.results)
        tell_rest(len(pairs.results), pairs.total, args.offset)
        return
    answer: Any
    if action == "get":
        answer = client.kv_get(key)
    elif action == "set":
        answer = client.kv_set(key, text_of(value))
    else:
        answer = client.kv_delete(key)
    if args.json:
        show_answer(client.answered)
    elif action == "get":
        show_text(answer.value)
    else:
        print("set" if action == "set" else "deleted", visible(key))
        if getattr(answer, "warning", None):
            say(answer.warning)
