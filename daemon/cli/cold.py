"""`thermocline cold`: the archive."""

from __future__ import annotations

from ..client import Client
from .arguments import WrongUsage, say, stdin_once, text_of, whole
from .database import PATIENCE_SECONDS, add_database, database_of, patience
from .list import tell_rest
from .memories import record, show_list
from .terminal import show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from ..answers import Database


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--query", metavar="TEXT", help="words to look for; all of it when left out")
    one.add_argument(
        "--init", action="store_true", help="make the tables of the replica, where they are missing"
    )
    parser.add_argument("--limit", type=whole, default=10, metavar="N", help="at most so many (10)")
    parser.add_argument("--offset", type=whole, default=0, metavar="N", help="leave out the first")
    add_database(parser)
    parser.epilog = "With --db-url it searches that database alone, and not what is here."


def run(args: argparse.Namespace) -> int:
    """Search it."""
    stdin_once(args.query, args.token_file)
    database = database_of(args)
    if database and args.offset:
        raise WrongUsage("--offset: a database named by --db-url gives the best matches alone")
    seconds = PATIENCE_SECONDS if args.init else patience(database)
    with Client(args.socket, args.agent, seconds) as client:
        if args.init:
            _init(client, database, as_json=args.json)
        elif database:
            _search(client, args, database)
        else:
            _list(client, args)
    return 0


def _init(client: Client, database: Database, *, as_json: bool) -> None:
    made = client.cold_init(**database)
    if as_json:
        show_json(made)
    else:
        print("the archive is ready")


def _search(client: Client, args: argparse.Namespace, database: Database) -> None:
    found = client.cold_search(text_of(args.query or ""), args.limit, **database)["results"]
    if args.json:
        show_json([record(memory, "search_method", "relevance") for memory in found])
        return
    show_list(found)
    if not found:
        say("nothing found")


def _list(client: Client, args: argparse.Namespace) -> None:
    page = client.cold(text_of(args.query or ""), args.limit, args.offset)
    if args.json:
        show_json([record(memory) for memory in page["results"]])
    else:
        show_list(page["results"])
        tell_rest(len(page["results"]), page["total"], args.offset)
