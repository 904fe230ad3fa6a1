"""Writing a file so that a reader, or a power cut, meets the old one or the new one whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from ..errors import Conflict


def write(path: Path, content: bytes, mode: int = 0o600) -> os.stat_result:
    """Replace `path` by `content`, durably.

    When it returns, the content and the name are on the disk. When it raises, or the machine
    stops half-way, `path` is as it was.

    Returns:
        What the written file itself says of its time, size and inode, whatever stands under its
        name by now.

    Raises:
        Conflict: `path` is a folder, a link or a device.
        OSError: the disk refused; the temporary file is gone again.
    """
    if _is_special(path):
        raise Conflict(f"cannot replace {path}: it is not a regular file", hint="move it away")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            written = os.fstat(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return written


def remove_unfinished(folder: Path, name: str = "*") -> None:
    """Remove what a writer of `name` (a pattern) in `folder` left when it was killed.

    A disk that refuses is left for the next write to find.
    """
    with contextlib.suppress(OSError):
        for path in folder.glob(f".{name}.????????.tmp"):
            path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable: renames and new files survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def keep_copy(path: Path, copy: Path) -> None:
    """Copy `path`, durably, with its times. What cannot be read is moved instead."""
    try:
        write(copy, path.read_bytes())
    except PermissionError:
        path.rename(copy)
    else:
        shutil.copystat(path, copy)


def remove(path: Path) -> None:
    """Remove `path`, durably; it may be gone already."""
    if path.exists():
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


def set_aside(path: Path, word: str, stamp: str) -> Path:
    """Rename `path` to its `free_name` and return that."""
    aside = free_name(path, word, stamp)
    path.rename(aside)
    sync_folder(path.parent)
    return aside


def free_name(path: Path, word: str, stamp: str) -> Path:
    """`<name>.<word>-<stamp>` beside `path`, numbered if that is taken."""
    free = path.with_name(f"{path.name}.{word}-{stamp}")
    number = 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{word}-{stamp}-{number}")
    return free


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False
