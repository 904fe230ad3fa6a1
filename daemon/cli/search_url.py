"""`thermocline search-url`: the memories that mention a URL."""

from __future__ import annotations

from ..client import Client
from .arguments import say, whole
from .memories import record, show_list
from .store import one_text
from .terminal import show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("words", nargs="?", metavar="URL", help="a part of it, in any case")
    parser.add_argument("--url", metavar="URL", help="the same, in place of the first word")
    parser.add_argument("--limit", type=whole, default=5, metavar="N", help="at most so many (5)")


def run(args: argparse.Namespace) -> int:
    """Find them, the highest score first."""
    url = one_text(args.words, args.url, "--url")
    with Client(args.socket, args.agent) as client:
        found = client.search_url(url, args.limit)
    if args.json:
        results = [record(memory) for memory in found]
        show_json({"query": url, "results_count": len(results), "results": results})
        return 0
    show_list(found)
    if not found:
        say("nothing found")
    return 0
