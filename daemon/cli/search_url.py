"""`thermocline search-url`: the memories that mention a URL, or every URL that is stored."""

from __future__ import annotations

from ..client import Client
from .arguments import WrongUsage, say, whole
from .memories import record, show_list
from .terminal import show_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

_FOUND: int = 5
_LISTED: int = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("words", nargs="?", metavar="URL", help="a part of it; none lists them all")
    parser.add_argument("--url", metavar="URL", help="the same, in place of the first word")
    parser.add_argument(
        "--limit",
        type=whole,
        metavar="N",
        help=f"maximum number of results (default {_FOUND}; of URLs {_LISTED})",
    )


def run(args: argparse.Namespace) -> int:
    """Find them, the highest score first."""
    if args.words is not None and args.url is not None:
        raise WrongUsage("give the URL once: as a word, or with --url")
    url = args.words if args.url is None else args.url
    with Client(args.socket, args.agent) as client:
        if url is None:
            return _list(client, args)
        found = client.search_url(url, _FOUND if args.limit is None else args.limit)
    if args.json:
        results = [record(memory) for memory in found]
        show_json({"query": url, "results_count": len(results), "results": results})
        return 0
    show_list(found)
    if not found:
        say("nothing found")
    return 0


def _list(client: Client, args: argparse.Namespace) -> int:
    limit = _LISTED if args.limit is None else args.limit
    page = client.request("GET", "/api/metadata/urls", {"limit": limit})
    links, total = page["results"], page["total"]
    if args.json:
        results = [
            {**link, "memories": [record(memory) for memory in link["memories"]]} for link in links
        ]
        show_json({"query": None, "results_count": len(links), "total": total, "results": results})
        return 0
    for link in links:
        print(visible(link["url"]))
        show_list(link["memories"])
    if len(links) < total:
        say(f"{len(links)} of {total:,} URLs; --limit shows more")
    return 0
