"""The watched files as `index.db` has them, and their chunks with a full-text index."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ...memory.records import IndexedChunk, IndexedFile
from ...memory.scoring import DAY
from ...runtime.fingerprint import Fingerprint
from ..database import full_text
from ..database.chunk_database import SCHEMA
from ..database.connection import column, scalar, to_json, transaction, upsert
from ..database.schema import CHUNK_COUNTS
from ..database.transaction import IndexEntry

INDEX: Final = "chunk_fts"
_MERGED: Final = "merged_at"
_THESE: Final = "(SELECT value FROM json_each(?))"


class Piece(msgspec.Struct, frozen=True):
    """A chunk to be stored; `extra` is searched with it, but not shown."""

    first_line: int  # from 1
    last_line: int
    heading: str  # the headings above it, outermost first, separated by ` › `
    text: str
    extra: str = ""

    @property
    def digest(self) -> str:
        """The digest of its content, independent of its place."""
        content = f"{self.heading}\0{self.extra}\0{self.text}".encode()
        return hashlib.blake2b(content, digest_size=16).hexdigest()


class FileContent(msgspec.Struct, frozen=True):
    """The content of a file: its chunks, or the reason why it has none."""

    digest: str = ""
    title: str = ""
    meta: Mapping[str, Any] = {}
    lines: int = 0
    pieces: Sequence[Piece] = ()
    reason: str = ""


class Totals(msgspec.Struct, frozen=True):
    """The size of the index; `left_out` counts files that cannot be indexed."""

    files: int
    left_out: int
    chunks: int
    chars: int
    bytes: int


def known(db: sqlite3.Connection, below: str | None = None) -> dict[str, Fingerprint]:
    """The status of each file when it was read, by path; below a path, or of all files."""
    sql = "SELECT path, size, mtime, ctime, inode FROM files"
    arguments: tuple[str, ...] = ()
    if below is not None:
        sql += " WHERE path = ? OR (path > ? AND path < ?)"
        arguments = (below, f"{below}/", f"{below}0")
    return {path: Fingerprint(*values) for path, *values in db.execute(sql, arguments)}


def identity_of(db: sqlite3.Connection, path: str) -> tuple[str, str] | None:
    """The digest of a file's content and its title; None if it was not read."""
    row: tuple[str, str] | None = db.execute(
        "SELECT digest, title FROM files WHERE path = ?", (path,)
    ).fetchone()
    return row


def file_counts(db: sqlite3.Connection) -> tuple[int, int]:
    """The number of known files, and of those among them that cannot be indexed."""
    files, left_out = db.execute("SELECT count(*), count(nullif(reason, '')) FROM files").fetchone()
    return files, left_out


def meta_value(db: sqlite3.Connection, key: str) -> str | None:
    """The value stored under a key."""
    content: str | None = scalar(db, "SELECT value FROM meta WHERE key = ?", key)
    return content


def note(db: sqlite3.Connection, key: str, content: str) -> None:
    """Store a value under a key."""
    if meta_value(db, key) != content:
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, content))


def touch(db: sqlite3.Connection, path: str, fingerprint: Fingerprint) -> None:
    """Record a new status of a file with unchanged content."""
    db.execute(
        "UPDATE files SET size = ?, mtime = ?, ctime = ?, inode = ? WHERE path = ?",
        (*msgspec.structs.astuple(fingerprint), path),
    )


def move(db: sqlite3.Connection, path: str, new: str, fingerprint: Fingerprint) -> None:
    """Give a file a new path; its chunks stay unchanged."""
    with transaction(db):
        _drop(db, new)
        db.execute("UPDATE files SET path = ? WHERE path = ?", (new, path))
        touch(db, new, fingerprint)


def put(
    db: sqlite3.Connection,
    path: str,
    fingerprint: Fingerprint,
    content: FileContent,
    now: float,
) -> None:
    """Store the content of a file; unchanged chunks are not rewritten."""
    with transaction(db):
        row = {
            "path": path,
            **msgspec.structs.asdict(fingerprint),
            "digest": content.digest,
            "title": content.title,
            "meta": to_json(content.meta),
            "lines": content.lines,
            "indexed_at": now,
            "reason": content.reason,
        }
        _put_pieces(db, upsert(db, "files", row, "id"), content.pieces)


def _put_pieces(db: sqlite3.Connection, number: int, pieces: Sequence[Piece]) -> None:
    before: dict[str, list[tuple[int, tuple[int, int, int]]]] = {}
    for row, digest, *place in db.execute(
        "SELECT row, digest, position, first_line, last_line FROM chunks WHERE file = ?"
        " ORDER BY position DESC",
        (number,),
    ):
        before.setdefault(digest, []).append((row, (place[0], place[1], place[2])))
    new: list[IndexEntry] = []
    for position, piece in enumerate(pieces):
        place = (position, piece.first_line, piece.last_line)
        digest = piece.digest
        if same := before.get(digest):
            row, old = same.pop()
            if old != place:
                db.execute(
                    "UPDATE chunks SET position = ?, first_line = ?, last_line = ? WHERE row = ?",
                    (*place, row),
                )
            continue
        row = db.execute(
            "INSERT INTO chunks (file, position, first_line, last_line, heading, extra, text,"
            " digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING row",
            (number, *place, piece.heading, piece.extra, piece.text, digest),
        ).fetchone()[0]
        new.append(IndexEntry(row, _indexed(piece.text, piece.heading, piece.extra)))
    _remove_rows(db, [row for rows in before.values() for row, _ in rows])
    full_text.add(db, INDEX, new)


