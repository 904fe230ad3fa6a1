"""`thermocline restore`: restore memories from the replica or a file, without a daemon."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .. import shapes
from ..client import Client
from ..client.wording import moment, names_of, number_of, size
from ..runtime.places import default_state_dir
from .arguments import number, say
from .database import token_of
from .options import DAEMON, DATABASE, add_options, refuse
from .terminal import show_answer, show_json, show_rows, span, visible

if TYPE_CHECKING:  # importing it loads what no other verb needs
    from ..restore.join import AgentRestored, Measured, Outcome, RestoreRequest
    from ..restore.unpack import Restored

# Verifying fetches all rows over a line of any speed.
_PATIENCE_SECONDS: Final = 6 * 3600.0
# How long a person waits for a replica that does not answer; scripts wait until it does.
_WAIT_SECONDS: Final = 300.0


def add_restore(parser: argparse.ArgumentParser) -> None:
    """Add the options of `restore`."""
    add = parser.add_argument
    add("file", metavar="FILE", nargs="?", help="an archive that `thermocline backup` wrote")
    url = {
        "flags": ("--url", "--db-url"),
        "help": "libsql://, https:// or file:/; default: as configured",
    }
    add_options(parser, DATABASE, DATABASE, db_url=url)
    add("--to", "--state-dir", dest="to", metavar="DIR", help="where the memories are kept")
    add("--dry-run", action="store_true", help="change nothing, and show what is there")
    add("--replace", action="store_true", help="rename the memory that is in the way")
    add("--keep-going", action="store_true", help="leave out damaged rows")
    add(
        "--wait", metavar="SECONDS", type=number,
        help="how long to wait for a replica that cannot be reached"
        f" (default {_WAIT_SECONDS:.0f} in a terminal, else no limit)",
    )  # fmt: skip
    add("--verify", action="store_true", help="have the daemon verify that a restore would work")
    sets = {"help": "set one key of the configuration; may be repeated"}
    config = {"help": "a file that overrides the usual ones"}
    add_options(parser, DAEMON, ("config", "sets"), config=config, sets=sets)
    parser.epilog = (
        "Without --agent-id all agents of the database are restored. To resume an interrupted\n"
        "restore, repeat the command. The daemon must not run, except for --verify.\n"
        "After restoring a FILE, the daemon fetches newer changes and deletions from the replica."
    )


def run_restore(args: argparse.Namespace, client: Client) -> int:
    """Restore, or verify that it would work."""
    _check(args)
    if args.verify:
        return _verify(args, client)
    request = _request(args)
    if request.file is not None:
        return _from_file(request, as_json=args.json)
    try:
        return _from_replica(request, args.token_file, as_json=args.json)
    except KeyboardInterrupt:
        say("interrupted; what was fetched is kept: repeat the command to resume")
        raise


def _check(args: argparse.Namespace) -> None:
    """Refuse options that contradict one another.

    Raises:
        WrongUsage: they do.
    """
    database = args.db_url or args.token_file or args.auth_token
    of_database = database or args.keep_going or args.wait is not None
    refuse(args.file is not None and of_database, "a FILE needs no database: leave out its options")
    others = (database, args.file, args.to, args.config, args.sets, args.replace, args.dry_run)
    refuse(
        args.verify and any(others), "--verify uses the daemon's own database: leave out the rest"
    )
    refuse((args.wait or 0) < 0, "--wait: expected a number of seconds, 0 or more")


def _request(args: argparse.Namespace) -> RestoreRequest:
    from ..restore.join import RestoreRequest  # noqa: PLC0415 - the other verbs must not load it

    wait = args.wait
    if wait is None and sys.stderr is not None and sys.stderr.isatty():
        wait = _WAIT_SECONDS
    return RestoreRequest(
        state_dir=Path(args.to or default_state_dir(os.environ)).expanduser().absolute(),
        agent=args.agent,
        file=Path(args.file) if args.file is not None else None,
        url=args.db_url or None,
        token=token_of(args),
        replace=args.replace,
        dry_run=args.dry_run,
        keep_going=args.keep_going,
        give_up_seconds=wait,
        config=Path(args.config).expanduser() if args.config else None,
        sets=tuple(args.sets),
    )


def _from_replica(request: RestoreRequest, token_file: str | None, *, as_json: bool) -> int:
    from ..restore import command  # noqa: PLC0415 - likewise

    if request.dry_run:
        measured = command.measure(request)
        if as_json:
            show_json({"dry_run": True, "agents": measured})
        else:
            _show_measured(measured)
        return 0
    outcome = command.from_replica(request)
    if as_json:
        show_json(_as_json(outcome))
    else:
        for restored in outcome.restored:
            show_rows(_rows(restored))
            print()
        if outcome.restored:
            _show_next(request, token_file)
    for error in outcome.failed.values():
        say(visible(f"{error.message}" + (f"\n  {error.hint}" if error.hint else ""), keep="\n"))
    return 1 if outcome.failed else 0


def _show_next(request: RestoreRequest, token_file: str | None) -> None:
    if request.url is None:
        print("next: start the daemon, with the same state folder")
        return
    sync = {"url": request.url}
    # A token from standard input has no file to name.
    if token_file not in (None, "", "-"):
        sync["token_file"] = str(Path(token_file).absolute())
    print("next: start the daemon. To keep replicating there, add this to its config.json:")
    show_json({"sync": sync}, one_line=True)


def _from_file(request: RestoreRequest, *, as_json: bool) -> int:
    from ..restore import command  # noqa: PLC0415 - likewise

    restored = command.from_file(request, say)
    if as_json:
        show_json(restored)
    else:
        show_rows(_rows_of_file(restored))
        if not restored.dry_run:
            print("\nnext: start the daemon, with the same state folder")
    return 0


def _verify(args: argparse.Namespace, client: Client) -> int:
    if sys.stderr is not None and sys.stderr.isatty():
        say("fetching everything from the replica to compare it with the memory in use")
    client.timeout = _PATIENCE_SECONDS
    found = client.verify()
    if args.json:
        show_answer(client.answered)
    else:
        print(_told(found))
        for fault in found.faults:
            say(visible(fault))
    return 0 if found.verified else 1


def _told(found: shapes.sync.Verification) -> str:
    took = f"in {span(found.seconds)}" if found.seconds >= 1 else "at once"
    if found.verified:
        return f"verified {took}: the replica has all {found.rows:,} rows, unchanged"
    return (
        f"NOT verified: {found.missing:,} rows missing, {found.different:,} different, "
        f"{found.extra:,} too many, of {found.rows:,}"
    )


def _rows(restored: AgentRestored) -> Iterator[tuple[str, str]]:
    yield "restored", visible(restored.agent)
    counts = dict(restored.counts)
    yield "memories", f"{counts.pop('memory', 0):,}"
    yield "also", ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "nothing"
    yield "compared", f"{restored.rows:,} rows with the replica: no difference"
    for fault in restored.lost:
        yield "NOT RESTORED", visible(fault)
    yield "took", _took(restored)
    yield "folder", restored.folder
    if restored.set_aside:
        yield "set aside", restored.set_aside
    if restored.unsent:
        yield "", f"it contains {restored.unsent:,} changes that were never sent to the replica"


def _took(restored: AgentRestored) -> str:
    rate = restored.rows / restored.seconds if restored.seconds else 0.0
    return f"{restored.seconds:.1f} s, {rate:,.0f} rows a second"


def _show_measured(measured: Sequence[Measured]) -> None:
    for each in measured:
        others = sum(each.counts.values()) - each.counts.get("memory", 0)
        held = number_of(each.counts.get("memory", 0), "memory", "memories")
        text = (
            f"{visible(each.agent)}: {held}"
            f" and {number_of(others, 'other row', 'other rows')}, about"
            f" {span(max(each.seconds, 1.0))}; to be restored to {each.folder}"
        )
        print(text + (", which already holds a memory: --replace renames it" if each.taken else ""))


def _rows_of_file(restored: Restored) -> Iterator[tuple[str, str]]:
    yield ("would restore" if restored.dry_run else "restored"), visible(restored.agent)
    archived = restored.archived
    made = moment(archived.made_at)
    yield "backed up", f"{made}, agent {archived.agent}, device {archived.device}"
    for name, count in archived.counts.items():
        yield names_of(name)[1], f"{count:,}"
    if restored.refused:
        yield "NOT RESTORED", f"{restored.refused:,} rows that this release cannot read"
    yield "files", f"{restored.files:,}, {size(restored.size_bytes)}"
    yield "folder", restored.folder
    if restored.set_aside:
        yield "set aside", restored.set_aside
    for skipped in restored.skipped:
        yield "left out", f"{visible(skipped.path)}: {skipped.why}"


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "restored": outcome.restored,
        "failed": {name: error.as_dict() for name, error in outcome.failed.items()},
    }
