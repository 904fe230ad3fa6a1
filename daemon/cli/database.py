"""EvoClaw's options that name a database for one call."""

from __future__ import annotations

import argparse
from typing import Any, Final

from ..client import Client, ClientError
from .arguments import WrongUsage, say, text_in
from .options import DATABASE, add_options
from .terminal import visible

# Sending a lot over a slow line takes a while; after Ctrl-C the rest is sent later.
PATIENCE_SECONDS: Final = 600.0
_USUAL_SECONDS: Final = 30.0


def add_database(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_options(parser.add_argument_group("a database for this call"), DATABASE, DATABASE)


def database_of(args: argparse.Namespace) -> dict[str, str]:
    """The database of the options, as the API takes it; an empty value counts as left out.

    Raises:
        WrongUsage: a token without a database, or two tokens.
        OSError: the token's file cannot be read.
    """
    given: dict[str, str | None] = {"url": args.db_url, "token": token_of(args)}
    database = {name: value for name, value in given.items() if value}
    if "token" in database and "url" not in database:
        raise WrongUsage("db-url and auth-token required: a token was given without --db-url")
    return database


def token_of(args: argparse.Namespace) -> str | None:
    """The token of the options; an empty value counts as left out.

    Raises:
        WrongUsage: it was given twice, or the file holds something else.
        OSError: its file cannot be read.
    """
    if args.auth_token and args.token_file:
        raise WrongUsage("give the token once: with --token-file, or with --auth-token")
    if args.token_file:
        token = text_in(args.token_file).strip()
        if not token or len(token.split()) > 1:
            raise WrongUsage(f"cannot use {args.token_file}: expected a token and nothing else")
        return token
    if args.auth_token:
        say("every user of this machine can see --auth-token; --token-file FILE hides the token")
    return args.auth_token or None


def patience(database: dict[str, str]) -> float:
    """The seconds to wait for the daemon: longer where it calls a database first."""
    return PATIENCE_SECONDS if database else _USUAL_SECONDS


def synced(client: Client, database: dict[str, str], *, critical: bool = False) -> bool:
    """Send the changes now, if the named database is the agent's replica; whether that was done.

    Another database is left alone, with a warning: replication goes to the configured one. The
    answer that the client got before stays its last one.
    """
    if not database:
        return False
    answered = client.answered
    try:
        if not _is_replica(client, database):
            say(
                "--db-url names another database than the agent's replica, and is left alone here:"
                " set sync.url to replicate there"
            )
            return False
        return client.sync(critical=critical).synced
    except ClientError as error:
        say(visible(f"done here, but not in the database: {error}"))
        return False
    finally:
        client.answered = answered


def _is_replica(client: Client, database: dict[str, Any]) -> bool:
    own, named = client.sync_status().url, database["url"]
    return bool(own) and _plain(own) == _plain(named)


def _plain(url: str) -> str:
    """A URL in a form that is equal for all spellings of one database."""
    return url.strip().rstrip("/").replace("libsql://", "https://", 1).lower()
