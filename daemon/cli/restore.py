"""`thermocline restore`: bring memories back, from the cloud or a file, without a daemon."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ..client import Client
from ..runtime.places import default_state_dir
from .arguments import WrongUsage, number, say
from .backup import kind_of
from .database import token_of
from .terminal import moment, number_of, show_json, show_rows, size, span, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from typing import Final

    from ..restore.join import AgentRestored, Measured, Outcome, Wish
    from ..restore.unpack import Restored
    from ..status_answers import Verification

# It fetches all that there is.
_PATIENCE_SECONDS: Final = 6 * 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's wish."""
    add = parser.add_argument
    add("file", metavar="FILE", nargs="?", help="an archive that `thermocline backup` wrote")
    add(
        "--url", "--db-url", dest="db_url", metavar="URL",
        help="the database: libsql://, https:// or file:/; left out: the configured one",
    )  # fmt: skip
    add("--token-file", metavar="FILE", help="what holds its token alone; - reads standard input")
    add("--auth-token", metavar="TOKEN", help="the token itself, which other users can see")
    add("--to", "--state-dir", dest="to", metavar="DIR", help="where the memories are kept")
    add("--dry-run", action="store_true", help="say what there is, and change nothing")
    add("--replace", action="store_true", help="set aside what is there, under another name")
    add("--keep-going", action="store_true", help="restore what is whole, if some rows are not")
    add("--wait", metavar="SECONDS", type=number, help="give up when nothing answers for so long")
    add("--verify", action="store_true", help="have the daemon prove that it works")
    add("--config", metavar="FILE", help="a configuration over all others")
    add(
        "--set", dest="sets", metavar="KEY=VALUE", action="append", default=[],
        help="set one key of the configuration; may be repeated",
    )  # fmt: skip
    parser.epilog = (
        "Without --agent-id all agents of the database are restored. An interrupted restore is\n"
        "gone on with by the same command. The daemon must not run, but for --verify.\n"
        "After a FILE, what the replica has that is newer comes in, deletions too, once it runs."
    )


def run(args: argparse.Namespace) -> int:
    """Restore, or prove that it works."""
    _check(args)
    if args.verify:
        return _verify(args)
    wish = _wish(args)
    if wish.file is not None:
        return _from_file(wish, as_json=args.json)
    try:
        return _from_replica(wish, args.token_file, as_json=args.json)
    except KeyboardInterrupt:
        say("interrupted; what has come is kept, and the same command goes on with it")
        raise


def _check(args: argparse.Namespace) -> None:
    """Refuse options that contradict one another.

    Raises:
        WrongUsage: they do.
    """
    database = args.db_url or args.token_file or args.auth_token
    if args.file is not None and (database or args.keep_going or args.wait is not None):
        raise WrongUsage("a FILE is restored without a database: leave out its options")
    elsewhere = database or args.file or args.to or args.config or args.sets
    if args.verify and (elsewhere or args.replace or args.dry_run):
        raise WrongUsage("--verify uses the daemon's own database: leave out the rest")
    if args.wait is not None and args.wait < 0:
        raise WrongUsage("--wait: expected a number of seconds, 0 or more")


def _wish(args: argparse.Namespace) -> Wish:
    from ..restore.join import Wish  # noqa: PLC0415 - the other verbs must not load it

    return Wish(
        state_dir=Path(args.to or default_state_dir(os.environ)).expanduser().absolute(),
        agent=args.agent,
        file=Path(args.file) if args.file is not None else None,
        url=args.db_url or None,
        token=token_of(args),
        replace=args.replace,
        dry_run=args.dry_run,
        keep_going=args.keep_going,
        give_up_seconds=args.wait,
        config=Path(args.config).expanduser() if args.config else None,
        sets=tuple(args.sets),
    )


