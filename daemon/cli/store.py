"""`thermocline store` and `update`: store a memory, and change one."""

from __future__ import annotations

import argparse
from typing import Final

from msgspec import UNSET

from ..client import Client
from ..client.wording import number_of
from .arguments import WrongUsage, one_text, say, text_of
from .database import add_database, database_of, patience, synced
from .memories import short
from .options import FIELDS, add_options, fields_of
from .terminal import Shown, cut, show_json, visible

# The columns of a replaced text that are shown.
_SHOWN: Final = 80


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the options of `store`."""
    parser.add_argument("words", nargs="?", metavar="TEXT", help="the text; - reads it from stdin")
    parser.add_argument("--text", metavar="TEXT", help="the text, in place of the first word")
    add_options(parser, FIELDS, FIELDS)
    parser.add_argument("--force", action="store_true", help="store it even if the text is known")
    add_database(parser)
    parser.epilog = (
        "examples:\n"
        '  thermocline store "Ana prefers tea" --category people/ana --importance 0.8\n'
        "  git log -1 --format=%B | thermocline store - --category projects/x"
    )


def run_store(args: argparse.Namespace, client: Client) -> None:
    """Store it, and print its id, or that of the known memory with the same text."""
    text = one_text(args.words, args.text, "--text")
    text, fields, database = text_of(text), fields_of(args), database_of(args)
    client.timeout = patience(database)
    if args.force:
        fields["force"] = True
    stored = client.store(text, **fields)
    is_synced = synced(client, database)
    if not args.json:
        if stored.stored:
            print("stored", short(stored.id), "in", visible(stored.category))
        else:
            uses = number_of(stored.access_count, "time", "times")
            print(f"already known: {short(stored.id)} (used {uses})")
        for key in [] if stored.supersedes is UNSET else stored.supersedes:
            text = " ".join(client.get(key).text.split())
            print(f"replaces {short(key)}: {cut(visible(text), _SHOWN)}")
        if stored.warning is not UNSET:
            say(stored.warning)
        return
    answer = {
        "id": stored.id,
        "category": stored.category,
        "tier": _tier(stored.importance),
        "metadata": stored.metadata,
        "cold_synced": is_synced,
    }
    if stored.supersedes is not UNSET:
        answer["supersedes"] = stored.supersedes
    if not stored.stored:
        answer |= {"stored": False, "known": stored.known}
    if stored.warning is not UNSET:
        answer["warning"] = stored.warning
    show_json(answer, one_line=True)


def _tier(importance: float) -> str:
    """The initial temperature, which EvoClaw derives from the importance alone."""
    if importance >= 0.7:
        return "hot"
    if importance >= 0.3:
        return "warm"
    return "cold" if importance >= 0.05 else "frozen"


def add_update(parser: argparse.ArgumentParser) -> None:
    """Add the options of `update`."""
    parser.add_argument("id", metavar="ID", help="its id, or at least its first 4 characters")
    parser.add_argument("--text", metavar="TEXT", help="the new text; - reads it from stdin")
    add_options(parser, FIELDS, FIELDS)
    parser.add_argument("--merged-into", metavar="ID", help="the memory that replaces it")
    parser.add_argument("--no-tags", action="store_true", help="remove its tags")
    parser.epilog = (
        "Fields that are not given keep their value; --tag, --url, --cmd and --path replace\n"
        "the previous ones.\n\n"
        "example:\n  thermocline update 3f2a9c1b --importance 0.9 --tag urgent"
    )


def run_update(args: argparse.Namespace, client: Client) -> Shown:
    """Change the fields that were given.

    Raises:
        WrongUsage: no field was given.
    """
    changes = fields_of(args)
    if args.text is not None:
        changes["text"] = text_of(args.text)
    if args.merged_into is not None:
        changes["merged_into"] = args.merged_into or None
    if args.no_tags:
        changes["tags"] = []
    if not changes:
        raise WrongUsage("nothing to change: give at least one field, such as --text")
    updated = client.update(args.id, **changes)
    if updated.warning is not UNSET and not args.json:
        say(updated.warning)
    return f"updated {short(updated.id)}"
