"""What has changed in a workspace since it was looked at last."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from ..memory.workspace import FOLDER, LARGEST, belongs
from ..store import workspace_files
from ..store.files import Found, Known, Stand
from ..store.workspace_files import Identity, Open, Skipped

# So much is held in memory at once; the next look finds the rest.
_ROOM: Final = 4_194_304


class Left(msgspec.Struct, frozen=True):
    """A file that cannot be taken in as it stands, and why."""

    path: str
    stand: Stand
    why: str


class Look(msgspec.Struct, frozen=True):
    """What a look at the disk has found.

    Attributes:
        found: files that are new, or not as they were.
        vanished: files that were there, and are not any more.
        left: files that cannot be taken in.
        more: whether there may be more than was found.
    """

    found: tuple[Found, ...] = ()
    vanished: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
    more: bool = False


def look(top: Path, known: Mapping[str, Known], left: Mapping[str, Left], never: Identity) -> Look:
    """Compare a workspace's files with how they are known. Blocking.

    A folder that is missing, or in which none of several known files is left, was not emptied by
    hand: nothing in it counts as deleted then.

    Args:
        top: the folder `memory`, never a link.
        known: the files that there are rows of.
        left: what the look before could not take in, by path; not read again as it stands.
        never: device and inode of a folder that is passed over.

    Raises:
        OSError: the disk refuses.
    """
    if not top.is_dir():
        return Look()
    looking = _Looking(known, left)
    with closing(workspace_files.walk(top, FOLDER, never, looking.wants)) as files:
        more = looking.through(files)
    vanished = () if more else looking.vanished()
    return Look(tuple(looking.found), vanished, tuple(looking.left), more)


class _Looking:
    def __init__(self, known: Mapping[str, Known], left: Mapping[str, Left]) -> None:
        self._known = known
        self._left_before = left
        self._seen: set[str] = set()
        self._room = _ROOM
        # What stands where no row can be, files or whole folders: not all of it is known.
        self._barred: list[str] = []
        self.found: list[Found] = []
        self.left: list[Left] = []

    def wants(self, path: str, found: os.stat_result) -> bool:
        """Whether a file is one of the memory's, and not as it was."""
        if not belongs(path):
            return False
        self._seen.add(path)
        known = self._known.get(path)
        return known is None or known.stand != Stand(found.st_size, found.st_mtime_ns)

    def through(self, files: Generator[Open | Skipped, None, None]) -> bool:
        """Go through the files; True: there was too much for once."""
        for file in files:
            if isinstance(file, Skipped):
                self._barred.append(file.path)
                continue
            self._look_at(file)
            if self._room < 0:
                return True
        return False

    def vanished(self) -> tuple[str, ...]:
        here = {path for path, known in self._known.items() if not known.gone and _stood(known)}
        gone = {path for path in here - self._seen if not self._is_barred(path)}
        return () if gone == here and len(here) > 1 else tuple(sorted(gone))

    def _is_barred(self, path: str) -> bool:
        return any(path == barred or path.startswith(f"{barred}/") for barred in self._barred)

    def _look_at(self, file: Open) -> None:
        stand = _stand(file.handle)
        left = self._left_before.get(file.path)
        if left is not None and stand == left.stand:
            self.left.append(left)
            return
        if stand.size > LARGEST:
            why = f"it has {stand.size // 1024} KB, and up to {LARGEST // 1024} KB are replicated"
            self.left.append(Left(file.path, stand, why))
            return
        content = _read(file.handle, stand.size)
        if _stand(file.handle) != stand or len(content) != stand.size:
            # Somebody is just writing to it: the next look finds it whole.
            return
        try:
            text = content.decode()
        except UnicodeDecodeError:
            self.left.append(Left(file.path, stand, "it is no UTF-8 text"))
            return
        self._room -= len(content)
        self.found.append(Found(file.path, stand, text))


def _stood(known: Known) -> bool:
    return known.stand.size >= 0


def _stand(handle: int) -> Stand:
    found = os.fstat(handle)
    return Stand(found.st_size, found.st_mtime_ns)


def _read(handle: int, size: int) -> bytes:
    """All of a file, and one byte more if it has grown."""
    pieces = []
    left = size + 1
    while left and (piece := os.read(handle, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
