"""The operating system's errors as errors of our tree."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from ..errors import Conflict, DiskFull, ReadOnly, Unavailable

# The process, or the system, may open no more files.
NO_FILES: Final = {errno.EMFILE, errno.ENFILE}


def translate_os(error: OSError, path: Path) -> Unavailable | Conflict:
    """The error of our tree that stands for one of the operating system's."""
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return ReadOnly(f"cannot use {path}: {error.strerror}", hint="make it writable")
    if error.errno in {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}:
        return Conflict(
            f"cannot use {path}: {error.strerror}", hint="something else is in its place: move it"
        )
    if error.errno in NO_FILES:
        return out_of_files(path)
    return DiskFull(
        f"cannot read or write {path}: {error.strerror}", hint="check the disk and its free space"
    )


def reason_of(error: OSError) -> str:
    """What the operating system said, as a part of a sentence."""
    return (error.strerror or str(error) or "it cannot be read").lower()


def out_of_files(path: Path) -> Unavailable:
    """The error for a file that cannot be opened because too many are."""
    return Unavailable(
        f"cannot open {path}: too many files are open",
        hint="raise the limit of open files (LimitNOFILE), or lower store.max_open_agents",
    )
