"""`thermocline consolidate`: do now what otherwise happens by itself."""

from __future__ import annotations

from ..client import Client
from .arguments import say, stdin_once
from .database import add_database, database_of, synced
from .terminal import show_json, show_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from ..upkeep_answers import Consolidated

MODES: Final = ("quick", "daily", "monthly", "full")
# A hundred thousand memories take a minute, and a model takes its time.
PATIENCE_SECONDS: Final = 1800.0
_LINES: Final = (
    ("ingested_facts", "facts taken in from notes"),
    ("ingest_skipped", "facts known already"),
    ("evicted_warm", "faded memories archived"),
    ("expired", "expired memories forgotten"),
    ("pruned_nodes", "empty categories removed"),
    ("merged", "memories merged into others"),
    ("superseded", "memories marked as contradicted"),
    ("forgotten", "long frozen memories forgotten"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = parser.add_argument
    add("--mode", choices=MODES, default="quick", help="how much: quick")
    add("--dry-run", action="store_true", help="change nothing, and show what would be done")
    add("--llm-endpoint", metavar="URL", help="ask the model at this address")
    add_database(parser)
    parser.epilog = (
        "quick    score anew, archive what has faded, write the hot state and MEMORY.md\n"
        "daily    take in the daily notes, then quick; prune the tree, merge what repeats\n"
        "monthly  daily; rebuild the tree, clean the archive\n"
        "full     the same, by EvoClaw's name\n\n"
        "All of it happens by itself: see thermocline upkeep. Interrupted, it begins again\n"
        "the next time. thermocline tree --undo takes a rebuild of the tree back."
    )


def run(args: argparse.Namespace) -> int:
    """Run it, and tell what was done."""
    stdin_once(args.token_file)
    database = database_of(args)
    body: dict[str, Any] = {"mode": args.mode, "dry_run": args.dry_run}
    if args.llm_endpoint:
        body["llm_endpoint"] = args.llm_endpoint
    with Client(args.socket, args.agent, PATIENCE_SECONDS) as client:
        done: Consolidated = client.request("POST", "/api/consolidate", body=body)
        if not args.dry_run:
            synced(client, database)
    if args.json:
        show_json(done)
    else:
        _show(done)
    for name in ("ingest_error", "model_error"):
        if trouble := done.get(name):
            say(visible(str(trouble)))
    return 0


def _show(done: Consolidated) -> None:
    numbers: dict[str, Any] = dict(done)
    rows = [(f"{numbers[name]:,}", words) for name, words in _LINES if numbers.get(name)]
    if rows:
        show_rows(rows)
    elif not done.get("tree_changes"):
        print("nothing has to be done" if done["dry_run"] else "nothing had to be done")
    for change in done.get("tree_changes", []):
        print("tree:", visible(change))
    how = "looked through, and nothing changed," if done["dry_run"] else "done"
    hot = f"; {done['promoted']:,} memories in the hot state" if "promoted" in done else ""
    print(f"{done['mode']}: {how} in {done['took_ms'] / 1000:.1f} s{hot}")
