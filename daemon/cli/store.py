"""`thermocline store`: remember a text."""

from __future__ import annotations

from ..client import Client
from .arguments import WrongUsage, stdin_once, text_of
from .database import add_database, database_of, patience, synced
from .fields import add_fields, given_fields
from .memories import short
from .terminal import show_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from ..answers import Memory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("words", nargs="?", metavar="TEXT", help="the text; - reads it from stdin")
    parser.add_argument("--text", metavar="TEXT", help="the text, in place of the first word")
    add_fields(parser)
    add_database(parser)
    parser.epilog = (
        "examples:\n"
        '  thermocline store "Ana prefers tea" --category people/ana --importance 0.8\n'
        "  git log -1 --format=%B | thermocline store - --category projects/x"
    )


def run(args: argparse.Namespace) -> int:
    """Store it, and say under which id."""
    given = one_text(args.words, args.text, "--text")
    stdin_once(given, args.data, args.token_file)
    text = text_of(given)
    fields = given_fields(args)
    database = database_of(args)
    with Client(args.socket, args.agent, patience(database)) as client:
        stored = client.store(text, **fields)
        is_synced = synced(client, database)
    if args.json:
        show_json(_record(stored, synced=is_synced), one_line=True)
    else:
        print("stored", short(stored["id"]), "in", visible(stored["category"]))
    return 0


def one_text(words: str | None, option: str | None, name: str) -> str:
    """The text that was given, as a word or by an option.

    Raises:
        WrongUsage: it was given in neither way, or in both.
    """
    if words is not None and option is not None:
        raise WrongUsage(f"give the text once: as a word, or with {name}")
    given = option if words is None else words
    if given is None:
        raise WrongUsage(f"a text is missing: give it as a word, or with {name}")
    return given


def _record(stored: Memory, *, synced: bool) -> dict[str, Any]:
    return {
        "id": stored["id"],
        "category": stored["category"],
        "tier": _tier(stored["importance"]),
        "metadata": stored["metadata"],
        "cold_synced": synced,
    }


def _tier(importance: float) -> str:
    """The temperature at birth, which EvoClaw reads off the importance alone."""
    if importance >= 0.7:
        return "hot"
    if importance >= 0.3:
        return "warm"
    return "cold" if importance >= 0.05 else "frozen"
