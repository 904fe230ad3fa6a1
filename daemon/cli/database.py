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


def synced(client: Client, database: Database, *, critical: bool = False) -> bool:
    """Send now what was changed, where the agent's own replica was named; whether that was done.

    Another database is left alone, which is said once: replication is the configuration's.
    """
    if not database:
        return False
    try:
        if not _is_replica(client, database):
            say(
                "--db-url names another database than the agent's replica, and is left alone here:"
                " set sync.url to replicate there"
            )
            return False
        return client.sync(critical=critical)["synced"]
    except ClientError as error:
        say(visible(f"done here, but not in the database: {error}"))
        return False


def _is_replica(client: Client, database: Database) -> bool:
    own, named = client.sync_status()["url"], database["url"]
    return bool(own) and _plain(own) == _plain(named)


def _plain(url: str) -> str:
    """A URL without what does not tell databases apart."""
    return url.strip().rstrip("/").replace("libsql://", "https://", 1).lower()


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
