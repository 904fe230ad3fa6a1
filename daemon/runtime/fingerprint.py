"""What tells the versions of a file apart, without reading it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

# SQLite's largest integer; some file systems have later times.
_MOST: Final = (1 << 63) - 1


class Fingerprint(msgspec.Struct, frozen=True):
    """The status of a file; another one has been written, moved or replaced since.

    `size` is in bytes, -1 if there is no file; the times are in nanoseconds since the epoch.
    """

    size: int
    mtime: int = 0
    ctime: int = 0
    inode: int = 0


NOWHERE: Final = Fingerprint(-1)


def fingerprint_of(status: os.stat_result) -> Fingerprint:
    """The fingerprint of a file with this status."""
    numbers = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return Fingerprint(status.st_size, *(max(-_MOST, min(each, _MOST)) for each in numbers))


def fingerprint_at(path: Path) -> Fingerprint:
    """The fingerprint of what has a name, be it a link; `NOWHERE` if nothing can be seen there."""
    try:
        return fingerprint_of(path.lstat())
    except OSError:
        return NOWHERE
