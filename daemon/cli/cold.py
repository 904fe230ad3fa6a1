"""`thermocline cold`: the archive."""

from __future__ import annotations

import argparse

from ..client import Client
from .arguments import WrongUsage, say, text_of
from .database import PATIENCE_SECONDS, add_database, database_of, patience
from .list import tell_rest
from .memories import record, show_list
from .options import add_page
from .terminal import Shown, show_json


def add_cold(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cold`."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--query", metavar="TEXT", help="words to look for; default: all memories")
    one.add_argument(
        "--init", action="store_true", help="create the replica's tables where they are missing"
    )
    add_page(parser, 10)
    add_database(parser)
    parser.epilog = "With --db-url it searches that database instead of this device."


def run_cold(args: argparse.Namespace, client: Client) -> Shown | None:
    """Search it, or create the tables.

    Raises:
        WrongUsage: a page of another database, which has none.
    """
    database, query = database_of(args), args.query or ""
    client.timeout = PATIENCE_SECONDS if args.init else patience(database)
    if database and args.offset:
        raise WrongUsage("--offset: not available with --db-url, which returns the best matches")
    if args.init:
        client.cold_init(**database)
        return "the archive is ready"
    if database:
        found = client.cold_search(text_of(query), args.limit, **database).results
        if args.json:
            show_json([record(memory, "search_method", "relevance") for memory in found])
        else:
            show_list(found)
            if not found:
                say("nothing found")
    else:
        page = client.cold(text_of(query), args.limit, args.offset)
        if args.json:
            show_json([record(memory) for memory in page.results])
        else:
            show_list(page.results)
            tell_rest(len(page.results), page.total, args.offset)
    return None
