"""The full-text indexes: adding and removing texts, and merging to purge deleted words.

An index holds the words of each text and the codes of the concepts and dates that these mean. It
is contentless: removing a text takes the words that were added for it, so an index made by another
release is rebuilt. Beside each index are a table of the terms of its texts, which ranking reads,
and one with their sums.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from ...errors import StoreDamaged
from ...language.meaning import index_codes
from ...memory.indexing import index_text
from ...memory.stemming import terms_of
from .connection import batches, column, scalar, varints
from .schema import CHUNK_COUNTS, CHUNK_TEXT, COUNTS, FULL_TEXT, INDEX_VERSION
from .transaction import IndexEntry, Transaction

_COLUMNS: Final = FULL_TEXT | CHUNK_TEXT
# Set while an index may contain words of deleted texts.
_OLD_WORDS: Final = "words_to_forget"
# Set while memories are stored that are not in the index yet, nor in the table of its terms.
BACKLOG: Final = "index_backlog"
AT_ONCE: Final = 500
_COUNT: Final = "UPDATE %s SET texts = texts + ?, terms = terms + ? WHERE name = ?"
# The maximum number of pages that one merge step writes.
_PAGES: Final = 64
# The maximum number of levels; SQLite reads up to 2,000, and writes all with every change.
_MOST_LEVELS: Final = 500
# An index that has grown by this many texts is merged, if they are a quarter of all.
_GROWN: Final = 50


class IndexDamaged(StoreDamaged):
    """A full-text index does not have what belongs to it; it can be rebuilt from the rows."""


def add(db: sqlite3.Connection, table: str, entries: Iterable[IndexEntry]) -> None:
    """Add texts to an index."""
    columns = (*_COLUMNS[table], "codes")
    for batch in batches(entries, AT_ONCE):
        texts = ["\n".join(entry.columns) for entry in batch]
        terms = [*map(terms_of, texts)]
        codes = [
            index_codes(text, of_entry, entry.told_at, is_turn=entry.is_turn)
            for entry, text, of_entry in zip(batch, texts, terms, strict=True)
        ]
        db.executemany(
            f"INSERT INTO {table}(rowid, {', '.join(columns)})"
            f" VALUES ({', '.join('?' * (1 + len(columns)))})",
            (
                (entry.row, *map(index_text, entry.columns), " ".join(of_entry))
                for entry, of_entry in zip(batch, codes, strict=True)
            ),
        )
        db.executemany(
            f"INSERT INTO {table}_terms VALUES (?, ?, ?, ?)",
            (
                (entry.row, len(of_entry), " ".join(of_entry), meant)
                for entry, of_entry, meant in zip(batch, terms, codes, strict=True)
            ),
        )
        db.execute(_COUNT % _counts(table), (len(batch), sum(map(len, terms)), table))


def put(db: sqlite3.Connection, table: str, entry: IndexEntry, old: Sequence[str] | None) -> None:
    """Index a text in place of the `old` one of its row, if it differs; None: the row is new."""
    if old == entry.columns:
        return
    if old is not None:
        remove(db, table, entry.row, old)
    add(db, table, [entry])


def remove(db: sqlite3.Connection, table: str, row: int, texts: Sequence[str]) -> None:
    """Remove a row from an index, given the texts that were added for it."""
    columns = (*_COLUMNS[table], "codes")
    gone = db.execute(
        f"DELETE FROM {table}_terms WHERE row = ? RETURNING length, codes", (row,)
    ).fetchone()
    if gone is None and scalar(db, "SELECT 1 FROM meta WHERE key = ?", BACKLOG):
        return
    length, codes = gone or (0, "")
    db.execute(
        f"INSERT INTO {table}({table}, rowid, {', '.join(columns)})"
        f" VALUES ('delete', {', '.join('?' * (1 + len(columns)))})",
        (row, *map(index_text, texts), " ".join(codes)),
    )
    if gone is not None:
        db.execute(_COUNT % _counts(table), (-1, -length, table))
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, '')", (_OLD_WORDS,))


def clear(db: sqlite3.Connection, table: str) -> None:
    """Empty an index."""
    db.execute(f"INSERT INTO {table}({table}) VALUES ('delete-all')")
    db.execute(f"DELETE FROM {table}_terms")
    db.execute(f"INSERT OR REPLACE INTO {_counts(table)} VALUES (?, 0, 0, 0)", (table,))


def counts(db: sqlite3.Connection, indexes: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The number of texts in some indexes, and of all their terms; else `IndexDamaged`."""
    names = list(indexes)
    tables = dict.fromkeys(map(_counts, names))
    rows = db.execute(
        " UNION ALL ".join(f"SELECT name, texts, terms FROM {table}" for table in tables)
    )
    sums = {name: (texts, terms) for name, texts, terms in rows}
    missing = [name for name in names if name not in sums and name not in CHUNK_TEXT]
    if missing:
        raise IndexDamaged(f"the full-text index '{missing[0]}' has lost the number of its texts")
    return {name: sums.get(name, (0, 0)) for name in names}


