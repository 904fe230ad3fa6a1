"""Writes pieces into a file, all or nothing, or to standard output."""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import os
import sys
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

from ..errors import Conflict, DiskFull, ThermoclineError
from .arguments import WrongUsage

T = TypeVar("T")

_READABLE_BY_OWNER: Final = 0o600


def add_file(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    """Add the FILE to write, and --force."""
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?" if default else None,
        default=default,
        help=f"the file to write; -{' (default)' if default else ''} is standard output",
    )
    parser.add_argument("--force", action="store_true", help="replace a FILE that is there")


def save(pieces: Iterable[bytes], file: Path, *, force: bool, check: Callable[[Path], T]) -> T:
    """Write `pieces` into a file, for its owner alone.

    They go into `FILE.part`, which takes its place once it is complete, checked and on the disk.
    If anything fails, an existing file is unchanged.

    Args:
        pieces: the content; an error while they come ends it.
        file: where to.
        force: whether a file that is there may be replaced.
        check: looks at the complete `FILE.part`, and may refuse it; gives what is returned.

    Raises:
        Conflict: the file is there already, or not a regular file, or another command
            is writing it.
        ThermoclineError: the disk refuses.
    """
    _refuse_taken(file, force=force)
    pieces = _begun(pieces)
    part = file.with_name(f"{file.name}.part")
    handle = _open(part)
    try:
        with os.fdopen(handle, "wb") as out:
            _lock(out.fileno(), part)
            _write(pieces, out.fileno(), str(part))
            os.fsync(out.fileno())
            checked = check(part)
            _refuse_taken(file, force=force)
            part.replace(file)
    except BaseException as error:
        if not isinstance(error, _Busy):
            part.unlink(missing_ok=True)
        raise
    _sync_folder(file.parent)
    return checked


def pass_on(pieces: Iterable[bytes]) -> int:
    """Write `pieces` to standard output as they come; return how many bytes they were.

    Raises:
        ThermoclineError: its reader has left, or the disk refuses.
    """
    pieces = _begun(pieces)
    sys.stdout.flush()
    return _write(pieces, sys.stdout.fileno(), "the result")


def refuse_terminal(file: str) -> None:
    """Refuse to write binary data to a terminal.

    Raises:
        WrongUsage: `file` is standard output, and that is a terminal.
    """
    if file == "-" and sys.stdout.isatty():
        raise WrongUsage("cannot print an archive on a terminal: name a FILE, or use a pipe")


def _begun(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """The same pieces, after waiting for the first: a refused call creates no file."""
    coming = iter(pieces)
    return chain([next(coming, b"")], coming)


class _Busy(Conflict):
    """Another command writes the same file, and will remove it."""


def _refuse_taken(file: Path, *, force: bool) -> None:
    if not os.path.lexists(file):
        return
    if not file.is_file() or file.is_symlink():
        raise Conflict(
            f"cannot write {file}: it is not a regular file", hint="name another, or - and a pipe"
        )
    if not force:
        raise Conflict(f"cannot write {file}: it is there already", hint="--force replaces it")


def _open(part: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(part, flags, _READABLE_BY_OWNER)
    except OSError as error:
        raise _refused(error, str(part)) from error


def _lock(handle: int, part: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The command that held it may have renamed it by now.
        mine = os.path.samestat(os.fstat(handle), os.stat(part))  # noqa: PTH116
    except (BlockingIOError, FileNotFoundError):
        mine = False
    if not mine:
        raise _Busy(f"cannot write {part}: another command is writing it", hint="let it finish")
    # A file that an earlier run left may be readable by others, and is not empty.
    os.fchmod(handle, _READABLE_BY_OWNER)
    os.ftruncate(handle, 0)


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


def _sync_folder(folder: Path) -> None:
    # Some file systems, such as those of USB sticks, cannot sync a folder.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
