"""The files of a workspace: finds changes on the disk, and writes files without losing changes.

Everything here blocks. Links are never followed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import msgspec

from ..memory.workspace import FOLDER, LARGEST, belongs
from ..store import line_file, notes
from ..store.atomic import make_folder
from ..store.notes import NOWHERE, FoundNote, Stand, WaitingNote
from . import walker
from .walker import Identity, Open, Skipped, folder_of

# The maximum amount of text in memory at once.
_LOOK_BYTES: Final = 4_194_304
# SQLite's largest integer; some file systems have later times.
_LATEST_NS: Final = (1 << 63) - 1
# The year 2106, the latest that all file systems support.
_LATEST_SECONDS: Final = float(1 << 32)
_UNFINISHED: Final = ".thermocline-"
_IS_UNFINISHED: Final = re.compile(rf"(.*/)?{re.escape(_UNFINISHED)}[0-9a-f]{{16}}")
_NEW_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# A link, or something other than a file or a folder.
_IN_THE_WAY: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EEXIST})


class Left(msgspec.Struct, frozen=True):
    """A file that cannot be replicated, and why."""

    path: str
    stand: Stand
    why: str


class Look(msgspec.Struct):
    """The changes on a disk.

    Attributes:
        found: new and changed files.
        vanished: removed files.
        left: files that cannot be replicated.
        unfinished: temporary files of a killed process.
        more: whether there may be more changes, since the limit was reached.
    """

    found: list[FoundNote] = []
    vanished: list[str] = []
    left: list[Left] = []
    unfinished: list[str] = []
    more: bool = False


def look(top: Path, known: Mapping[str, Stand], left: Mapping[str, Left], never: Identity) -> Look:
    """Compare a workspace's files with their known stands. Blocking.

    If the folder is missing, or all of several known files are, it is probably not mounted, and no
    file counts as removed.

    Args:
        top: the folder `memory`; a link is not followed.
        known: the known stands of files, by path.
        left: the files that the last call could not take, by path; read again only if changed.
        never: device and inode of a folder that is skipped.

    Raises:
        OSError: the disk refuses.
    """
    result = Look()
    if not top.is_dir():
        return result
    seen: set[str] = set()

    def wanted(path: str, found: os.stat_result) -> bool:
        if _IS_UNFINISHED.fullmatch(path):
            result.unfinished.append(path)
        if not belongs(path):
            return False
        seen.add(path)
        return known.get(path) != _stand_of(found)

    with closing(walker.walk(top, FOLDER, never, wanted)) as files:
        skipped = _look_at(files, left, result)
    if not result.more:
        here = {path for path, stand in known.items() if stand != NOWHERE}
        barred = tuple(f"{path}/" for path in skipped)
        gone = {path for path in here - seen if not f"{path}/".startswith(barred)}
        # The folder may just not be mounted.
        result.vanished = [] if gone == here and len(here) > 1 else sorted(gone)
    return result


def _look_at(
    files: Generator[Open | Skipped, None, None], left: Mapping[str, Left], result: Look
) -> list[str]:
    """Read changed files into `result`; return the paths that were skipped."""
    skipped: list[str] = []
    room = _LOOK_BYTES
    for file in files:
        if isinstance(file, Skipped):
            skipped.append(file.path)
            continue
        stand = _stand_of(os.fstat(file.handle))
        before = left.get(file.path)
        if before is not None and before.stand == stand:
            result.left.append(before)
            continue
        if stand.size > LARGEST:
            why = f"it has {stand.size // 1024} KB, the limit is {LARGEST // 1024} KB"
            result.left.append(Left(file.path, stand, why))
            continue
        content = _read(file.handle, stand.size)
        if len(content) != stand.size or _stand_of(os.fstat(file.handle)) != stand:
            continue  # It is being written; the next call reads it.
        try:
            result.found.append(FoundNote(file.path, stand, content.decode()))
        except UnicodeDecodeError:
            result.left.append(Left(file.path, stand, "it is not valid UTF-8"))
        room -= len(content)
        if room < 0:
            result.more = True
            break
    return skipped


def place(
    top: Path, files: Iterable[WaitingNote]
) -> tuple[list[tuple[WaitingNote, Stand]], list[Skipped]]:
    """Write or remove files, durably, unless they have changed meanwhile. Blocking.

    Args:
        top: the folder `memory`, which is created if it is missing.
        files: the files to write or remove.

    Returns:
        The finished files with their new stands, and the files that something other than a file or
        folder blocks.

    Raises:
        OSError: the disk refuses.
    """
    done: list[tuple[WaitingNote, Stand]] = []
    barred: list[Skipped] = []
    for file in files:
        try:
            if file.note is None:
                after = _remove(top, file.path, file.stand)
            else:
                after = _write(top, file.path, file.note, file.stand)
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
            barred.append(Skipped(file.path, "something else than a file or a folder is there"))
            continue
        if after is not None:
            done.append((file, after))
    return done, barred


def stand_at(top: Path, path: str) -> Stand:
    """The stand of a file of a workspace.

    Raises:
        OSError: `EEXIST`: something else has the name; the disk refuses.
    """
    try:
        with folder_of(top, _below(path)) as (folder, name):
            return _stand(folder, name)
    except FileNotFoundError:
        return NOWHERE


def _write(top: Path, path: str, note: notes.Note, stand: Stand) -> Stand | None:
    """Write a file; None if its stand is not `stand`."""
    with folder_of(top, _below(path), make=True) as (folder, name):
        if _stand(folder, name) != stand:
            return None
        # A random name, since a predictable one could be a prepared link or pipe.
        unfinished = f"{_UNFINISHED}{secrets.token_hex(8)}"
        with os.fdopen(os.open(unfinished, _NEW_FLAGS, 0o600, dir_fd=folder), "wb") as out:
            try:
                with suppress(FileNotFoundError):
                    before = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    os.fchmod(out.fileno(), before.st_mode & 0o777)
                out.write(note.text.encode())
                out.flush()
                modified_at = int(max(0.0, min(note.modified_at, _LATEST_SECONDS)) * 1e9)
                os.utime(out.fileno(), ns=(modified_at, modified_at))
                os.fsync(out.fileno())
                after = _stand_of(os.fstat(out.fileno()))
                if _stand(folder, name) != stand:
                    os.unlink(unfinished, dir_fd=folder)
                    return None
                os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(unfinished, dir_fd=folder)
                raise
        os.fsync(folder)
        return after


def _remove(top: Path, path: str, stand: Stand | None) -> Stand | None:
    """Remove a file; None if its stand is not `stand`. Without `stand`, unconditionally."""
    try:
        with folder_of(top, _below(path)) as (folder, name):
            if stand is not None and _stand(folder, name) != stand:
                return None
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)
    except FileNotFoundError:
        pass
    return NOWHERE


def _stand(folder: int, name: str) -> Stand:
    """The stand of the file with this name.

    Raises:
        OSError: `EEXIST`: something else has the name.
    """
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return NOWHERE
    if not stat.S_ISREG(found.st_mode):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    return _stand_of(found)


def _stand_of(found: os.stat_result) -> Stand:
    return Stand(found.st_size, max(-_LATEST_NS, min(found.st_mtime_ns, _LATEST_NS)))


def _read(handle: int, size: int) -> bytes:
    """The whole file, and one more byte if it has grown."""
    pieces = []
    left = size + 1
    while left and (piece := os.read(handle, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def remove_unfinished(top: Path, paths: Sequence[str]) -> None:
    """Remove the temporary files of a killed process. The lock keeps out running writers."""
    with line_file.locked(top):
        for path in paths:
            _remove(top, path, None)


def place_locked(
    top: Path, files: Sequence[WaitingNote]
) -> tuple[list[tuple[WaitingNote, Stand]], list[Skipped]]:
    """`place`, with the lock of the folder, which is created if it is missing."""
    try:
        make_folder(top)
        with line_file.locked(top):
            return place(top, files)
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise
        return [], [Skipped(file.path, f"{top} is not a folder, or a link") for file in files]


def _below(path: str) -> str:
    """A path without the leading folder `memory`."""
    return path.partition("/")[2]
