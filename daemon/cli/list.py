"""`thermocline get`, `list` and `search-url`: memories by id, by field, by URL."""

from __future__ import annotations

import argparse

from .. import shapes
from ..client import Client
from .arguments import one_text, say
from .memories import headline, record, short, show_list, show_one
from .options import FILTERS, add_options, given
from .terminal import Shown, show_json, show_rows, visible


def add_get(parser: argparse.ArgumentParser) -> None:
    """Add the options of `get`."""
    parser.add_argument("id", metavar="ID", help="its id, or at least its first 4 characters")


def run_get(args: argparse.Namespace, client: Client) -> Shown:
    """Show all of a memory."""
    memory = client.get(args.id)
    return lambda: show_one(memory)


def add_list(parser: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    limit = {"help": "maximum number of results (default 50)"}
    add_options(parser, FILTERS, shapes.memory.ListQuery.__struct_fields__, limit=limit)
    parser.epilog = "example:\n  thermocline list --category projects --tag urgent --order score"


def run_list(args: argparse.Namespace, client: Client) -> Shown:
    """List memories, a line each."""
    page = client.list(**given(args, shapes.memory.ListQuery.__struct_fields__))

    def show() -> None:
        show_list(page.results)
        tell_rest(len(page.results), page.total, args.offset or 0)

    return show


def tell_rest(shown: int, total: int, offset: int) -> None:
    """Say on standard error how many more results exist, or that nothing was found."""
    if not shown:
        say("nothing found" if not offset else f"nothing beyond {total}")
    elif offset + shown < total:
        say(f"{shown} of {total}; more with --offset {offset + shown}")


def add_search_url(parser: argparse.ArgumentParser) -> None:
    """Add the options of `search-url`."""
    add = parser.add_argument
    add("words", nargs="?", metavar="URL", help="part of it, in any case; default: list all URLs")
    add("--url", metavar="URL", help="the same, in place of the first word")
    limit = {"help": "maximum number of results (default 5, of all URLs 50)"}
    add_options(parser, FILTERS, ("limit",), limit=limit)


def run_search_url(args: argparse.Namespace, client: Client) -> Shown | None:
    """Find the memories that mention a URL, or list all URLs, the highest score first."""
    if args.words is None and args.url is None:
        page = client.urls(50 if args.limit is None else args.limit)
        return lambda: _list_urls(page)
    url = one_text(args.words, args.url, "--url")
    found = client.search_url(url, 5 if args.limit is None else args.limit)
    if args.json:
        results = [record(memory) for memory in found]
        show_json({"query": url, "results_count": len(results), "results": results})
    elif found:
        show_list(found)
    else:
        say("nothing found")
    return None


def _list_urls(page: shapes.memory.UrlPage) -> None:
    for url in page.results:
        print(visible(url.url))
        show_rows(
            (f"  {short(memory.id)}", memory.category, headline(memory)) for memory in url.memories
        )
        if (more := url.count - len(url.memories)) > 0:
            print(f"  and {more:,} more")
    if len(page.results) < page.total:
        say(f"{len(page.results)} of {page.total} URLs; --limit shows more")
    elif not page.results:
        say("no memory mentions a URL")
