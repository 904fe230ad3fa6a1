"""Writing a file so that a reader, or a power cut, meets the old one or the new one whole."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from ..errors import Conflict


def write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace `path` by `content`, durably.

    When it returns, the content and the name are on the disk. When it raises, or the machine
    stops half-way, `path` is as it was.

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
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable: renames and new files survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_aside(path: Path, word: str, stamp: str) -> Path:
    """Rename `path` to `<name>.<word>-<stamp>`, numbered if that is taken, and return the name."""
    aside = path.with_name(f"{path.name}.{word}-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.{word}-{stamp}-{number}")
    path.rename(aside)
    sync_folder(path.parent)
    return aside


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False
