"""The files of a workspace, as they are reached without ever following a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from .archive import WORKSPACE_FILES, Skipped, is_plain

Identity: TypeAlias = tuple[int, int]
_DEPTH: Final = 64
# It holds the token that opens the cloud's copy; an archive is carried about.
_SECRET: Final = "turso-credentials.json"  # noqa: S105 - the name of a file
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe that took a file's place must not hold up whoever opens it.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Open(msgspec.Struct, frozen=True):
    """A regular file, open for reading until the next one is asked for."""

    path: str
    handle: int
    size: int
    mtime: int
    mode: int


Found: TypeAlias = Open | Skipped


def walk(top: Path, prefix: str, never: Identity) -> Generator[Found, None, None]:
    """Every file below a folder, sorted, and what is there instead of one.

    Links are not followed, not even those that somebody puts there meanwhile.

    Args:
        top: the folder; it may be missing.
        prefix: what its paths begin with, such as `memory`.
        never: device and inode of a folder that is passed over.
    """
    try:
        handle = os.open(top, _FOLDER)
    except FileNotFoundError:
        return
    except OSError as error:
        yield Skipped(prefix, "a link" if top.is_symlink() else _reason(error))
        return
    # Its end leaves no folder open, however early it comes.
    with _closed(handle), closing(_below(handle, prefix, never, 0)) as below:
        for count, found in enumerate(below):
            if count == WORKSPACE_FILES:
                yield Skipped(prefix, f"the rest of it: it has over {count:,} files")
                return
            yield found


def identity(folder: Path) -> Identity:
    """What tells a folder from every other."""
    found = folder.stat()
    return found.st_dev, found.st_ino


def _below(folder: int, prefix: str, never: Identity, depth: int) -> Generator[Found, None, None]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        yield Skipped(prefix, _reason(error))
        return
    for name in names:
        path = f"{prefix}/{name}"
        if not is_plain(path):
            shown = path.encode(errors="backslashreplace").decode()
            yield Skipped(shown, "its name is too long or no UTF-8")
            continue
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                yield from _folder(folder, name, path, never, depth)
            elif stat.S_ISREG(found.st_mode):
                yield from _file(folder, name, path)
            else:
                yield Skipped(path, _kind(found.st_mode))
        except FileNotFoundError:
            continue  # Removed since the folder was listed.
        except OSError as error:
            yield Skipped(path, _reason(error))


def _folder(
    parent: int, name: str, path: str, never: Identity, depth: int
) -> Generator[Found, None, None]:
    if depth == _DEPTH:
        yield Skipped(path, f"it is over {_DEPTH} folders deep")
        return
    with _closed(os.open(name, _FOLDER, dir_fd=parent)) as handle:
        found = os.fstat(handle)
        if (found.st_dev, found.st_ino) == never:
            yield Skipped(path, "the folder of the memories themselves")
        else:
            yield from _below(handle, path, never, depth + 1)


def _file(parent: int, name: str, path: str) -> Generator[Found, None, None]:
    with _closed(os.open(name, _FILE, dir_fd=parent)) as handle:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            yield Skipped(path, _kind(found.st_mode))
        elif name == _SECRET:
            yield Skipped(path, "it holds a token: keep that elsewhere")
        else:
            yield Open(path, handle, found.st_size, int(found.st_mtime), found.st_mode & 0o777)


@contextmanager
def _closed(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        with suppress(OSError):
            os.close(handle)


def _kind(mode: int) -> str:
    return "a link" if stat.S_ISLNK(mode) else "neither a file nor a folder"


def _reason(error: OSError) -> str:
    return (error.strerror or "it cannot be read").lower()
