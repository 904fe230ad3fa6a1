"""`thermocline restore`: restore memories from the replica or a file, without a daemon."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..client.caller import Caller
from ..client.wording import moment, names_of, number_of, size, span
from ..runtime.places import default_state_dir
from .options import token_of
from .terminal import show_json, show_rows, visible, worded
from .usage import Args, Form, Verb
from .values import refuse, say, text_in

if TYPE_CHECKING:  # importing it loads what no other verb needs
    from ..cloud.join import AgentRestored, RestoreRequest
    from ..cloud.unpack import Restored

# Verifying fetches all rows over a line of any speed.
_PATIENCE_SECONDS: Final = 6 * 3600.0
# How long a person waits for a replica that does not answer; scripts wait until it does.
_WAIT_SECONDS: Final = 300.0


def _restore(args: Args, client: Caller) -> int:
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


def _check(args: Args) -> None:
    database = args.db_url or args.token_file or args.auth_token
    key = args.recovery_key_file
    of_database = database or args.keep_going or args.wait is not None
    refuse(args.file is not None and of_database, "a FILE needs no database: leave out its options")
    others = (database, key, args.file, args.to, args.config, args.sets, args.replace)
    refuse(
        args.verify and any(others), "--verify uses the daemon's own database: leave out the rest"
    )
    refuse(args.file == "-", "save the archive to a file first: restore reads it more than once")
    refuse((args.wait or 0) < 0, "--wait: expected a number of seconds, 0 or more")


def _request(args: Args) -> RestoreRequest:
    from ..cloud.join import RestoreRequest  # noqa: PLC0415 - the other verbs must not load it

    wait = args.wait
    if wait is None and sys.stderr is not None and sys.stderr.isatty():
        wait = _WAIT_SECONDS
    return RestoreRequest(
        state_dir=Path(args.to or default_state_dir(os.environ)).expanduser().absolute(),
        agent=args.agent,
        file=Path(args.file) if args.file is not None else None,
        url=args.db_url or None,
        token=token_of(args),
        recovery_key=text_in(args.recovery_key_file).strip() if args.recovery_key_file else None,
        replace=bool(args.replace),
        keep_going=bool(args.keep_going),
        give_up_seconds=wait,
        config=Path(args.config).expanduser() if args.config else None,
        sets=tuple(args.sets),
    )


def _from_replica(request: RestoreRequest, token_file: str | None, *, as_json: bool) -> int:
    from ..cloud import command  # noqa: PLC0415 - likewise

    outcome = command.from_replica(request)
    if as_json:
        failed = {name: error.as_dict() for name, error in outcome.failed.items()}
        show_json({"restored": msgspec.to_builtins(outcome.restored), "failed": failed})
    else:
        for restored in outcome.restored:
            show_rows(_rows(restored))
            print()
        if outcome.restored:
            _show_next(request, token_file, sealed=outcome.sealed)
    for error in outcome.failed.values():
        say(visible(f"{error.message}" + (f"\n  {error.hint}" if error.hint else ""), keep="\n"))
    return 1 if outcome.failed else 0


def _show_next(request: RestoreRequest, token_file: str | None, *, sealed: bool) -> None:
    start = _start(request)
    if request.url is None:
        print(f"next: {start}")
        return
    sync = {"url": request.url} | ({"seal": "on"} if sealed else {})
    # A token from standard input has no file to name.
    if token_file not in (None, "", "-"):
        sync["token_file"] = str(Path(token_file).absolute())
    print(f"next: {start}\nto keep replicating there, add this to its config.json:")
    show_json({"sync": sync}, one_line=True)


def _start(request: RestoreRequest) -> str:
    """How a daemon is started that has the restored memories."""
    if request.state_dir == Path(default_state_dir(os.environ)).absolute():
        return "start the daemon"
    return f"thermocline daemon --state-dir {shlex.quote(str(request.state_dir))}"


def _from_file(request: RestoreRequest, *, as_json: bool) -> int:
    from ..cloud import command  # noqa: PLC0415 - likewise

    restored = command.from_file(request, say)
    if as_json:
        show_json(msgspec.to_builtins(restored))
    else:
        show_rows(_rows_of_file(restored))
        print(f"\nnext: {_start(request)}")
    return 0


def _verify(args: Args, client: Caller) -> int:
    if sys.stderr is not None and sys.stderr.isatty():
        say("fetching everything from the replica to compare it with the memory in use")
    client.timeout = _PATIENCE_SECONDS
    answer = client.call("POST /api/restore", verify=True)
    if args.json:
        show_json(answer)
    else:
        print(_verified(answer))
        for fault in answer["faults"]:
            say(visible(fault))
    return 0 if answer["verified"] else 1


def _verified(answer: Mapping[str, Any]) -> str:
    if answer["verified"]:
        duration = f"in {span(answer['seconds'])}" if answer["seconds"] >= 1 else "at once"
        return f"verified {duration}: the replica has all {answer['rows']:,} rows, unchanged"
    counts = "{missing:count} rows missing, {different:count} different, {extra:count} too many"
    return worded(f"NOT verified: {counts}, of {{rows:count}}", answer)


def _rows(restored: AgentRestored) -> Iterator[tuple[str, str]]:
    yield "restored", visible(restored.agent)
    counts = dict(restored.counts)
    yield "memories", f"{counts.pop('memory', 0):,}"
    others = [number_of(count, *names_of(kind)) for kind, count in counts.items()]
    yield "also", ", ".join(others) or "nothing"
    yield "compared", f"{restored.rows:,} rows with the replica: no difference"
    for fault in restored.lost:
        yield "NOT RESTORED", visible(fault)
    rate = restored.rows / restored.seconds if restored.seconds else 0.0
    yield "took", f"{restored.seconds:.1f} s, {rate:,.0f} rows a second"
    if restored.unindexed:
        older = f"the daemon indexes {restored.unindexed:,} older memories in the background, the"
        yield "", f"{older} newest first: until then words do not find them"
    yield "folder", restored.folder
    if restored.set_aside:
        yield "set aside", restored.set_aside
    if restored.unsent:
        yield "", f"it contains {restored.unsent:,} changes that were never sent to the replica"


def _rows_of_file(restored: Restored) -> Iterator[tuple[str, str]]:
    yield "restored", visible(restored.agent)
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


VERBS: Final = {
    "restore": Verb(
        Form("[FILE]", _restore),
        options=f"""
        FILE                    an archive that `thermocline backup` wrote
        --to, --state-dir DIR   where the memories are kept
        --replace               rename the memory that is in the way
        --keep-going            leave out damaged rows
        --wait SECONDS          how long to wait for a replica that cannot be reached (default
                                {_WAIT_SECONDS:.0f} in a terminal, else no limit)
        --verify                have the daemon verify that a restore would work
        --config FILE           a file that overrides the usual ones
        --set KEY=VALUE... = sets  set one key of the configuration; may be repeated
        --url, --db-url URL = db_url  libsql://, https:// or file:/; default: as configured
        --token-file FILE       file that holds only its token; - reads stdin
        --recovery-key-file FILE  file that holds only the recovery key of a sealed replica
        --auth-token TOKEN      the token itself, visible to other users""",
        note=(
            "Without --agent-id all agents of the database are restored. To resume an\n"
            "interrupted restore, repeat the command. The daemon must not run, except for\n"
            "--verify. After restoring a FILE, the daemon fetches newer changes and deletions\n"
            "from the replica."
        ),
    )
}
