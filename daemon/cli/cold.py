"""`thermocline cold`: the archive."""

from __future__ import annotations

from ..client import Client
from .arguments import add_cloud, refuse_cloud, text_of, whole
from .list import tell_rest
from .memories import record, show_list
from .terminal import show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--query", metavar="TEXT", help="words to look for; all of it when left out")
    one.add_argument(
        "--init", action="store_true", help="make sure that there is an archive: there always is"
    )
    parser.add_argument("--limit", type=whole, default=10, metavar="N", help="at most so many (10)")
    parser.add_argument("--offset", type=whole, default=0, metavar="N", help="leave out the first")
    add_cloud(parser)


def run(args: argparse.Namespace) -> int:
    """Search it."""
    refuse_cloud(args)
    with Client(args.socket, args.agent) as client:
        if args.init:
            client.health()
            _show_ready(as_json=args.json)
            return 0
        page = client.cold(text_of(args.query or ""), args.limit, args.offset)
    if args.json:
        show_json([record(memory) for memory in page["results"]])
    else:
        show_list(page["results"])
        tell_rest(len(page["results"]), page["total"], args.offset)
    return 0


def _show_ready(*, as_json: bool) -> None:
    if as_json:
        show_json({"initialized": True})
    else:
        print("the archive is ready")
