"""Whether a database that came from elsewhere is one of ours, and whole."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias

from ..errors import Conflict, StoreDamaged
from ..store.database import connect_reader, migrate, quick_check, translate
from ..store.schema import MIGRATIONS
from ..store.snapshot import counts

_Shape: TypeAlias = dict[tuple[str, str], str]
_CACHE_KB: Final = 2048
# What the full-text index is kept in is SQLite's own affair.
_SHADOW: Final = "memory_fts_"


def check_database(path: Path, expected: Mapping[str, int]) -> None:
    """Read all of a database, and compare it with what it is said to hold.

    Nothing that stands in it runs before its tables, and above all its triggers, are known for
    those of this release or an earlier one.

    Args:
        path: the database, with nothing beside it.
        expected: the counts of its manifest.

    Raises:
        StoreDamaged: it is damaged, holds something else, or is none of ours.
        Conflict: a later release wrote it.
    """
    try:
        with closing(connect_reader(path, _CACHE_KB)) as db:
            db.execute("PRAGMA trusted_schema = OFF")
            _check_shape(db, path)
            quick_check(path)
            found = counts(db)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    differing = [name for name, count in expected.items() if found.get(name, count) != count]
    if differing:
        name = differing[0]
        raise StoreDamaged(
            f"cannot trust {path.name}: it holds {found[name]:,} {name}, not {expected[name]:,}"
        )


def _check_shape(db: sqlite3.Connection, path: Path) -> None:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    known = [migration for migration in MIGRATIONS if migration.version <= version]
    if version > MIGRATIONS[-1].version:
        raise Conflict(
            f"cannot restore {path.name}: its schema version is {version}, this release knows "
            f"{MIGRATIONS[-1].version}",
            hint="install the release that wrote it, or a later one",
        )
    if not known or known[-1].version != version:
        raise StoreDamaged(f"cannot trust {path.name}: it is no database of thermocline's")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        migrate(ours, Path(":memory:"), known)
        strange = _shape(db).items() ^ _shape(ours).items()
    if strange:
        kind, name = min(key for key, _ in strange)
        raise StoreDamaged(
            f"cannot trust {path.name}: its {kind} {name[:100]!r} is not as thermocline makes it"
        )


def _shape(db: sqlite3.Connection) -> _Shape:
    """What there is, and of what runs by itself the text.

    Of a table the columns are compared: SQLite writes the text of one that was altered as its
    releases please.
    """
    rows = db.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).fetchall()
    found: _Shape = {}
    for kind, name, sql in rows:
        text = re.sub(r"\s+", " ", sql or "").strip()
        if kind == "index" or name.startswith(_SHADOW):
            text = ""
        elif kind == "table" and not text.upper().startswith("CREATE VIRTUAL"):
            text = _columns(db, name)
        found[kind, name] = text
    return found


def _columns(db: sqlite3.Connection, table: str) -> str:
    """Name, type and kind of each column; generated ones are ones that compute."""
    rows = db.execute(
        'SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid',
        (table,),
    )
    return repr(rows.fetchall())
