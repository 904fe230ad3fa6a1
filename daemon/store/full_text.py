"""The full-text indexes: adding and removing texts, and merging to purge deleted words.

An index holds the words of each text and the codes of the concepts and dates that these mean. It
is contentless: removing a text takes the words that were added for it, so an index made by another
release is rebuilt. Beside each index are a table of the terms of its texts, which ranking reads,
and one with their sums.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, Protocol

import msgspec

from ..language.meaning import index_codes
from ..memory.indexing import index_text
from ..memory.stemming import terms_of
from .schema import CHUNK_COUNTS, CHUNK_TEXT, COUNTS, FULL_TEXT, INDEX_VERSION
from .transaction import Transaction

_COLUMNS: Final = FULL_TEXT | CHUNK_TEXT
# Set while an index may contain words of deleted texts.
_OLD_WORDS: Final = "words_to_forget"
_AT_ONCE: Final = 500
# The maximum number of pages that one merge step writes.
_PAGES: Final = 64
# The maximum number of levels; SQLite reads up to 2,000, and writes all with every change.
_MOST_LEVELS: Final = 500
# An index that has grown by this many texts is merged, if they are a quarter of all.
_GROWN: Final = 500


class Writing(Protocol):
    """The part of a transaction that is needed here."""

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, inside a transaction."""


class IndexEntry(msgspec.Struct, frozen=True, gc=False):
    """A text to index.

    Attributes:
        row: its row number.
        columns: its parts in the order of the index's columns.
        told_at: the time that "tomorrow" in it is relative to; None: such words mean no date.
        is_turn: whether it is a turn of a conversation.
    """

    row: int
    columns: tuple[str, ...]
    told_at: float | None = None
    is_turn: bool = False


def add(tx: Writing, table: str, entries: Iterable[IndexEntry]) -> None:
    """Add texts to an index."""
    _note(tx)
    columns = (*_COLUMNS[table], "codes")
    for batch in batches(entries):
        codes = [
            index_codes("\n".join(entry.columns), entry.told_at, is_turn=entry.is_turn)
            for entry in batch
        ]
        tx.db.executemany(
            f"INSERT INTO {table}(rowid, {', '.join(columns)})"
            f" VALUES ({', '.join('?' * (1 + len(columns)))})",
            (
                (entry.row, *map(index_text, entry.columns), " ".join(of_entry))
                for entry, of_entry in zip(batch, codes, strict=True)
            ),
        )
        terms = [terms_of("\n".join(entry.columns)) for entry in batch]
        tx.db.executemany(
            f"INSERT INTO {table}_terms VALUES (?, ?, ?, ?)",
            (
                (entry.row, len(of_entry), " ".join(of_entry), meant)
                for entry, of_entry, meant in zip(batch, terms, codes, strict=True)
            ),
        )
        _count(tx, table, len(batch), sum(map(len, terms)))


def batches(entries: Iterable[IndexEntry]) -> Iterator[list[IndexEntry]]:
    """The entries a few hundred at a time."""
    entries = iter(entries)
    while batch := [*islice(entries, _AT_ONCE)]:
        yield batch


def remove(tx: Writing, table: str, row: int, texts: Sequence[str]) -> None:
    """Remove a row from an index, given the texts that were added for it."""
    _note(tx)
    columns = (*_COLUMNS[table], "codes")
    gone = tx.db.execute(
        f"DELETE FROM {table}_terms WHERE row = ? RETURNING length, codes", (row,)
    ).fetchone()
    length, codes = gone or (0, "")
    tx.db.execute(
        f"INSERT INTO {table}({table}, rowid, {', '.join(columns)})"
        f" VALUES ('delete', {', '.join('?' * (1 + len(columns)))})",
        (row, *map(index_text, texts), " ".join(codes)),
    )
    if gone is not None:
        _count(tx, table, -1, -length)
    tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, '')", (_OLD_WORDS,))


def clear(tx: Transaction, table: str) -> None:
    """Empty an index."""
    _note(tx)
    tx.db.execute(f"INSERT INTO {table}({table}) VALUES ('delete-all')")
    tx.db.execute(f"DELETE FROM {table}_terms")
    tx.db.execute(f"INSERT OR REPLACE INTO {_counts(table)} VALUES (?, 0, 0, 0)", (table,))


