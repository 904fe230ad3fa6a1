"""`thermocline get`: show one memory."""

from __future__ import annotations

from ..client import Client
from .memories import show_one
from .terminal import show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("id", metavar="ID", help="its id, or the first 4 or more characters of it")


def run(args: argparse.Namespace) -> int:
    """Show it whole."""
    with Client(args.socket, args.agent) as client:
        memory = client.get(args.id)
    if args.json:
        show_json(memory)
    else:
        show_one(memory)
    return 0
