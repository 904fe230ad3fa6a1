"""`thermocline backup` and `export`: all of an agent's memory in a file, to restore or to read."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

from ..client.caller import Caller
from ..client.wire import lines_of
from ..client.wording import names_of, size
from ..errors import Conflict, DiskFull, ThermoclineError
from ..runtime.atomic import sync_folder
from .terminal import show_json, visible
from .usage import Args, Form, Verb
from .values import refuse, say

T = TypeVar("T")

_READABLE_BY_OWNER: Final = 0o600
_NAMED: Final = 10


def _backup(args: Args, client: Caller) -> None:
    terminal = "cannot print an archive on a terminal: name a FILE, or use a pipe"
    refuse(args.file == "-" and sys.stdout.isatty(), terminal)
    pieces = client.download("/api/backup", {"seal": True} if args.seal else None)
    if args.file == "-":
        say(f"{size(pass_on(pieces))} written")
        return
    # Reading an archive takes modules that no other verb needs.
    from ..cloud.archive import check_sealed, read  # noqa: PLC0415

    file = Path(args.file).expanduser()
    answer: dict[str, object] = {"file": str(file)}
    if args.seal:
        save(pieces, file, force=bool(args.force), check=check_sealed)
        answer |= {"size_bytes": file.stat().st_size, "sealed": True}
        lines = [f"{visible(str(file))}: {size(file.stat().st_size)}, sealed"]
    else:
        archive = save(pieces, file, force=bool(args.force), check=read)
        made, written = archive.manifest, file.stat().st_size
        answer |= {"size_bytes": written, "agent": made.agent, "made_at": made.made_at}
        answer |= {"counts": made.counts, "files": len(archive.files)}
        answer |= {"unpacked_bytes": archive.size}
        answer["skipped"] = [{"path": entry.path, "why": entry.why} for entry in archive.skipped]
        lines = [
            f"{visible(str(file))}: {size(written)}, agent {made.agent}",
            f"  {counted(made.counts)}",
            f"  {len(archive.files):,} files, {size(archive.size)} unpacked; all checked",
        ]
        for entry in archive.skipped[:_NAMED]:
            say(f"left out: {visible(entry.path)} ({visible(entry.why)})")
        if len(archive.skipped) > _NAMED:
            say(f"left out: {len(archive.skipped) - _NAMED:,} more")
    if args.json:
        show_json(answer)
    else:
        print("\n".join(lines))


def counted(counts: dict[str, int]) -> str:
    """The number of rows of each kind that there is."""
    words = [f"{names_of(name)[1]}: {count:,}" for name, count in counts.items() if count]
    return ", ".join(words) or "nothing stored yet"


def _export(args: Args, client: Caller) -> None:
    rows = client.download("/api/export")
    if args.file in (None, "-"):
        if not sys.stdout.isatty():
            pass_on(rows)
            return
        for line in lines_of(rows):
            show_json(json.loads(line), one_line=True)
        return
    file = Path(args.file).expanduser()
    written = save(rows, file, force=bool(args.force), check=os.path.getsize)
    if args.json:
        show_json({"file": str(file), "size_bytes": written})
    else:
        say(f"{size(written)} written to {file}")


def save(pieces: Iterable[bytes], file: Path, *, force: bool, check: Callable[[Path], T]) -> T:
    """Write `pieces` into a file, for its owner alone; return what `check` makes of it.

    They go into a file beside it, which takes its place once it is complete, on the disk, and not
    refused by `check`. If anything fails, an existing file is unchanged; with `force` it may be
    replaced.

    Raises:
        Conflict: the file is there already, or not a regular file.
        ThermoclineError: the disk refuses.
    """
    _refuse_taken(file, force=force)
    pieces = _begun(pieces)
    # The file beside it is removed after SIGTERM too, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Of two commands at once each writes its own.
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        handle = os.open(part, flags, _READABLE_BY_OWNER)
    except OSError as error:
        raise _refused(error, str(file)) from error
    try:
        with os.fdopen(handle, "wb") as out:
            _write(pieces, out.fileno(), str(part))
            os.fsync(out.fileno())
            checked = check(part)
            _refuse_taken(file, force=force)
            part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    # Some file systems, such as those of USB sticks, cannot sync a folder.
    with contextlib.suppress(OSError):
        sync_folder(file.parent)
    return checked


def pass_on(pieces: Iterable[bytes]) -> int:
    """Write `pieces` to standard output as they come; return how many bytes they were.

    `ThermoclineError`: its reader has left, or the disk refuses.
    """
    pieces = _begun(pieces)
    sys.stdout.flush()
    return _write(pieces, sys.stdout.fileno(), "the result")


def _begun(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """The same pieces, after waiting for the first: a refused call creates no file."""
    coming = iter(pieces)
    return chain([next(coming, b"")], coming)


def _refuse_taken(file: Path, *, force: bool) -> None:
    if not os.path.lexists(file):
        return
    if not file.is_file() or file.is_symlink():
        raise Conflict(
            f"cannot write {file}: it is not a regular file", hint="name another, or - and a pipe"
        )
    if not force:
        raise Conflict(f"cannot write {file}: it is there already", hint="--force replaces it")


def _write(pieces: Iterable[bytes], handle: int, name: str) -> int:
    total = 0
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            try:
                written = os.write(handle, rest)
            except OSError as error:
                raise _refused(error, name) from error
            rest = rest[written:]
            total += written
    return total


def _refused(error: OSError, name: str) -> ThermoclineError:
    why = "its reader has left" if error.errno == errno.EPIPE else (error.strerror or "").lower()
    message = f"cannot write {name}: {why}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(message, hint="make room, or write it to another disk")
    return ThermoclineError(message)


VERBS: Final = {
    "backup": Verb(
        Form("FILE", _backup),
        options="""
        FILE     the file to write; - is standard output
        --force  replace a FILE that is there
        --seal   encrypt it: only your devices and the recovery key open it""",
        note=(
            "The archive contains every row and the files of the workspace; only its owner can\n"
            "read it. It is checked before it gets its name. The daemon keeps running.\n"
            "example:\n  thermocline backup ana-2026-03-01.tar.gz --agent-id ana"
        ),
    ),
    "export": Verb(
        Form("[FILE]", _export),
        options="""
        FILE     the file to write; - (default) is standard output
        --force  replace a FILE that is there""",
        note=(
            "Each line is a row: kind, id, data, and the clocks of its fields. Merged, expired\n"
            "and archived memories are included; fields with their default value are left out.\n"
            "example:\n"
            "  thermocline export | jq -r 'select(.kind == \"memory\") | .data.text'"
        ),
    ),
}
