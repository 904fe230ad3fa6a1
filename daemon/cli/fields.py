"""The options that describe a memory, the same for storing and for changing one."""

from __future__ import annotations

from .arguments import json_of, number, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

TYPES: Final = ("semantic", "episodic", "procedural")
_PLAIN: Final = (
    "type", "event", "subject", "outcome", "category", "importance", "source", "actor", "group",
    "expires",
)  # fmt: skip


def add_fields(parser: argparse.ArgumentParser) -> None:
    """Add an option for each field but the text."""
    add = parser.add_argument
    add("--category", metavar="PATH", help="its place in the tree, such as projects/x")
    add("--importance", type=number, metavar="0-1", help="how much it matters")
    add("--type", choices=TYPES, help="what kind of memory it is")
    add("--event", metavar="NAME", help="what gave rise to it, such as correction")
    add("--subject", metavar="TEXT", help="what it is about")
    add("--outcome", metavar="TEXT", help="how it ended")
    add("--tag", dest="tags", action="append", metavar="TAG", help="a tag; may be repeated")
    add("--source", metavar="TEXT", help="where it comes from")
    add("--actor", metavar="TEXT", help="who said it")
    add("--group", metavar="TEXT", help="the conversation that it belongs to")
    add("--url", dest="urls", action="append", metavar="URL", help="may be repeated")
    add(
        *("--cmd", "--command"),
        dest="commands",
        action="append",
        metavar="COMMAND",
        help="may be repeated",
    )
    add("--path", dest="paths", action="append", metavar="PATH", help="may be repeated")
    add("--expires", metavar="WHEN", help="7d, an ISO 8601 time, or never")
    add("--data", metavar="JSON", help="anything else to keep with it; - reads standard input")


def given_fields(args: argparse.Namespace) -> dict[str, Any]:
    """The fields that were given, as the API takes them.

    Raises:
        WrongUsage: `--data` is not JSON.
    """
    fields = {name: getattr(args, name) for name in _PLAIN if getattr(args, name) is not None}
    if args.expires == "never":
        fields["expires"] = None
    if args.tags is not None:
        fields["tags"] = args.tags
    metadata = {kind: getattr(args, kind) for kind in ("urls", "commands", "paths")}
    metadata = {kind: found for kind, found in metadata.items() if found is not None}
    if metadata:
        fields["metadata"] = metadata
    if args.data is not None:
        fields["data"] = json_of(text_of(args.data), "--data")
    return fields
