"""`vectors.db`: the vectors of one agent's texts, by the encoder that made them.

`encoders` has a row for each encoder: its name in the configuration, and what tells whether the
name still stands for the same model. The other tables have a row for each item, by encoder and by
the item's key in recall: `bits` the signs of its vector, all of which are loaded to be searched
(`bit_planes`), with the checksum of the text that was encoded; `vectors` the vector itself, a
signed byte for each dimension, which is read for the few items that are near.

While a new encoder is at work, the file has the vectors of two. Removing the row of the old one
ends it in one step; `sweep` deletes its other rows afterwards. Everything can be encoded again:
the file is neither replicated nor backed up. What was deleted is overwritten, since a vector tells
something of its text.
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from ..errors import ShuttingDown
from ..memory.vectors import sign_bits
from ..store.database.connection import (
    DerivedSchema,
    connect,
    open_derived,
    remove,
    transaction,
    version_of,
)
from ..store.database.memory_database import translated

FILE_NAME: Final = "vectors.db"
_CACHE_KB: Final = 512
# Rows of a former encoder that are deleted at once, and pages that are given back at once.
_SWEPT: Final = 2_000
_TABLES: Final = (
    """
    CREATE TABLE encoders (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        model TEXT NOT NULL,
        dimensions INTEGER NOT NULL,
        revision TEXT NOT NULL,
        probe BLOB NOT NULL
    ) STRICT
    """,
    # The version is the text's CRC-32; `bits` is empty for a text that cannot be encoded.
    """
    CREATE TABLE bits (
        encoder INTEGER NOT NULL,
        key INTEGER NOT NULL,
        version INTEGER NOT NULL,
        bits BLOB NOT NULL,
        PRIMARY KEY (encoder, key)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE vectors (
        encoder INTEGER NOT NULL,
        key INTEGER NOT NULL,
        vector BLOB NOT NULL,
        PRIMARY KEY (encoder, key)
    ) STRICT, WITHOUT ROWID
    """,
)


_SCHEMA: Final = DerivedSchema(
    1,
    _TABLES,
    before=("auto_vacuum = INCREMENTAL",),
    always=(f"cache_size = -{_CACHE_KB}", "secure_delete = ON", "journal_size_limit = 1048576"),
)


class Generation(msgspec.Struct, frozen=True):
    """The vectors that one encoder made."""

    id: int  # never used again in the same file
    model: str  # the encoder's name in the configuration
    dimensions: int
    revision: str  # identifies what is behind the name; "" if unknown
    probe: bytes  # the vector of a text that is always the same


class EncodedText(msgspec.Struct, frozen=True):
    """The vector of an item's text; None if the text cannot be encoded."""

    key: int
    version: int
    vector: bytes | None


class Reconciled(msgspec.Struct, frozen=True):
    """What a comparison with the memory found: keys without text, and texts without vector."""

    gone: tuple[int, ...]
    missing: tuple[int, ...]


def answering(generations: Sequence[Generation], model: str) -> Generation | None:
    """The generation that answers: the oldest, until that of the configured model is complete.

    If the same name now stands for another model, questions can only be encoded by the new one.
    """
    same = [generation for generation in generations if generation.model == model]
    if not same or generations[0].model != model:
        return generations[0] if generations else None
    return same[-1]


def read_generations(db: sqlite3.Connection) -> list[Generation]:
    """The generations in a file, the oldest first."""
    rows = db.execute("SELECT id, model, dimensions, revision, probe FROM encoders ORDER BY id")
    return [Generation(*row) for row in rows]


class VectorFile:
    """The writer of the file; opened with the first use, by any thread. Every method blocks.

    Every method raises `StoreDamaged` for a damaged file, `DiskFull` or `ReadOnly` if the disk
    refuses, and `ShuttingDown` once the file was left.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._left = False

    def generations(self) -> list[Generation]:
        """The generations, the oldest first; a missing or unusable file is made."""
        with self._use() as db:
            return read_generations(db)

    def begin(self, generation: Generation) -> Generation:
        """Add a generation, with an id of its own; of the others the oldest stays."""
        with self._use() as db, transaction(db):
            db.execute("DELETE FROM encoders WHERE id > (SELECT min(id) FROM encoders)")
            _, *fields = msgspec.structs.astuple(generation)
            result = db.execute(
                "INSERT INTO encoders (model, dimensions, revision, probe) VALUES (?, ?, ?, ?)"
                " RETURNING id",
                fields,
            )
            number = int(result.fetchone()[0])
        return msgspec.structs.replace(generation, id=number)

    def keep_only(self, generation: Generation) -> None:
        """Remove all other generations, in one step; `sweep` deletes their vectors."""
        with self._use() as db:
            db.execute("DELETE FROM encoders WHERE id <> ?", (generation.id,))

    def sweep(self) -> bool:
        """Delete some vectors of removed generations; whether there are more."""
        left = 0
        with self._use() as db:
            with transaction(db):
                for table in ("bits", "vectors"):
                    for (encoder,) in db.execute(
                        f"SELECT DISTINCT encoder FROM {table}"
                        " WHERE encoder NOT IN (SELECT id FROM encoders)"
                    ).fetchall():
                        left += db.execute(
                            f"DELETE FROM {table} WHERE encoder = ?1 AND key IN"
                            f" (SELECT key FROM {table} WHERE encoder = ?1 LIMIT {_SWEPT})",
                            (encoder,),
                        ).rowcount
            # Each step gives one page back, and `execute` takes one step.
            db.executescript(f"PRAGMA incremental_vacuum({_SWEPT})")
        return left > 0

    def reconcile(
        self,
        generation: Generation | None,
        texts: Sequence[tuple[int, int]],
        between: tuple[int, int],
        belongs: str,
    ) -> Reconciled:
        """Delete vectors without a text, in all generations, and find texts without a vector.

        `texts` are the key and version of every text of a source `between` two keys; `belongs` is
        SQL that is true for the keys of this source.
        """
        current = dict(texts)
        here = None if generation is None else generation.id
        stored: set[int] = set()
        gone: list[tuple[int, int]] = []
        with self._use() as db:
            for encoder, key, version in db.execute(
                "SELECT encoder, key, version FROM encoders JOIN bits ON encoder = encoders.id"
                f" WHERE key BETWEEN ? AND ? AND {belongs}",
                between,
            ):
                if current.get(key) != version:
                    gone.append((encoder, key))
                elif encoder == here:
                    stored.add(key)
            if gone:
                with transaction(db):
                    for table in ("bits", "vectors"):
                        db.executemany(f"DELETE FROM {table} WHERE encoder = ? AND key = ?", gone)
        missing = tuple(key for key, _ in texts if key not in stored)
        return Reconciled(tuple({key for _, key in gone}), missing)

    def put(self, generation: Generation, texts: Iterable[EncodedText]) -> None:
        """Store the vectors of some texts."""
        encoder = generation.id
        with self._use() as db, transaction(db):
            for text in texts:
                bits = b""
                if text.vector is not None:
                    signs = sign_bits(text.vector)
                    bits = signs.to_bytes((signs.bit_length() + 7) // 8 or 1, "big")
                    db.execute(
                        "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                        (encoder, text.key, text.vector),
                    )
                db.execute(
                    "INSERT OR REPLACE INTO bits VALUES (?, ?, ?, ?)",
                    (encoder, text.key, text.version, bits),
                )

    def rest(self) -> None:
        """Empty the log, which has copies of what was deleted, and close until the next use."""
        with self._use() as db:
            # A reader may need the log: then the next rest empties it.
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._close()

    def remove(self) -> None:
        """Remove the file; the next use makes another one."""
        with self._lock, translated(self.path):
            self._close()
            remove(self.path)

    def leave(self) -> None:
        """Close the file for good."""
        with self._lock:
            self._left = True
            self._close()

    def _close(self) -> None:
        if self._db is not None:
            db, self._db = self._db, None
            db.close()

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        """The open file, for one at a time."""
        with self._lock, translated(self.path):
            if self._left:
                raise ShuttingDown(f"cannot use {self.path}: the memory is closed")
            if self._db is None:
                self._db = open_derived(self.path, _SCHEMA)
            yield self._db


def read_bits(db: sqlite3.Connection, generation: Generation) -> tuple[array[int], list[int]]:
    """The keys of the vectors of a generation, and their bits as numbers."""
    keys, bits = array("q"), []
    for key, data in db.execute(
        "SELECT key, bits FROM bits WHERE encoder = ? AND bits <> x''", (generation.id,)
    ):
        keys.append(key)
        bits.append(int.from_bytes(data, "big"))
    return keys, bits


def read_vectors(
    db: sqlite3.Connection, generation: Generation, keys: Iterable[int]
) -> list[tuple[int, bytes]]:
    """The vectors of some items; those without one are missing."""
    return db.execute(
        "SELECT key, vector FROM vectors WHERE encoder = ? AND length(vector) = ?"
        " AND key IN (SELECT value FROM json_each(?))",
        (generation.id, generation.dimensions, msgspec.json.encode([*keys]).decode()),
    ).fetchall()


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads; `sqlite3.Error` if the file is missing or unusable."""
    db = connect(path, "mode=rw")
    try:
        db.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        db.execute("PRAGMA query_only = ON")
        version = version_of(db)
    except BaseException:
        db.close()
        raise
    if version != _SCHEMA.version:
        db.close()
        raise sqlite3.OperationalError("the file is of another version")
    return db