def _note(tx: Writing) -> None:
    """Count a change of an index, which the writer does not undo by a savepoint."""
    if isinstance(tx, Transaction):
        tx.index_writes += 1


def counts(db: sqlite3.Connection, indexes: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The number of texts in some indexes, and the total number of their terms."""
    tables = dict.fromkeys(map(_counts, indexes))
    found = db.execute(
        " UNION ALL ".join(f"SELECT name, texts, terms FROM {table}" for table in tables)
    )
    return {name: (texts, terms) for name, texts, terms in found}


def is_counted(db: sqlite3.Connection) -> bool:
    """Whether each index has as many texts as were counted; reads all their terms."""
    texts = {name: number for name, (number, _) in counts(db, FULL_TEXT).items()}
    queries = (f"SELECT '{name}', count(*) FROM {name}_terms" for name in FULL_TEXT)
    return texts == dict(db.execute(" UNION ALL ".join(queries)).fetchall())


def _counts(table: str) -> str:
    """The table with the sums of an index."""
    return CHUNK_COUNTS if table in CHUNK_TEXT else COUNTS


def _count(tx: Writing, table: str, texts: int, terms: int) -> None:
    tx.db.execute(
        f"UPDATE {_counts(table)} SET texts = texts + ?, terms = terms + ? WHERE name = ?",
        (texts, terms, table),
    )


def is_current(db: sqlite3.Connection) -> bool:
    """Whether the indexes were made by this release's rules."""
    found = db.execute("SELECT value FROM meta WHERE key = 'index_version'").fetchone()
    return found is not None and found[0] == str(INDEX_VERSION)


def note_current(tx: Transaction) -> None:
    """Record that the indexes follow this release's rules."""
    tx.db.execute("INSERT OR REPLACE INTO meta VALUES ('index_version', ?)", (str(INDEX_VERSION),))


def is_loose(db: sqlite3.Connection, counts: str = COUNTS) -> bool:
    """Whether an index should be merged.

    It may contain words of deleted or changed texts, which are only marked as deleted until its
    parts are merged. Or it has grown by a quarter since: in many parts, each look-up of a word
    costs three times as much.
    """
    found = db.execute("SELECT 1 FROM meta WHERE key = ?", (_OLD_WORDS,)).fetchone()
    return found is not None or has_grown(db, counts)


def has_grown(db: sqlite3.Connection, counts: str) -> bool:
    """Whether an index has a quarter more texts than when it was merged."""
    sql = f"SELECT 1 FROM {counts} WHERE texts - merged > max(?, texts / 4) LIMIT 1"
    return db.execute(sql, (_GROWN,)).fetchone() is not None


def steps(db: sqlite3.Connection) -> int:
    """The maximum number of merge steps needed, if nothing is written meanwhile."""
    pages = (db.execute(f"SELECT count(*) FROM {table}_data").fetchone()[0] for table in FULL_TEXT)
    return sum(int(count) // _PAGES + 1 for count in pages) + 1


def is_deep(db: sqlite3.Connection) -> bool:
    """Whether an index should be rebuilt because it has many levels.

    Before release 3.41, each complete merge of an FTS5 index adds a level that is never removed;
    with more than 2,000 levels SQLite reports it as malformed.
    """
    return any(_levels(db, table) > _MOST_LEVELS for table in FULL_TEXT)


def _levels(db: sqlite3.Connection, table: str) -> int:
    """The number of levels, by the structure record: a cookie of 4 bytes, and then a varint."""
    found = db.execute(f"SELECT block FROM {table}_data WHERE id = 10").fetchone()
    levels = 0
    for byte in found[0][4:8] if found is not None else ():
        levels = levels << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return levels


def merge(tx: Writing, indexes: Iterable[str] = FULL_TEXT) -> None:
    """Do one short step of merging the indexes, which purges deleted words."""
    _note(tx)
    for table in indexes:
        before = tx.db.total_changes
        tx.db.execute(f"INSERT INTO {table}({table}, rank) VALUES ('merge', ?)", (-_PAGES,))
        # By SQLite's documentation: fewer than two changes mean that nothing was left to merge.
        if tx.db.total_changes - before >= 2:
            return
    tx.db.execute("DELETE FROM meta WHERE key = ?", (_OLD_WORDS,))
    for table in {_counts(table) for table in indexes}:
        tx.db.execute(f"UPDATE {table} SET merged = texts")
