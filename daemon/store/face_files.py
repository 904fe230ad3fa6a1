"""The state files on the disk: writing what changed, and noticing what others changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from . import atomic
from .faces import Rendered

_Stamp: TypeAlias = tuple[int, int, int]
GONE: Final = ""


class FaceFiles:
    """The files of one agent, and what this daemon last wrote into each. Blocking.

    Args:
        places: where each name stands, when that is not the agent's folder.
        digests: what was last written, by name, as an earlier run noted it.
    """

    def __init__(self, folder: Path, places: Mapping[str, Path], digests: Mapping[str, str]):
        self._folder = folder
        self._places = dict(places)
        self._digests = dict(digests)
        self._stamps: dict[str, _Stamp] = {}

    def path(self, name: str) -> Path:
        """Where the file of that name stands."""
        return self._places.get(name, self._folder / name)

    def write(self, files: Iterable[Rendered]) -> dict[str, str]:
        """Write the files that differ from what stands there; return their digests.

        Raises:
            OSError: the disk refused; files before that one are written.
            Conflict: a folder or a link stands in the place of a file.
        """
        written: dict[str, str] = {}
        for file in files:
            digest = GONE if file.content is None else hashlib.sha256(file.content).hexdigest()
            if digest == self._digests.get(file.name) and self._stands(file.name, digest):
                continue
            self._put(self.path(file.name), file.content)
            self._remember(file.name, digest)
            written[file.name] = digest
        return written

    def foreign(self, names: Iterable[str]) -> dict[str, bytes]:
        """The files that hold something else than this daemon wrote, with what they hold.

        A file that is missing is not among them: nobody can mean by that to erase a memory.

        Raises:
            OSError: one cannot be read.
        """
        found: dict[str, bytes] = {}
        for name in names:
            stamp = _stamp(self.path(name))
            if stamp is None or stamp == self._stamps.get(name):
                continue
            content = self.path(name).read_bytes()
            if hashlib.sha256(content).hexdigest() == self._digests.get(name):
                self._stamps[name] = stamp
            else:
                found[name] = content
        return found

    def missing(self, names: Iterable[str]) -> set[str]:
        """The files that were written and are there no more."""
        return {name for name in names if self._digests.get(name) and not self.path(name).exists()}

    def forget(self, name: str) -> None:
        """Whatever stands there is to be replaced at the next write."""
        self._digests.pop(name, None)
        self._stamps.pop(name, None)

    def _put(self, path: Path, content: bytes | None) -> None:
        if content is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic.write(path, content)

    def _stands(self, name: str, digest: str) -> bool:
        stamp = _stamp(self.path(name))
        if digest == GONE:
            return stamp is None
        return stamp is not None and stamp == self._stamps.get(name)

    def _remember(self, name: str, digest: str) -> None:
        self._digests[name] = digest
        stamp = _stamp(self.path(name))
        if stamp is None:
            self._stamps.pop(name, None)
        else:
            self._stamps[name] = stamp


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
