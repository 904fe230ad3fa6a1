"""The chunk database of one agent, as its index writes it. Every method blocks."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

from ..config.settings import IndexSettings
from ..store import chunk_database, chunk_tables
from ..store.chunk_tables import FileContent, FileStand
from ..store.place import Place
from .file_content import ReadFile, content_of, signature, text_of

T = TypeVar("T")
_CUTTING: Final = "cutting"
_UNKNOWN: Final = FileStand(-1, -1, -1, -1)


class IndexDatabase:
    """Opened with the first use; all calls must be made on one thread."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._db: sqlite3.Connection | None = None

    def known(self, rules: IndexSettings, seen: Iterable[str] | None) -> dict[str, FileStand]:
        """The indexed files at and below the paths `seen`, or all files.

        With None, files that were cut under other rules are returned as changed.
        """
        db = self._open()
        if seen is None:
            stale = chunk_tables.noted(db, _CUTTING) != signature(rules)
            known = chunk_tables.known(db)
            return dict.fromkeys(known, _UNKNOWN) if stale else known
        return {p: s for one in seen for p, s in chunk_tables.known(db, one).items()}

    def digests(self, paths: Iterable[str]) -> dict[str, str]:
        """The paths by the digest of their content."""
        db = self._open()
        found = ((chunk_tables.digest_of(db, path), path) for path in paths)
        return {digest: path for digest, path in found if digest}

    def take(
        self,
        file: ReadFile,
        rules: IndexSettings,
        moves: dict[str, str],
        gone: set[str],
        now: float,
    ) -> str:
        """Index a file that was read: "added", "updated" or "moved"; "" if nothing changed.

        If the digest is in `moves` with a path of `gone`, the file was moved from there; both
        entries are removed.
        """
        db, path = self._open(), file.path
        text, reason = "", file.reason
        if not reason:
            text, reason = text_of(file.content, own=path == self._place.markdown.name)
        hashed = hashlib.sha256((reason or text).encode()).hexdigest()
        digest = f"-{hashed}" if reason else hashed
        was = chunk_tables.digest_of(db, path)
        stale = chunk_tables.noted(db, _CUTTING) not in {None, signature(rules)}
        if was == digest and not stale:
            chunk_tables.touch(db, path, file.stand)
            return ""
        old = moves.get(digest)
        if was is None and old in gone and not stale and _keeps_title(db, old, path):
            # Only once: two copies of a file are two files.
            gone.discard(old)
            del moves[digest]
            chunk_tables.move(db, old, path, file.stand)
            return "moved"
        content = FileContent(digest, reason=reason)
        if not reason:
            content = content_of(path, text, digest, rules)
        chunk_tables.put(db, path, file.stand, content, now)
        return "added" if was is None else "updated"

    def use(self, work: Callable[..., T], *args: object) -> T:
        """Call one of the functions of `chunk_tables`."""
        return work(self._open(), *args)

    def note_cutting(self, rules: IndexSettings) -> None:
        """Note that all files are cut under these rules."""
        chunk_tables.note(self._open(), _CUTTING, signature(rules))

    def close(self) -> None:
        """Close the database, until it is used again."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = chunk_database.open_index(self._place.folder, self._place.cache_kb)
        return self._db


def _keeps_title(db: sqlite3.Connection, old: str, path: str) -> bool:
    """Whether a moved file keeps its title, which is its name if the text has none."""
    before, after = Path(old).stem, Path(path).stem
    return before == after or chunk_tables.title_of(db, old) != before