def _from_replica(wish: Wish, token_file: str | None, *, as_json: bool) -> int:
    from ..restore import command  # noqa: PLC0415 - likewise

    if wish.dry_run:
        measured = command.measure(wish)
        if as_json:
            show_json({"dry_run": True, "agents": [_builtins(each) for each in measured]})
        else:
            _show_measured(measured)
        return 0
    outcome = command.from_replica(wish)
    if as_json:
        show_json(_as_json(outcome))
    else:
        for restored in outcome.restored:
            show_rows(_rows(restored))
            print()
        if outcome.restored:
            _show_next(wish, token_file)
    for error in outcome.failed.values():
        say(visible(f"{error.message}" + (f"\n  {error.hint}" if error.hint else ""), keep="\n"))
    return 1 if outcome.failed else 0


def _show_next(wish: Wish, token_file: str | None) -> None:
    """Say what is to be done, now that the memory is there."""
    if wish.url is None:
        print("next: start the daemon, with the same state folder")
        return
    sync = {"url": wish.url}
    # From standard input it has no place to be named.
    if token_file not in (None, "", "-"):
        sync["token_file"] = str(Path(token_file).absolute())
    print("next: start the daemon. To go on replicating there, put this into its config.json:")
    show_json({"sync": sync}, one_line=True)


def _from_file(wish: Wish, *, as_json: bool) -> int:
    from ..restore import command  # noqa: PLC0415 - likewise

    restored = command.from_file(wish, say)
    if as_json:
        show_json(_builtins(restored))
    else:
        show_rows(_rows_of_file(restored))
        if not restored.dry_run:
            print("\nnext: start the daemon, with the same state folder")
    return 0


def _verify(args: argparse.Namespace) -> int:
    if sys.stderr is not None and sys.stderr.isatty():
        say("fetching everything from the replica, and comparing it with the memory in use")
    with Client(args.socket, args.agent, _PATIENCE_SECONDS) as client:
        found: Verification = client.request("POST", "/api/restore", body={"verify": True})
    if args.json:
        show_json(found)
    else:
        print(_told(found))
        for fault in found["faults"]:
            say(visible(fault))
    return 0 if found["verified"] else 1


def _told(found: Verification) -> str:
    took = f"in {span(found['seconds'])}" if found["seconds"] >= 1 else "at once"
    if found["verified"]:
        return f"verified {took}: the replica gives back all {found['rows']:,} rows as they are"
    return (
        f"NOT verified: {found['missing']:,} rows missing, {found['different']:,} different, "
        f"{found['extra']:,} too many, of {found['rows']:,}"
    )


def _rows(restored: AgentRestored) -> Iterator[tuple[str, str]]:
    yield "restored", visible(restored.agent)
    counts = dict(restored.counts)
    yield "memories", f"{counts.pop('memory', 0):,}"
    yield "also", ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "nothing"
    yield "compared", f"{restored.rows:,} rows, all as the replica holds them"
    for fault in restored.lost:
        yield "NOT RESTORED", visible(fault)
    yield "took", _took(restored)
    yield "folder", restored.folder
    if restored.set_aside:
        yield "set aside", restored.set_aside
    if restored.unsent:
        yield "", f"in it are {restored.unsent:,} changes that the replica had not heard of"


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
            f" {span(max(each.seconds, 1.0))}; would go to {each.folder}"
        )
        print(text + (", where a memory is: --replace sets it aside" if each.taken else ""))


def _rows_of_file(restored: Restored) -> Iterator[tuple[str, str]]:
    yield ("would restore" if restored.dry_run else "restored"), visible(restored.agent)
    archived = restored.archived
    made = moment(archived.made_at, time.time())
    yield "backed up", f"{made}, agent {archived.agent}, device {archived.device}"
    for name, count in archived.counts.items():
        yield kind_of(name), f"{count:,}"
    if restored.refused:
        yield "NOT RESTORED", f"{restored.refused:,} rows that make no sense to this release"
    yield "files", f"{restored.files:,}, {size(restored.size_bytes)}"
    yield "folder", restored.folder
    if restored.set_aside:
        yield "set aside", restored.set_aside
    for skipped in restored.skipped:
        yield "not in it", f"{visible(skipped.path)}: {skipped.why}"


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "restored": [_builtins(each) for each in outcome.restored],
        "failed": {name: error.as_dict() for name, error in outcome.failed.items()},
    }


def _builtins(value: object) -> object:
    import msgspec  # noqa: PLC0415 - loaded by now, and not by the other verbs

    return msgspec.to_builtins(value)
