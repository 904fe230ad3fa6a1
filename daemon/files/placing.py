"""Writing files into a workspace, and removing them, without ever following a link.

What somebody has written since the file was looked at is never written over.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ..memory.workspace import FOLDER
from ..store.files import NOWHERE, Stand, Unplaced
from ..store.workspace_files import Skipped

# Hidden, so that nobody takes it for a file of the workspace; one that a kill has left is
# written over by the next.
_UNFINISHED: Final = ".thermocline-unfinished"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A link, or something else than a file or a folder.
_IN_THE_WAY: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EEXIST})
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def place(
    top: Path, files: Iterable[Unplaced]
) -> tuple[list[tuple[Unplaced, Stand]], list[Skipped]]:
    """Write each file, durably and whole, unless it was written since. Blocking.

    Args:
        top: the folder `memory`; it is made where it is missing.
        files: what to write.

    Returns:
        Those that are on the disk now, with how they stand; and those that cannot be, since
        something else than a file or a folder is in the way.

    Raises:
        OSError: the disk refuses.
    """
    top.mkdir(mode=0o700, parents=True, exist_ok=True)
    written: list[tuple[Unplaced, Stand]] = []
    barred: list[Skipped] = []
    for file in files:
        try:
            with _folder_of(top, file.path, make=True) as (folder, name):
                stand = _write(folder, name, file)
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
            barred.append(Skipped(file.path, "something else than a file or a folder is there"))
            continue
        if stand is not None:
            written.append((file, stand))
    return written, barred


def remove(top: Path, files: Mapping[str, Stand]) -> list[str]:
    """Remove the files that stand as they were known. Blocking.

    Returns:
        Those that nobody has to remove any more: they are gone, or were written to since.

    Raises:
        OSError: the disk refuses.
    """
    for path, stand in files.items():
        try:
            with _folder_of(top, path, make=False) as (folder, name):
                if _stand(folder, name) == stand:
                    os.unlink(name, dir_fd=folder)
                    os.fsync(folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
    return list(files)


def _write(folder: int, name: str, file: Unplaced) -> Stand | None:
    """Put the content under the name; None: something else stands there than was known."""
    if _stand(folder, name) != file.stand:
        return None
    handle = os.open(_UNFINISHED, _NEW, 0o600, dir_fd=folder)
    try:
        with suppress(FileNotFoundError):
            os.fchmod(handle, os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & 0o777)
        with os.fdopen(os.dup(handle), "wb") as out:
            out.write(file.content.text.encode())
        os.utime(handle, (file.content.modified_at, file.content.modified_at))
        os.fsync(handle)
        found = os.fstat(handle)
        if _stand(folder, name) != file.stand:
            os.unlink(_UNFINISHED, dir_fd=folder)
            return None
        os.replace(_UNFINISHED, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(_UNFINISHED, dir_fd=folder)
        raise
    finally:
        os.close(handle)
    os.fsync(folder)
    return Stand(found.st_size, found.st_mtime_ns)


@contextmanager
def _folder_of(top: Path, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """The open folder that a file is in, and its name there."""
    first, *between, name = path.split("/")
    assert first == FOLDER
    folder = os.open(top, _FOLDER)
    try:
        for part in between:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=folder)
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder, name
    finally:
        os.close(folder)


def _stand(folder: int, name: str) -> Stand:
    """How the file of a name stands.

    Raises:
        OSError: `EEXIST`: something else has the name.
    """
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return NOWHERE
    if not stat.S_ISREG(found.st_mode):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    return Stand(found.st_size, found.st_mtime_ns)
