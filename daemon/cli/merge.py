"""`thermocline merge`, `unmerge` and `tidy`: merging duplicates, and undoing it."""

from __future__ import annotations

import argparse
from typing import Final

from .. import shapes
from ..client import Client
from .database import PATIENCE_SECONDS
from .memories import short
from .terminal import Shown, show_rows

_DOES: Final = {"duplicate": "merged into", "contradiction": "superseded by"}


def add_merge(parser: argparse.ArgumentParser) -> None:
    """Add the options of `merge`."""
    parser.add_argument("id", metavar="ID", help="the memory that is merged, and no longer found")
    parser.add_argument("into", metavar="INTO", help="the memory that stays")
    parser.epilog = (
        "The memory that stays keeps its text and receives the uses, tags and references of the\n"
        "other. thermocline unmerge ID undoes it.\n\n"
        "example:\n  thermocline merge 3f2a9c1b 8019fd10"
    )


def run_merge(args: argparse.Namespace, client: Client) -> Shown:
    """Merge the two."""
    merged = client.merge(args.id, args.into)
    return f"merged {short(merged.retired.id)} into {short(merged.kept.id)}"


def add_unmerge(parser: argparse.ArgumentParser) -> None:
    """Add the options of `unmerge`."""
    parser.add_argument("id", metavar="ID", help="the memory that was merged into another")


def run_unmerge(args: argparse.Namespace, client: Client) -> Shown:
    """Undo a merge."""
    unmerged = client.unmerge(args.id)
    origin = f" from {short(unmerged.kept.id)}" if unmerged.kept else ""
    return f"unmerged {short(unmerged.restored.id)}{origin}"


def add_tidy(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidy`."""
    parser.add_argument(
        "--dry-run", action="store_true", help="change nothing, and show what would be done"
    )
    parser.epilog = (
        "Nothing is deleted: thermocline unmerge ID undoes a merge, a contradicted memory stays\n"
        "and names the newer one, and faded memories stay in the archive."
    )


def run_tidy(args: argparse.Namespace, client: Client) -> Shown:
    """Tidy up, and print what was done."""
    # A hundred thousand memories take half a minute on a small machine.
    client.timeout = PATIENCE_SECONDS
    tidied = client.tidy(dry_run=args.dry_run)
    return lambda: _show(tidied, "" if args.dry_run else "d")


def _show(tidied: shapes.memory.Tidied, past: str) -> None:
    show_rows(
        (
            short(pair.older),
            _DOES[pair.relation],
            short(pair.newer),
            f"{pair.older_text} | {pair.newer_text} ({'; '.join(pair.reasons)})",
        )
        for pair in tidied.pairs
    )
    named, counted = len(tidied.pairs), tidied.merged + tidied.superseded
    if named < counted:
        print(f"and {counted - named} more")
    print(
        f"{'merged' if past else 'would merge'} {tidied.merged}, "
        f"supersede{past} {tidied.superseded}, archive{past} {tidied.archived} "
        f"of {tidied.examined} memories"
    )