def is_counted(db: sqlite3.Connection) -> bool:
    """Whether each index has as many texts as were counted; reads all their terms."""
    try:
        texts = {name: number for name, (number, _) in counts(db, FULL_TEXT).items()}
    except IndexDamaged:
        return False
    queries = (f"SELECT '{name}', count(*) FROM {name}_terms" for name in FULL_TEXT)
    return texts == dict(db.execute(" UNION ALL ".join(queries)).fetchall())


def _counts(table: str) -> str:
    return CHUNK_COUNTS if table in CHUNK_TEXT else COUNTS


def is_current(db: sqlite3.Connection) -> bool:
    """Whether the indexes were made by this release's rules."""
    stored = scalar(db, "SELECT value FROM meta WHERE key = 'index_version'")
    return bool(stored == str(INDEX_VERSION))


def note_current(db: sqlite3.Connection) -> None:
    """Record that the indexes follow this release's rules."""
    db.execute("INSERT OR REPLACE INTO meta VALUES ('index_version', ?)", (str(INDEX_VERSION),))


def to_merge(db: sqlite3.Connection, counts: str = COUNTS) -> list[str]:
    """The indexes that should be merged.

    All if one may contain words of deleted or changed texts, which are only marked as deleted until
    its parts are merged. Else those that have grown: in many parts, each look-up of a word costs
    four times as much.
    """
    if not scalar(db, "SELECT 1 FROM meta WHERE key = ?", _OLD_WORDS):
        return grown(db, counts)
    return [*(CHUNK_TEXT if counts != COUNTS else FULL_TEXT)]


def grown(db: sqlite3.Connection, counts: str) -> list[str]:
    """The indexes that have a quarter more texts than when they were merged."""
    sql = f"SELECT name FROM {counts} WHERE texts - merged > max(?, texts / 4)"
    return column(db, sql, _GROWN)


def steps(db: sqlite3.Connection) -> int:
    """The maximum number of merge steps needed, if nothing is written meanwhile."""
    pages = (scalar(db, f"SELECT count(*) FROM {table}_data") for table in FULL_TEXT)
    return sum(int(count) // _PAGES + 1 for count in pages) + 1


def needs_rebuild(db: sqlite3.Connection) -> bool:
    """Whether an index should be rebuilt because it has many levels.

    Before release 3.41, each complete merge of an FTS5 index adds a level that is never removed;
    with more than 2,000 levels SQLite reports it as malformed.
    """
    return any(_levels(db, table) > _MOST_LEVELS for table in FULL_TEXT)


def _levels(db: sqlite3.Connection, table: str) -> int:
    """The number of levels, by the structure record: a cookie of 4 bytes, and then a varint."""
    block = scalar(db, f"SELECT block FROM {table}_data WHERE id = 10")
    return [*varints(block[4:8]), 0][0] if block is not None else 0


def merge(tx: Transaction) -> None:
    """Do one short step of merging what is to be merged, which purges deleted words."""
    merge_step(tx.db, to_merge(tx.db))


def merge_step(db: sqlite3.Connection, names: Iterable[str]) -> None:
    """Do one short step of merging some indexes."""
    for table in names:
        before = db.total_changes
        db.execute(f"INSERT INTO {table}({table}, rank) VALUES ('merge', ?)", (-_PAGES,))
        # By SQLite's documentation: fewer than two changes mean that nothing was left to merge.
        if db.total_changes - before >= 2:
            return
    db.execute("DELETE FROM meta WHERE key = ?", (_OLD_WORDS,))
    for table in names:
        db.execute(f"UPDATE {_counts(table)} SET merged = texts WHERE name = ?", (table,))
