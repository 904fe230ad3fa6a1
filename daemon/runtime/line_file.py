"""Appending a line to a file that other programs read and may append to."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..errors import Conflict, translate_os
from .atomic import make_folder

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# A line that was just added is at or near the end.
_LOOKED_AT: Final = 65_536
LOCK: Final = ".lock"
_PATIENCE: Final = 3.0
_POLL: Final = 0.01


def append(path: Path, line: str) -> None:
    """Append `line` to a file, unless it is already near its end. Blocking.

    When it returns, the line is on the disk, whole and once; so a caller that is not sure may call
    again. The remains of this line after a power cut are removed first; an incomplete other line is
    terminated.

    Raises:
        Conflict: the name is not that of a file, or another process holds the lock.
        ThermoclineError: the disk refuses; the file is unchanged.
    """
    try:
        with locked(path.parent):
            folder = os.open(path.parent, _FOLDER)
            try:
                handle = os.open(path.name, _FLAGS, 0o600, dir_fd=folder)
                try:
                    _append(handle, path, line.encode())
                finally:
                    os.close(handle)
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        if error.errno in {errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENOTDIR}:
            raise _no_file(path) from error
        raise translate_os(error, path) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder's files: an exclusive `flock` on its `.lock`. Blocking.

    The folder is made if it is missing.

    Raises:
        Conflict: the lock was not released within 3 seconds.
        OSError: the disk refuses, or the folder or the lock is a link.
    """
    make_folder(folder)
    top = os.open(folder, _FOLDER)
    try:
        handle = os.open(LOCK, _LOCK_FLAGS, 0o600, dir_fd=top)
    finally:
        os.close(top)
    try:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Conflict(
                        f"cannot write into {folder}: another process holds {LOCK}",
                        hint="end it, or let it finish",
                    ) from None
                time.sleep(_POLL)
        yield
    finally:
        # Closing releases it.
        os.close(handle)


def _append(handle: int, path: Path, line: bytes) -> None:
    result = os.fstat(handle)
    if not stat.S_ISREG(result.st_mode):
        raise _no_file(path)
    size = result.st_size
    end = os.pread(handle, _LOOKED_AT, max(0, size - _LOOKED_AT))
    *whole, rest = end.split(b"\n")
    if line in whole:
        # Its writer may have been killed before it was on the disk.
        os.fsync(handle)
        return
    if rest and line.startswith(rest):
        size -= len(rest)
        os.ftruncate(handle, size)
        rest = b""
    data = (b"\n" if rest else b"") + line + b"\n"
    # In one write: lines appended by other programs come before or after it.
    if os.write(handle, data) < len(data):
        os.ftruncate(handle, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    try:
        os.fsync(handle)
    except OSError:
        # The kernel takes for written what it could not sync: the next call has to write it.
        os.ftruncate(handle, size)
        raise


def _no_file(path: Path) -> Conflict:
    return Conflict(f"cannot write {path}: it is not a regular file", hint="move it away")
