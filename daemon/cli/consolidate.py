"""`thermocline consolidate`, `ingest-daily` and `upkeep`: upkeep now, and when it runs."""

from __future__ import annotations

import argparse
import time
from typing import Final

from msgspec import UNSET

from .. import shapes
from ..client import Client
from ..client.wording import ago, moment, number_of
from .arguments import WrongUsage, say, whole
from .database import add_database, database_of, synced
from .memories import short
from .options import given
from .terminal import Shown, show_rows, visible

MODES: Final = ("quick", "daily", "monthly", "full")
# A hundred thousand memories take a minute, and a model takes its time.
_PATIENCE_SECONDS: Final = 1800.0
_LINES: Final = (
    ("ingested_facts", "facts stored from notes"),
    ("ingest_skipped", "facts already known"),
    ("evicted_warm", "faded memories archived"),
    ("expired", "expired memories deleted"),
    ("pruned_nodes", "empty categories removed"),
    ("merged", "memories merged into others"),
    ("superseded", "memories marked as contradicted"),
    ("forgotten", "memories deleted after long disuse"),
)


def add_consolidate(parser: argparse.ArgumentParser) -> None:
    """Add the options of `consolidate`."""
    add = parser.add_argument
    add("--mode", choices=MODES, default="quick", help="what to run (default quick)")
    add("--dry-run", action="store_true", help="change nothing, and show what would be done")
    add("--llm-endpoint", metavar="URL", help="use the model at this address")
    add_database(parser)
    parser.epilog = (
        "quick    update scores, archive faded memories, write the hot state and MEMORY.md\n"
        "daily    store facts from the daily notes, then quick; prune the tree, merge duplicates\n"
        "monthly  daily; rebuild the tree, clean the archive\n"
        "full     the same, by EvoClaw's name\n\n"
        "The daemon runs all of it on a schedule: see thermocline upkeep. An interrupted run\n"
        "starts again the next time. thermocline tree --undo undoes a rebuild of the tree."
    )


def run_consolidate(args: argparse.Namespace, client: Client) -> Shown:
    """Run it, and print what was done."""
    database = database_of(args)
    client.timeout = _PATIENCE_SECONDS
    model = given(args, ("llm_endpoint",))
    done = client.consolidate(args.mode, dry_run=args.dry_run, **model)
    if not args.dry_run:
        synced(client, database)
    for name in ("ingest_error", "model_error"):
        if trouble := getattr(done, name):
            say(visible(str(trouble)))
    return lambda: _show_done(done)


def _show_done(done: shapes.upkeep.Consolidated) -> None:
    rows = [(f"{getattr(done, name):,}", words) for name, words in _LINES if getattr(done, name)]
    if rows:
        show_rows(rows)
    elif not done.tree_changes:
        print("nothing to do")
    for change in done.tree_changes or ():
        print("tree:", visible(change))
    how = "dry run, nothing changed," if done.dry_run else "done"
    hot = (
        f"; {number_of(done.promoted, 'memory', 'memories')} in the hot state"
        if done.promoted is not UNSET
        else ""
    )
    print(f"{done.mode}: {how} in {done.took_ms / 1000:.1f} s{hot}")


def add_ingest_daily(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ingest-daily`."""
    add = parser.add_argument
    add("--days", type=whole, metavar="N", help="number of days, including today (default 2)")
    add("--dry-run", action="store_true", help="store nothing, and show what would be stored")
    add("--llm-endpoint", metavar="URL", help="have the model at this address read the notes")
    add_database(parser)
    parser.epilog = (
        "The notes are the files YYYY-MM-DD*.md in the agent's memory/, and in that of its\n"
        "workspace. Facts that are already known, or were forgotten, are not stored again.\n"
        "Facts are ticked boxes, lines that begin in bold, and items and sentences that state a\n"
        "decision; ingest.categories in the configuration maps headings to categories."
    )


def run_ingest_daily(args: argparse.Namespace, client: Client) -> Shown:
    """Store the facts of the notes, and print the new ones.

    Raises:
        WrongUsage: no day is left.
    """
    if args.days is not None and args.days < 1:
        raise WrongUsage("--days: expected 1 or more")
    database = database_of(args)
    client.timeout = _PATIENCE_SECONDS
    request = given(args, ("days", "llm_endpoint"))
    done = client.ingest(**request, dry_run=args.dry_run)
    if not args.dry_run:
        synced(client, database)
    for note in done.files:
        if note.why:
            say(visible(f"did not read {note.file}: {note.why}"))
    if done.model_error:
        say(visible(f"by rules, without a model: {done.model_error}"))
    return lambda: _show_ingested(done)


def _show_ingested(done: shapes.upkeep.Ingested) -> None:
    show_rows(
        (short(fact.id or ""), f"{fact.importance:.2f}", fact.category, fact.text)
        for fact in done.facts
    )
    stored = "would store" if done.dry_run else "stored"
    files = sum(note.status != "refused" for note in done.files)
    print(
        f"{stored} {done.facts_stored} of {done.facts_found} facts"
        f" in {number_of(files, 'note', 'notes')}"
    )


def add_upkeep(parser: argparse.ArgumentParser) -> None:
    """Add the options of `upkeep`."""
    parser.epilog = (
        "upkeep.* in the configuration sets the times; thermocline consolidate runs it at once."
    )


def run_upkeep(_: argparse.Namespace, client: Client) -> Shown:
    """Show the schedule."""
    status = client.upkeep()
    return lambda: _show_schedule(status)


def _show_schedule(status: shapes.upkeep.UpkeepStatus) -> None:
    if status.schedules:
        head = ("run", f"times ({status.zone})", "last", "next", "")
        show_rows([head, *map(_row, status.schedules)])
    else:
        print("nothing is scheduled: see upkeep.* in the configuration")
    if running := status.running:
        done = f", {running.step} done" if running.step else ""
        print(f"running: {running.mode}, started {ago(running.since)}{visible(done)}")


def _when(seconds: float | None) -> str:
    """A future time with its hour, and with its year if that is not the current year."""
    if seconds is None:
        return "never"
    local = time.localtime(seconds)
    this_year = local.tm_year == time.localtime().tm_year
    return time.strftime("%b %d %H:%M" if this_year else "%b %d %H:%M %Y", local)


def _row(schedule: shapes.upkeep.Schedule) -> tuple[str, ...]:
    seconds, every = schedule.seconds, schedule.every
    took = "" if seconds is None else f"took {seconds:.1f} s"
    return (
        schedule.name,
        schedule.cron or ("" if every is None else f"every {every / 86_400:g} days"),
        moment(schedule.last),
        "by hand" if schedule.next is None else _when(schedule.next),
        f"FAILED: {schedule.error}" if schedule.error else took,
    )
