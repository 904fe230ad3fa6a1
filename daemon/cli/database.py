"""EvoClaw's options that name a database for one call, and what is done with it."""

from __future__ import annotations

from ..client import ClientError
from .arguments import WrongUsage, decoded, read_stdin, say
from .terminal import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from ..answers import Database
    from ..client import Client

# Sending much over a slow line takes a while; Ctrl-C leaves what is not sent for later.
PATIENCE_SECONDS: Final = 600.0
_USUAL_SECONDS: Final = 30.0
_LONGEST_TOKEN: Final = 65_536


def add_database(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument_group("a database for this call").add_argument
    add("--db-url", metavar="URL", help="libsql:// or https://; left out: the configured one")
    add("--token-file", metavar="FILE", help="what holds its token alone; - reads standard input")
    add("--auth-token", metavar="TOKEN", help="the token itself, which other users can see")


def database_of(args: argparse.Namespace) -> Database:
    """The database that was named, as the API takes it; an empty value names none.

    Raises:
        WrongUsage: a token without a database, or two tokens.
        OSError: the token's file cannot be read.
    """
    database: Database = {}
    if args.db_url:
        database["url"] = args.db_url
    if token := token_of(args):
        database["token"] = token
    if "token" in database and "url" not in database:
        raise WrongUsage("db-url and auth-token required: the token is there without --db-url")
    return database


def token_of(args: argparse.Namespace) -> str | None:
    """The token that was given; an empty value is none.

    Raises:
        WrongUsage: it was given twice, or the file holds something else.
        OSError: its file cannot be read.
    """
    if args.auth_token and args.token_file:
        raise WrongUsage("give the token once: with --token-file, or with --auth-token")
    if args.token_file:
        return _token_in(args.token_file)
    if args.auth_token:
        say("every user of this machine can see --auth-token; --token-file FILE hides the token")
    return args.auth_token or None


def patience(database: Database) -> float:
    """The seconds to wait for the daemon: longer where it goes to a database first."""
    return PATIENCE_SECONDS if database else _USUAL_SECONDS


def check(client: Client, database: Database) -> None:
    """Have a mistake in naming the database refused, before anything is done.

    Raises:
        ApiError: it may not be named, or so it is none.
    """
    if database:
        client.sync(critical=True, dry_run=True, **database)


def send(client: Client, database: Database, *, memory_id: str | None = None) -> bool:
    """Send a memory, or the hot state and the tree; whether the database has it.

    If it has not, that is said. What was asked for is done here in any case, and is not to be
    done again.
    """
    try:
        if memory_id is None:
            return client.sync(critical=True, **database)["synced"]
        return client.sync(memories=[memory_id], **database)["synced"]
    except ClientError as error:
        say(visible(f"done here, but not in the database: {error}"))
        return False


def _token_in(name: str) -> str:
    if name == "-":
        data = read_stdin()
    else:
        with open(name, "rb") as file:  # noqa: PTH123 - pathlib is a tenth of a command's time
            data = file.read(_LONGEST_TOKEN)
    token = decoded(data, name).strip()
    if not token or len(token.split()) > 1:
        raise WrongUsage(f"cannot use {name}: expected a token and nothing else")
    return token