def drop(db: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Remove files and their chunks, each in a separate transaction."""
    for path in paths:
        with transaction(db):
            _drop(db, path)


def _drop(db: sqlite3.Connection, path: str) -> None:
    for file in column(db, "DELETE FROM files WHERE path = ? RETURNING id", path):
        _remove_rows(db, column(db, "SELECT row FROM chunks WHERE file = ?", file))


def _remove_rows(db: sqlite3.Connection, rows: Sequence[int]) -> None:
    for row in rows:
        texts = db.execute(
            "DELETE FROM chunks WHERE row = ? RETURNING text, heading, extra", (row,)
        ).fetchone()
        full_text.remove(db, INDEX, row, _indexed(*texts))


def _indexed(text: str, heading: str, extra: str) -> tuple[str, str]:
    return text, f"{heading}\n{extra}"


def merge(db: sqlite3.Connection, now: float) -> bool:
    """Merge the full-text index a little, in one short step; False: not worthwhile.

    A complete merge rewrites the index: after it has grown, and daily to remove deleted texts.
    """
    if not full_text.grown(db, CHUNK_COUNTS):
        last = meta_value(db, _MERGED)
        if last is None:
            note(db, _MERGED, str(now))
        if last is None or 0 <= now - float(last) < DAY or not full_text.to_merge(db, CHUNK_COUNTS):
            return False
    with transaction(db):
        full_text.merge_step(db, (INDEX,))
        if not full_text.to_merge(db, CHUNK_COUNTS):
            note(db, _MERGED, str(now))
    return True


def at_rows(db: sqlite3.Connection, rows: Sequence[int]) -> dict[int, IndexedChunk]:
    """The chunks in these rows."""
    result = db.execute(
        "SELECT row, path || ':' || first_line || '-' || last_line, path, position, first_line,"
        " last_line, title, heading, text, chunks.digest, mtime / 1e9"
        f" FROM chunks CROSS JOIN files ON files.id = file WHERE row IN {_THESE}",
        (to_json(rows),),
    )
    return {row: IndexedChunk(*rest) for row, *rest in result}


def chunk_count(db: sqlite3.Connection) -> int:
    """The number of chunks."""
    return full_text.counts(db, (INDEX,))[INDEX][0]


def chunks_of(db: sqlite3.Connection, path: str) -> list[IndexedChunk]:
    """The chunks of a file in their order."""
    of_file = "SELECT row FROM files CROSS JOIN chunks ON file = files.id WHERE path = ?"
    rows = column(db, f"{of_file} ORDER BY position", path)
    chunks = at_rows(db, rows)
    return [chunks[row] for row in rows]


def page(
    db: sqlite3.Connection, prefix: str, limit: int, offset: int, *, left_out: bool = False
) -> tuple[list[IndexedFile], int]:
    """The files whose path begins with `prefix`, in order, and their number.

    With `left_out` only those that cannot be indexed.
    """
    where = "FROM files WHERE path >= ? AND path < ?" + " AND reason <> ''" * left_out
    bounds = (prefix, f"{prefix}\U0010ffff")
    result = db.execute(
        "SELECT path, size, mtime, indexed_at, title, lines,"
        " (SELECT count(*) FROM chunks WHERE file = files.id), meta, reason"
        f" {where} ORDER BY path LIMIT ? OFFSET ?",
        (*bounds, limit, offset),
    )
    files = [
        IndexedFile(
            path, size, mtime / 1e9, at, title, lines, chunks, msgspec.json.decode(meta), reason
        )
        for path, size, mtime, at, title, lines, chunks, meta, reason in result
    ]
    return files, int(scalar(db, f"SELECT count(*) {where}", *bounds))


def totals(db: sqlite3.Connection) -> Totals:
    """The size of the index."""
    files, left_out = db.execute(
        "SELECT count(*) FILTER (WHERE reason = ''), count(*) FILTER (WHERE reason <> '')"
        " FROM files"
    ).fetchone()
    chunks, chars = db.execute("SELECT count(*), sum(length(text)) FROM chunks").fetchone()
    pages = scalar(db, f"SELECT page_count FROM pragma_page_count('{SCHEMA}')")
    size = scalar(db, f"SELECT page_size FROM pragma_page_size('{SCHEMA}')")
    return Totals(files, left_out, chunks, chars or 0, pages * size)
