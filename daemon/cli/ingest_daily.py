"""`thermocline ingest-daily`: remember what the daily notes say."""

from __future__ import annotations

from ..client import Client
from .arguments import WrongUsage, say, stdin_once, whole
from .consolidate import PATIENCE_SECONDS
from .database import add_database, database_of, synced
from .memories import short
from .terminal import show_json, show_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from ..upkeep_answers import Ingested

_AT_ONCE: Final = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = parser.add_argument
    add("--days", type=whole, metavar="N", help="of so many days, today's included (2)")
    add("--dry-run", action="store_true", help="store nothing, and show what would be stored")
    add("--llm-endpoint", metavar="URL", help="have the model at this address read them")
    add_database(parser)
    parser.epilog = (
        "The notes are the files YYYY-MM-DD*.md in the agent's memory/, and in that of its\n"
        "workspace. A fact is taken in once: what is known already, or was forgotten, is not.\n"
        "Facts are ticked boxes, lines that begin in bold, and items and sentences that decide\n"
        "something; headings lead to categories by ingest.categories of the configuration."
    )


def run(args: argparse.Namespace) -> int:
    """Take them in, and tell what is new."""
    if args.days is not None and args.days < 1:
        raise WrongUsage("--days: expected 1 or more")
    stdin_once(args.token_file)
    database = database_of(args)
    wish = {"days": args.days, "dry_run": args.dry_run, "llm_endpoint": args.llm_endpoint}
    body = {name: value for name, value in wish.items() if value}
    with Client(args.socket, args.agent, PATIENCE_SECONDS) as client:
        done: Ingested = client.request("POST", "/api/ingest", body=body)
        if not args.dry_run:
            synced(client, database)
    if args.json:
        show_json(done)
    else:
        _show(done)
    for note in done["files"]:
        if "why" in note:
            say(visible(f"did not read {note['file']}: {note['why']}"))
    if "model_error" in done:
        say(visible(f"by rules, without a model: {done['model_error']}"))
    return 0


def _show(done: Ingested) -> None:
    rows: list[Any] = [
        (
            short(fact.get("id", "")),
            f"{fact['importance']:.2f}",
            fact["category"],
            fact["text"],
        )
        for fact in done["facts"]
    ]
    if rows:
        show_rows(rows)
    stored = "would store" if done["dry_run"] else "stored"
    files = sum(note["status"] != "refused" for note in done["files"])
    print(
        f"{stored} {done['facts_stored']} of {done['facts_found']} facts"
        f" in {files} {'note' if files == 1 else 'notes'}"
    )
