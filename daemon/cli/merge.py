"""`thermocline merge`: retire a memory into another."""

from __future__ import annotations

from ..client import Client
from .memories import short
from .terminal import show_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("id", metavar="ID", help="the memory that leaves the search")
    parser.add_argument("into", metavar="INTO", help="the memory that stays, and gains from it")
    parser.epilog = (
        "The one that stays keeps its text and gains the uses, tags and references of the other.\n"
        "thermocline unmerge ID undoes it.\n\n"
        "example:\n  thermocline merge 3f2a9c1b 8019fd10"
    )


def run(args: argparse.Namespace) -> int:
    """Merge the two."""
    with Client(args.socket, args.agent) as client:
        merged = client.merge(args.id, args.into)
    if args.json:
        show_json(merged)
    else:
        retired, kept = (short(visible(merged[one]["id"])) for one in ("retired", "kept"))
        print("merged", retired, "into", kept)
    return 0
