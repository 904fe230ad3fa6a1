"""The files to index: finds the roots, and the wanted files below them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ..config.settings import IndexSettings
from ..runtime.fingerprint import NOWHERE, Fingerprint, fingerprint_at, fingerprint_of
from ..store.agent_paths import AgentPaths
from . import walker
from .walker import Identity, Skipped

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_IGNORED: Final = ".gitignore"
_IGNORED_BYTES: Final = 262_144
# Recall reads skills from the agent's own files.
_SKILLS: Final = "skills/"
# Of what is there and cannot be indexed.
_UNFIT: Final = Fingerprint(0)


class IndexRoot(msgspec.Struct, frozen=True):
    """A folder or file that is indexed."""

    top: Path  # its place on the disk
    name: str  # the beginning of its paths in the index
    of_agent: bool = False  # whether it is part of the agent's workspace

    def holds(self, path: str) -> bool:
        """Whether a path of the index belongs to this root."""
        return path == self.name or path.startswith(f"{self.name}/")

    def below(self, path: str) -> str:
        """A path of the index relative to this root; "" for the root itself."""
        return path[len(self.name) + 1 :]

    def path_of(self, real: str) -> str | None:
        """The path in the index of a path on the disk; None if it is not below this root."""
        top = str(self.top)
        if real == top:
            return self.name
        return self.name + real[len(top) :] if real.startswith(f"{top}/") else None


class Scan(msgspec.Struct):
    """The result of a scan."""

    # The fingerprint of each wanted file, by its path in the index.
    present: dict[str, Fingerprint] = {}
    reasons: dict[str, str] = {}  # why some of these files cannot be indexed
    folders: dict[str, Identity] = {}  # the folders to watch, by their place on the disk
    seen: list[str] = []  # the scanned paths; files below them that are not present were removed


class Wanted:
    """The rules for which files and folders below a root are indexed."""

    def __init__(self, root: IndexRoot, rules: IndexSettings) -> None:
        self._root = root
        self._rules = rules
        self._endings = _endings(rules.include)
        self._ignored: dict[str, GitIgnoreSpec] | None = {} if rules.gitignore else None

    @cached_property
    def _include(self) -> GitIgnoreSpec:
        return _spec(map(_anywhere, self._rules.include))

    @cached_property
    def _exclude(self) -> GitIgnoreSpec:
        return _spec(map(_anywhere, self._rules.exclude))

    def file(self, path: str) -> bool:
        """Whether the file with this path of the index is indexed."""
        below = self._root.below(path)
        if self._root.of_agent and below.startswith(_SKILLS):
            return False
        if self._endings is not None and not below.lower().endswith(self._endings):
            return False
        included = self._endings is not None or self._include.match_file(below)
        return included and not self._is_excluded(below)

    def folder(self, path: str) -> bool:
        """Whether a folder is entered. Reads its `.gitignore`."""
        below = self._root.below(path)
        if below and self._is_excluded(f"{below}/"):
            return False
        if self._ignored is not None and (lines := _lines_of(self._root, below)):
            self._ignored[below] = _spec(lines)
        return True

    def _is_excluded(self, below: str) -> bool:
        if self._exclude.match_file(below):
            return True
        if self._ignored:
            for folder in _above(below.rstrip("/")):
                if (spec := self._ignored.get(folder)) is not None:
                    inside = below[len(folder) + 1 :] if folder else below
                    if (ignored := spec.check_file(inside).include) is not None:
                        return ignored
        return False


def scan(
    roots: Sequence[IndexRoot], rules: IndexSettings, never: Identity, only: Iterable[str] = ("",)
) -> Scan:
    """Scan files and folders. Blocking.

    A folder in two roots counts for the inner one. `never` is the device and inode of a folder that
    is skipped; `only` are the paths of the index to scan, with everything below them, "" for all.
    """
    result = Scan()
    for root in roots:
        wanted = Wanted(root, rules)
        for path in only:
            if not path or root.holds(path):
                _scan_root(root, path or root.name, wanted, roots, never, result)
    return result


def roots_of(place: AgentPaths, tops: Iterable[str]) -> list[IndexRoot]:
    """The agent's own roots, and those of `tops` that are not below another of them."""
    home = place.workspace or place.folder
    roots = [
        IndexRoot(home / "memory", "memory", of_agent=True),
        *(IndexRoot(page, page.name, of_agent=True) for page in place.pages),
    ]
    for top in sorted(tops):
        if not any(root.holds(top) for root in roots if not root.of_agent):
            roots.append(IndexRoot(Path(top), top))
    return roots


