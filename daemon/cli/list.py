"""`thermocline get`, `list` and `search-url`: memories by id, by field, by URL."""

from __future__ import annotations

import argparse
from typing import Final

from ..client import Client
from .arguments import one_text, say, whole
from .memories import record, show_list, show_one
from .options import FILTERS, add_options, given
from .terminal import show_json

_FILTERS: Final = (
    "limit", "offset", "order", "types", "events", "category", "tags", "url", "actor", "group",
    "source", "archived", "tier", "since", "until", "min_importance", "include",
)  # fmt: skip


def add_get(parser: argparse.ArgumentParser) -> None:
    """Add the options of `get`."""
    parser.add_argument("id", metavar="ID", help="its id, or at least its first 4 characters")


def run_get(args: argparse.Namespace, client: Client) -> None:
    """Show all of a memory."""
    memory = client.get(args.id)
    if args.json:
        show_json(memory)
    else:
        show_one(memory)


def add_list(parser: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    limit = {"help": "maximum number of results (default 50)"}
    add_options(parser, FILTERS, _FILTERS, limit=limit)
    parser.epilog = "example:\n  thermocline list --category projects --tag urgent --order score"


def run_list(args: argparse.Namespace, client: Client) -> None:
    """List memories, a line each."""
    page = client.list(**given(args, _FILTERS))
    if args.json:
        show_json(page)
    else:
        show_list(page["results"])
        tell_rest(len(page["results"]), page["total"], args.offset or 0)


def tell_rest(shown: int, total: int, offset: int) -> None:
    """Say on standard error how many more there are, or that there are none."""
    if not shown:
        say("nothing found" if not offset else f"nothing beyond {total}")
    elif offset + shown < total:
        say(f"{shown} of {total}; more with --offset {offset + shown}")


def add_search_url(parser: argparse.ArgumentParser) -> None:
    """Add the options of `search-url`."""
    parser.add_argument("words", nargs="?", metavar="URL", help="part of it, in any case")
    parser.add_argument("--url", metavar="URL", help="the same, in place of the first word")
    parser.add_argument(
        "--limit", type=whole, default=5, metavar="N", help="maximum number of results (default 5)"
    )


def run_search_url(args: argparse.Namespace, client: Client) -> None:
    """Find the memories that mention a URL, the highest score first."""
    url = one_text(args.words, args.url, "--url")
    found = client.search_url(url, args.limit)
    if args.json:
        results = [record(memory) for memory in found]
        show_json({"query": url, "results_count": len(results), "results": results})
    elif found:
        show_list(found)
    else:
        say("nothing found")
