"""`thermocline list`: list memories by any of their fields."""

from __future__ import annotations

from ..client import Client
from .arguments import number, say, whole
from .fields import TYPES
from .memories import show_list
from .terminal import show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

_FILTERS: Final = (
    "limit", "offset", "type", "event", "category", "tags", "url", "actor", "group", "source",
    "archived", "tier", "since", "until", "min_importance", "include", "order",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = parser.add_argument
    add("--limit", type=whole, metavar="N", help="at most so many (50)")
    add("--offset", type=whole, metavar="N", help="leave out the first so many")
    add("--order", choices=("newest", "oldest", "score", "importance"))
    add("--type", action="append", choices=TYPES, help="may be repeated")
    add("--event", action="append", metavar="NAME", help="may be repeated")
    add("--category", metavar="PATH", help="this part of the tree")
    add("--tag", dest="tags", action="append", metavar="TAG", help="repeated: all of them")
    add("--url", metavar="PART", help="mentions a URL that contains this")
    add("--actor", metavar="TEXT")
    add("--group", metavar="TEXT")
    add("--source", metavar="TEXT")
    add("--archived", choices=("true", "false"), help="only, or not, what is in the archive")
    add("--tier", choices=("hot", "warm", "cold", "frozen"))
    add("--since", metavar="TIME", help="stored since, as ISO 8601 or epoch seconds")
    add("--until", metavar="TIME", help="stored until then")
    add("--min-importance", type=number, metavar="0-1")
    add(
        "--include",
        action="append",
        choices=("merged", "expired"),
        help="what is otherwise left out; may be repeated",
    )
    parser.epilog = "example:\n  thermocline list --category projects --tag urgent --order score"


def run(args: argparse.Namespace) -> int:
    """List them, a line each."""
    given = {name: getattr(args, name) for name in _FILTERS}
    filters = {name: value for name, value in given.items() if value is not None}
    with Client(args.socket, args.agent) as client:
        page = client.list(**filters)
    if args.json:
        show_json(page)
        return 0
    show_list(page["results"])
    tell_rest(len(page["results"]), page["total"], args.offset or 0)
    return 0


def tell_rest(shown: int, total: int, offset: int) -> None:
    """Say on standard error how much more there is, or that there is nothing."""
    if not shown:
        say("nothing found" if not offset else f"nothing beyond {total}")
    elif offset + shown < total:
        say(f"{shown} of {total}; more with --offset {offset + shown}")