def root_fingerprint(top: Path) -> Fingerprint:
    """The fingerprint of a root; of a folder only its inode, since its changes have events."""
    fingerprint = fingerprint_at(top)
    is_folder = fingerprint != NOWHERE and top.is_dir()
    return Fingerprint(0, inode=fingerprint.inode) if is_folder else fingerprint


def missing(roots: Iterable[IndexRoot]) -> list[str]:
    """The places of roots that do not exist, without the agent's own."""
    return [str(root.top) for root in roots if not root.of_agent and not root.top.exists()]


def _scan_root(  # noqa: C901
    root: IndexRoot,
    path: str,
    wanted: Wanted,
    roots: Sequence[IndexRoot],
    never: Identity,
    result: Scan,
) -> None:
    result.seen.append(path)
    below = root.below(path)
    place = root.top / below if below else root.top
    try:
        status = _stat_below(root.top, below)
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):
        # A file that is itself a root is indexed regardless of its name.
        if not below or (_reached(wanted, root, below) and wanted.file(path)):
            _note(path, status, result)
        return
    others = {_inode(other.top) for other in roots if other is not root}

    def is_wanted(file: str, status: os.stat_result) -> bool:
        if wanted.file(file) and (status.st_dev, status.st_ino) not in others:
            _note(file, status, result)
        return False

    def enters(folder: str, status: os.stat_result) -> bool:
        identity = (status.st_dev, status.st_ino)
        if (identity in others and folder != root.name) or not wanted.folder(folder):
            return False
        inner = root.below(folder)
        result.folders[str(root.top / inner) if inner else str(root.top)] = identity
        return True

    if below and not _reached(wanted, root, below):
        return
    for skipped in walker.walk(place, path, never, is_wanted, enters):
        if isinstance(skipped, Skipped) and (skipped.path == path or wanted.file(skipped.path)):
            result.present[skipped.path] = _UNFIT
            result.reasons[skipped.path] = skipped.why


def _reached(wanted: Wanted, root: IndexRoot, below: str) -> bool:
    folders = [root.name, *(f"{root.name}/{item}" for item in reversed(_above(below)) if item)]
    return all(wanted.folder(folder) for folder in folders)


def _note(path: str, status: os.stat_result, result: Scan) -> None:
    if stat.S_ISREG(status.st_mode):
        result.present[path] = fingerprint_of(status)
    else:
        result.present[path] = _UNFIT
        result.reasons[path] = walker.kind(status.st_mode)


def _stat_below(top: Path, below: str) -> os.stat_result:
    """Stat a path below a folder without following links; a link on the way is an error."""
    if not below:
        return top.lstat()
    with walker.folder_of(top, below) as (folder, name):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _inode(path: Path) -> Identity:
    try:
        return walker.identity(path)
    except OSError:
        return (0, 0)


def _spec(patterns: Iterable[str]) -> GitIgnoreSpec:
    # Imported when there are files to index.
    from pathspec import GitIgnoreSpec  # noqa: PLC0415

    return GitIgnoreSpec.from_lines(patterns)


def _anywhere(pattern: str) -> str:
    """One of profClaw's globs, which match at any depth, as a rule of git."""
    return pattern if pattern.startswith(("/", "**/")) else f"**/{pattern}"


def _endings(patterns: Sequence[str]) -> tuple[str, ...] | None:
    """The file endings if all patterns are plain endings, which are far faster to compare."""
    endings = [pattern.removeprefix("**/*") for pattern in patterns]
    plain = all(
        pattern.startswith("**/*.") and ending[1:].isalnum()
        for pattern, ending in zip(patterns, endings, strict=True)
    )
    return tuple(ending.lower() for ending in endings) if plain else None


def _above(below: str) -> list[str]:
    """The folders that contain a path, innermost first, down to ""."""
    parts = below.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(len(parts), -1, -1)]


def _lines_of(root: IndexRoot, below: str) -> list[str]:
    inside = f"{below}/{_IGNORED}" if below else _IGNORED
    try:
        with os.fdopen(walker.open_below(root.top, inside), "rb") as file:
            return file.read(_IGNORED_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []
