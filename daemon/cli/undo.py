"""`thermocline undo`: put back what a memory said before, or what a writer changed."""

from __future__ import annotations

from ..client import Client
from .arguments import WrongUsage
from .memories import short
from .terminal import show_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("id", nargs="?", metavar="ID", help="undo the last change of this memory")
    parser.add_argument(
        "--kind", default="memory", help="what ID is: memory, pair, hot, category or note"
    )
    parser.add_argument(
        "--to", type=int, metavar="NUMBER", help="a version that `thermocline history` numbers"
    )
    parser.add_argument("--by", metavar="WRITER", help="undo all changes of a writer: uid:1000")
    parser.add_argument("--since", metavar="TIME", help="with --by: 2h, 7d, or a date and time")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be put back")


def run(args: argparse.Namespace) -> int:
    """Put versions back through the ordinary write."""
    if (args.id is None) == (args.by is None):
        raise WrongUsage("name a memory, or a writer with --by and --since")
    if args.by is not None and args.since is None:
        raise WrongUsage("say since when: --since 2h")
    wish: dict[str, Any] = {"dry_run": args.dry_run}
    if args.id is not None:
        wish |= {"id": args.id, "kind": args.kind}
    if args.to is not None:
        wish["number"] = args.to
    if args.by is not None:
        wish |= {"by": args.by, "since": args.since}
    with Client(args.socket, args.agent) as client:
        undone = client.request("POST", "/api/undo", body=wish)
    if args.json:
        show_json(undone)
        return 0
    verb = "put back" if undone["done"] else "would put back"
    for row in undone["results"]:
        print(f"{verb} {row['kind']} {short(visible(row['id']))}")
    if not undone["results"]:
        print("nothing to put back")
    return 0
