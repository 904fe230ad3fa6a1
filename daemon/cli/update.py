"""`thermocline update`: change a memory."""

from __future__ import annotations

from ..client import Client
from .arguments import WrongUsage, stdin_once, text_of
from .fields import add_fields, given_fields
from .memories import short
from .terminal import show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("id", metavar="ID", help="its id, or the first 4 or more characters of it")
    parser.add_argument("--text", metavar="TEXT", help="the new text; - reads it from stdin")
    add_fields(parser)
    parser.add_argument("--merged-into", metavar="ID", help="the memory that replaces it")
    parser.add_argument("--no-tags", action="store_true", help="remove its tags")
    parser.epilog = (
        "What is not given stays; --tag, --url, --cmd and --path replace what there was.\n\n"
        "example:\n  thermocline update 3f2a9c1b --importance 0.9 --tag urgent"
    )


def run(args: argparse.Namespace) -> int:
    """Change what was given."""
    changes = _changes(args)
    with Client(args.socket, args.agent) as client:
        updated = client.update(args.id, **changes)
    if args.json:
        show_json(updated)
    else:
        print("updated", short(updated["id"]))
    return 0


def _changes(args: argparse.Namespace) -> Any:
    stdin_once(args.text, args.data)
    changes = given_fields(args)
    if args.text is not None:
        changes["text"] = text_of(args.text)
    if args.merged_into is not None:
        changes["merged_into"] = args.merged_into or None
    if args.no_tags:
        changes["tags"] = []
    if not changes:
        raise WrongUsage("nothing to change: give at least one field, such as --text")
    return changes
