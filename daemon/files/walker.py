"""Walks a folder that others write to, by handles: links are never followed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from ..errors import reason_of

Identity: TypeAlias = tuple[int, int]
_FILES: Final = 200_000
_PATH_BYTES: Final = 4_000
_NAME_BYTES: Final = 255
_DEPTH: Final = 64
# Contains the token of the replica, and must not be copied.
LINK: Final = "a link"
SPECIAL: Final = "neither a file nor a folder"
OWN: Final = "the folder of the memories themselves"
_SECRET: Final = "turso-credentials.json"  # noqa: S105 - the name of a file
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, in case a pipe has replaced the file.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Skipped(msgspec.Struct, frozen=True):
    """A path that was skipped, and why."""

    path: str
    why: str


class Open(msgspec.Struct, frozen=True):
    """A regular file, open for reading until the next one is asked for."""

    path: str
    handle: int
    size: int
    mtime: int
    mode: int


Entry: TypeAlias = Open | Skipped
Wanted: TypeAlias = Callable[[str, os.stat_result], bool]


def walk(
    top: Path,
    prefix: str,
    never: Identity,
    wanted: Wanted | None = None,
    enters: Wanted | None = None,
) -> Generator[Entry, None, None]:
    """Every regular file below a folder, sorted, and a `Skipped` for anything else.

    Links are not followed, including those put in place of a folder or file during the walk.
    `prefix` is the beginning of the returned paths, such as `memory`; `never` the device and inode
    of a folder that is skipped; `wanted` says whether to open a file, by its path and stat result;
    `enters` whether to enter a folder, the top included.
    """
    try:
        handle = os.open(top, _FOLDER)
    except FileNotFoundError:
        return
    except OSError as error:
        yield Skipped(prefix, LINK if top.is_symlink() else reason_of(error))
        return
    # Closes all folders even if the caller stops early.
    with _closed(handle), closing(_Walk(never, wanted, enters).entered(handle, prefix, 0)) as below:
        for count, entry in enumerate(below):
            if count == _FILES:
                yield Skipped(prefix, f"the rest of it: it has over {count:,} files")
                return
            yield entry


def open_below(top: Path, below: str) -> int:
    """Open a regular file below a folder, by handles, for reading. A link is an error."""
    with folder_of(top, below) as (folder, name):
        handle = os.open(name, _FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, SPECIAL)
    return handle


@contextmanager
def folder_of(top: Path, below: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that contains a path below `top`: its handle, and the name in it.

    `below` is a path without `..`; with `make` missing folders are created, durably. A link is an
    error.
    """
    *between, name = below.split("/")
    if make:
        top.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = os.open(top, _FOLDER)
    try:
        for part in between:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=folder)
                    os.fsync(folder)
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, name
    finally:
        os.close(folder)


def identity(folder: Path) -> Identity:
    """Device and inode of a folder."""
    status = folder.stat()
    return status.st_dev, status.st_ino


def is_plain(path: str) -> bool:
    """Whether a path only leads downwards, is UTF-8, and is not too long for a disk."""
    try:
        parts = path.encode().split(b"/")
    except UnicodeEncodeError:
        return False
    return (
        "\0" not in path
        and sum(map(len, parts)) + len(parts) <= _PATH_BYTES
        and all(0 < len(part) <= _NAME_BYTES and part not in {b".", b".."} for part in parts)
    )


class _Walk(msgspec.Struct):
    never: Identity
    wanted: Wanted | None
    enters: Wanted | None

    def entered(self, folder: int, path: str, depth: int) -> Generator[Entry, None, None]:
        status = os.fstat(folder)
        if (status.st_dev, status.st_ino) == self.never:
            yield Skipped(path, OWN)
        elif self.enters is None or self.enters(path, status):
            yield from self.below(folder, path, depth)

    def below(self, folder: int, prefix: str, depth: int) -> Generator[Entry, None, None]:
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            yield Skipped(prefix, reason_of(error))
            return
        for name in names:
            path = f"{prefix}/{name}"
            if not is_plain(path.removeprefix("/")):
                shown = path.encode(errors="backslashreplace").decode()
                yield Skipped(shown, "its name is too long or not valid UTF-8")
                continue
            try:
                yield from self._entry(folder, name, path, depth)
            except FileNotFoundError:
                continue  # Removed since the folder was listed.
            except OSError as error:
                yield Skipped(path, reason_of(error))

    def _entry(self, parent: int, name: str, path: str, depth: int) -> Generator[Entry, None, None]:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode) and depth == _DEPTH:
            yield Skipped(path, f"it is over {_DEPTH} folders deep")
        elif stat.S_ISDIR(status.st_mode):
            with _closed(os.open(name, _FOLDER, dir_fd=parent)) as handle:
                yield from self.entered(handle, path, depth + 1)
        elif not stat.S_ISREG(status.st_mode):
            yield Skipped(path, kind(status.st_mode))
        elif self.wanted is None or self.wanted(path, status):
            yield from _file(parent, name, path)


def _file(parent: int, name: str, path: str) -> Generator[Entry, None, None]:
    with _closed(os.open(name, _FILE, dir_fd=parent)) as handle:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            yield Skipped(path, kind(status.st_mode))
        elif name == _SECRET:
            yield Skipped(path, "it holds a token: keep it elsewhere")
        else:
            yield Open(path, handle, status.st_size, int(status.st_mtime), status.st_mode & 0o777)


@contextmanager
def _closed(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        with suppress(OSError):
            os.close(handle)


def kind(mode: int) -> str:
    """What is neither a regular file nor a folder, in words."""
    return LINK if stat.S_ISLNK(mode) else SPECIAL
