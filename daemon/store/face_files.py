"""The state files on the disk: writing what changed, and noticing what others changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from ..errors import Conflict
from . import atomic
from .faces import Rendered

_Stamp: TypeAlias = tuple[int, int, int]
GONE: Final = ""
# Programs that write into a file, instead of replacing it, take less for it.
_YOUNG_SECONDS: Final = 1.0


class Written(msgspec.Struct, frozen=True):
    """The digests of the files that were written, and why others could not be, by name."""

    digests: dict[str, str]
    failures: dict[str, Exception]


class FaceFiles:
    """The files of one agent, and what this daemon last wrote into each. Blocking.

    Args:
        places: where each name stands, when that is not the agent's folder.
        digests: what was last written, by name, as an earlier run noted it.
        announced: what an earlier run was about to write when it was killed, by name.
    """

    def __init__(
        self,
        folder: Path,
        places: Mapping[str, Path],
        digests: Mapping[str, str],
        announced: Mapping[str, Sequence[str]],
    ) -> None:
        self._folder = folder
        self._places = dict(places)
        self._digests = dict(digests)
        self._announced = dict(announced)
        self._stamps: dict[str, _Stamp | None] = {}
        self._seen: dict[str, _Stamp | None] = {}

    def path(self, name: str) -> Path:
        """Where the file of that name stands."""
        return self._places.get(name, self._folder / name)

    def announcement(self, files: Iterable[Rendered]) -> dict[str, list[str]]:
        """The digests that each file which `write` would replace may have from then on."""
        found: dict[str, list[str]] = {}
        for file in files:
            digest = _digest(file)
            if not self._is_current(file.name, digest):
                # Of several kills in a row, any may have come after its write.
                before = (self._digests.get(file.name, GONE), *self._announced.get(file.name, ()))
                found[file.name] = list(dict.fromkeys((*before, digest)))
        return found

    def write(self, files: Iterable[Rendered]) -> Written:
        """Write the files that differ from what stands there.

        One that cannot be written, since the disk refuses or a folder stands in its place, does
        not keep the others from it.
        """
        digests: dict[str, str] = {}
        failures: dict[str, Exception] = {}
        for file in files:
            digest = _digest(file)
            if self._is_current(file.name, digest):
                continue
            if self._is_edited(file.name):
                # By somebody, since `foreign` looked: the next look merges it first.
                continue
            try:
                stamp = self._put(self.path(file.name), file.content)
            except (OSError, Conflict) as error:
                failures[file.name] = error
                continue
            self._digests[file.name] = digests[file.name] = digest
            self._announced.pop(file.name, None)
            self._stamps[file.name] = self._seen[file.name] = stamp
        return Written(digests, failures)

    def foreign(self, names: Iterable[str]) -> dict[str, bytes]:
        """The files that hold something else than this daemon wrote, with what they hold.

        A file that is missing is not among them: nobody can mean by that to erase a memory.

        Raises:
            OSError: one cannot be read.
        """
        found: dict[str, bytes] = {}
        for name in names:
            stamp = self._seen[name] = _stamp(self.path(name))
            if not self.path(name).is_file():
                continue
            if stamp is None or stamp == self._stamps.get(name):
                continue
            content = self.path(name).read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            if digest == self._digests.get(name):
                self._stamps[name] = stamp
            elif digest not in self._announced.get(name, ()):
                found[name] = content
        return found

    def missing(self, names: Iterable[str]) -> set[str]:
        """The files that were written and are there no more."""
        return {name for name in names if self._digests.get(name) and not self.path(name).exists()}

    def is_young(self, name: str, now: float) -> bool:
        """Whether it was changed a moment ago, so that its writer may not be done."""
        stamp = _stamp(self.path(name))
        return stamp is not None and 0 <= now - stamp[0] / 1e9 < _YOUNG_SECONDS

    def leave(self, name: str) -> None:
        """Do not write over what stands there now."""
        self._seen[name] = None

    def forget(self, name: str) -> None:
        """Whatever stands there is to be replaced at the next write."""
        self._digests.pop(name, None)
        self._stamps.pop(name, None)

    def _is_edited(self, name: str) -> bool:
        stamp = _stamp(self.path(name))
        return name in self._seen and stamp not in {None, self._seen[name]}

    def _put(self, path: Path, content: bytes | None) -> _Stamp | None:
        if content is None:
            atomic.remove(path)
            return None
        # Only the archive's folder is ever made: an agent's that its owner removed stays removed.
        if path.parent.parent == self._folder:
            path.parent.mkdir(mode=0o700, exist_ok=True)
        return _stamp_of(atomic.write(path, content))

    def _is_current(self, name: str, digest: str) -> bool:
        return digest == self._digests.get(name) and self._stands(name, digest)

    def _stands(self, name: str, digest: str) -> bool:
        stamp = _stamp(self.path(name))
        if digest == GONE:
            return stamp is None
        return stamp is not None and stamp == self._stamps.get(name)


def _digest(file: Rendered) -> str:
    return GONE if file.content is None else hashlib.sha256(file.content).hexdigest()


def _stamp(path: Path) -> _Stamp | None:
    try:
        return _stamp_of(path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stamp_of(found: os.stat_result) -> _Stamp:
    return found.st_mtime_ns, found.st_size, found.st_ino
