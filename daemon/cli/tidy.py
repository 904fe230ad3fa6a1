"""`thermocline tidy`: merge what repeats, mark what is contradicted, archive what has faded."""

from __future__ import annotations

from ..client import Client
from .memories import short
from .terminal import show_json, show_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from ..answers import Tidied

# A hundred thousand memories take half a minute on a small machine.
_PATIENCE_SECONDS: Final = 600.0
_DOES: Final = {"duplicate": "merged into", "contradiction": "superseded by"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument(
        "--dry-run", action="store_true", help="change nothing, and show what would be done"
    )
    parser.epilog = (
        "Nothing is forgotten: a merged memory comes back with thermocline unmerge ID, a\n"
        "contradicted one stays and names the newer, and what has faded stays in the archive."
    )


def run(args: argparse.Namespace) -> int:
    """Tidy up, and tell what was done."""
    with Client(args.socket, args.agent, _PATIENCE_SECONDS) as client:
        tidied = client.tidy(dry_run=args.dry_run)
    if args.json:
        show_json(tidied)
    else:
        _show(tidied, dry_run=args.dry_run)
    return 0


def _show(tidied: Tidied, *, dry_run: bool) -> None:
    show_rows(
        (
            short(pair["older"]),
            _DOES[pair["relation"]],
            short(pair["newer"]),
            f"{pair['older_text']} | {pair['newer_text']} ({'; '.join(pair['reasons'])})",
        )
        for pair in tidied["pairs"]
    )
    named, counted = len(tidied["pairs"]), tidied["merged"] + tidied["superseded"]
    if named < counted:
        print(f"and {counted - named} more")
    print(
        f"{'would merge' if dry_run else 'merged'} {tidied['merged']}, "
        f"supersede{'' if dry_run else 'd'} {tidied['superseded']}, "
        f"archive{'' if dry_run else 'd'} {tidied['archived']} "
        f"of {tidied['examined']} memories"
    )
