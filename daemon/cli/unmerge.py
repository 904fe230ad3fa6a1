"""`thermocline unmerge`: bring a merged memory back."""

from __future__ import annotations

from ..client import Client
from .memories import short
from .terminal import show_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("id", metavar="ID", help="the memory that was merged into another")


def run(args: argparse.Namespace) -> int:
    """Bring it back."""
    with Client(args.socket, args.agent) as client:
        unmerged = client.unmerge(args.id)
    if args.json:
        show_json(unmerged)
        return 0
    kept = unmerged["kept"]
    origin = f" from {short(visible(kept['id']))}" if kept else ""
    print(f"unmerged {short(visible(unmerged['restored']['id']))}{origin}")
    return 0
