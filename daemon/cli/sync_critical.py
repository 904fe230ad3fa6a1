"""`thermocline sync-critical`: EvoClaw's command, with its answers."""

from __future__ import annotations

import time

from ..client import ApiError, Client
from .arguments import WrongUsage, say
from .database import PATIENCE_SECONDS, add_database, database_of
from .terminal import show_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add_database(parser)
    parser.epilog = 'It answers in JSON: {"synced", "timestamp"}, or {"error"} and exit code 1.'


def run(args: argparse.Namespace) -> int:
    """Send them, and answer as EvoClaw does, in JSON and on one line."""
    try:
        database = database_of(args)
        with Client(args.socket, args.agent, PATIENCE_SECONDS) as client:
            synced = client.sync(critical=True, **database)
    except WrongUsage as error:
        return _failed(str(error))
    except ApiError as error:
        if error.hint:
            say(visible(error.hint))
        return _failed(str(error))
    now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    # As Python's isoformat has it, with a colon in the offset.
    timestamp = f"{now[:-2]}:{now[-2:]}"
    show_json({"synced": synced["synced"], "timestamp": timestamp}, one_line=True)
    return 0


def _failed(message: str) -> int:
    show_json({"error": message}, one_line=True)
    return 1
