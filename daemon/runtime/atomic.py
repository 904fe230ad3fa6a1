"""Reading and replacing files in folders that other programs may write to.

Links are never followed, pipes are never waited for, and existing files are never written in place.
A reader sees the old file or the new one, whole; so does a restart after a power cut.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ..errors import Conflict, TooLarge

_ANY_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER: Final = _ANY_FOLDER | os.O_NOFOLLOW
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST_COPY: Final = 33_554_432
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Replacement:
    """New content for a file, under a random name beside it until `finish`.

    The content is durable after `sync`. `finish` renames it to its name, `discard` removes it.

    Raises:
        Conflict: the owner cannot be set.
        OSError: the disk refused; nothing is left behind.
    """

    def __init__(
        self, path: Path, content: bytes, mode: int = 0o600, owner: tuple[int, int] | None = None
    ) -> None:
        self.path = path
        # Shorter than any file system's limit.
        beginning = path.name.encode()[:200].decode(errors="ignore")
        self._temporary = f".{beginning}.{secrets.token_hex(4)}.tmp"
        self._folder = os.open(path.parent, _ANY_FOLDER)
        try:
            self._file = os.open(self._temporary, _NEW, 0o600, dir_fd=self._folder)
        except BaseException:
            os.close(self._folder)
            raise
        try:
            with os.fdopen(self._file, "wb", closefd=False) as file:
                file.write(content)
            if owner is not None:
                _set_owner(self._file, path, owner)
            os.fchmod(self._file, mode)
        except BaseException:
            self.discard()
            raise

    def finish(self) -> os.stat_result:
        """Rename it to the final name; return the file's status behind that."""
        names = (self._temporary, self.path.name)
        os.replace(*names, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        status = os.fstat(self._file)
        self._close()
        return status

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._temporary, dir_fd=self._folder)
        self._close()

    def sync_alone(self) -> None:
        os.fsync(self._file)

    @property
    def filesystem(self) -> tuple[int, int]:
        """The number of the file system that the file is on, and a handle for it."""
        return os.fstat(self._file).st_dev, self._file

    def _close(self) -> None:
        os.close(self._file)
        os.close(self._folder)


def sync(replacements: Iterable[Replacement]) -> None:
    """Make the content of several files durable, with one sync for each file system.

    Earlier writes to other files there, such as a database's log, become durable too.
    """
    for handle in dict(replacement.filesystem for replacement in replacements).values():
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:
            os.sync()
        elif syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace `path` by `content`, durably.

    When it returns, the content and the name are on the disk. When it raises, or the machine stops
    midway, `path` is unchanged.

    Raises:
        Conflict: `path` is a folder, a link or a device.
        OSError: the disk refused; the temporary file is removed.
    """
    if _is_special(path):
        raise Conflict(f"cannot replace {path}: it is not a regular file", hint="move it away")
    new = Replacement(path, content, mode)
    try:
        new.sync_alone()
        new.finish()
    except BaseException:
        new.discard()
        raise
    sync_folder(path.parent)


def read(
    path: Path, limit: int, *, below: Path | None = None, alone: bool = False
) -> tuple[bytes, os.stat_result]:
    """The content of a regular file, and its status when it was opened.

    No part of the path may be a link below the folder `below`; `alone` refuses a file with other
    names (hard links).

    Raises:
        FileNotFoundError: it does not exist.
        Conflict: it is not a regular file, or the path has a link.
        TooLarge: it is larger than the limit.
        OSError: it cannot be read.
    """
    top = path.parent if below is None else below
    folder = os.open(top, _FOLDER if below is not None else _ANY_FOLDER)
    try:
        for part in path.parent.relative_to(top).parts:
            inner = _open(part, folder, path, inner=True)
            os.close(folder)
            folder = inner
        handle = _open(path.name, folder, path, inner=False)
    finally:
        os.close(folder)
    with os.fdopen(handle, "rb") as file:
        result = os.fstat(handle)
        if not stat.S_ISREG(result.st_mode):
            raise Conflict(f"cannot read {path}: it is not a regular file")
        if alone and result.st_nlink > 1:
            raise Conflict(f"cannot use {path}: it has {result.st_nlink} names (hard links)")
        content = file.read(limit + 1) if result.st_size <= limit else b""
    if result.st_size > limit or len(content) > limit:
        raise TooLarge(f"cannot read {path}: it has more than {limit:,} bytes")
    return content, result


def make_folder(path: Path, mode: int = 0o700) -> None:
    """Make a folder and its missing parents, durably: the parent of each new folder is synced.

    Raises:
        OSError: the disk refused, or the name is taken by something else.
    """
    if path.is_dir():
        return
    if path.parent != path:
        make_folder(path.parent, mode)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=mode)
        sync_folder(path.parent)
    if not path.is_dir():
        raise NotADirectoryError(20, "something else than a folder has the name", str(path))


def remove_unfinished(folder: Path, name: str = "*") -> None:
    """Remove the temporary files of `name` (a pattern) in `folder` that a killed writer left.

    Errors are ignored; the next write will report them.
    """
    with contextlib.suppress(OSError):
        for path in folder.glob(f".{name}.????????.tmp"):
            with contextlib.suppress(OSError):
                path.unlink()


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable: renames and new files survive a power cut."""
    _sync(os.open(folder, _ANY_FOLDER))


def sync_tree(folder: Path) -> None:
    """Make all files and names below `folder` durable."""
    for top, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(top, name)
            if not path.is_symlink() and path.is_file():
                _sync(os.open(path, _READ))
        sync_folder(Path(top))


def keep_copy(path: Path, copy: Path) -> None:
    """Copy `path`, durably, with its times. An unreadable or huge file is moved instead."""
    try:
        write(copy, read(path, _LARGEST_COPY)[0])
    except (Conflict, PermissionError, TooLarge):
        path.rename(copy)
    else:
        shutil.copystat(path, copy)


def remove(path: Path) -> None:
    """Remove `path`, durably, if it exists."""
    if path.exists():
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


def inode(path: Path) -> int | None:
    """Which file has the name, if any."""
    try:
        return path.stat().st_ino
    except OSError:
        return None


def set_aside(path: Path, word: str) -> Path:
    """Rename `path`, of whatever type, to its `free_name` and return that."""
    aside = free_name(path, word)
    path.rename(aside)
    sync_folder(path.parent)
    return aside


def free_name(path: Path, word: str) -> Path:
    """`<name>.<word>-<time>` beside `path`, numbered if that is taken."""
    return numbered(path.with_name(f"{path.name}.{word}-{stamp()}"))


def numbered(path: Path) -> Path:
    """The path, with `-2`, `-3` or what follows behind its name if it is taken."""
    free, number = path, 1
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


def stamp() -> str:
    """The present time as used in file names: `20260211T081500`."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime())


def _sync(handle: int) -> None:
    """Make an open file or folder durable, and close it."""
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _open(name: str, folder: int, path: Path, *, inner: bool) -> int:
    result = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISLNK(result):
        raise Conflict(f"cannot read {path}: '{name}' is a link")
    if not (stat.S_ISDIR(result) if inner else stat.S_ISREG(result)):
        raise Conflict(f"cannot read {path}: '{name}' is not a {'folder' if inner else 'file'}")
    return os.open(name, _FOLDER if inner else _READ, dir_fd=folder)


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _set_owner(handle: int, path: Path, owner: tuple[int, int]) -> None:
    made = os.fstat(handle)
    if (made.st_uid, made.st_gid) == owner:
        return
    try:
        os.fchown(handle, *owner)
    except PermissionError as error:
        raise Conflict(f"cannot replace {path}: its owner cannot be kept") from error
