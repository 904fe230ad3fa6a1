"""Which version of a row is here, and whether one that came is newer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from thermocline.sync import Row

from . import (
    files,
    hot_rows,
    key_values,
    link,
    memory_rows,
    merge_rows,
    merging,
    tree_rows,
    uses_rows,
)
from .outgoing import METRIC_KIND
from .transaction import Transaction

Version: TypeAlias = tuple[int, str]
# Below that of every row.
NONE: Final[Version] = (-1, "")


def is_known(kind: str) -> bool:
    """Whether this release has rows of this kind."""
    return kind in _VERSIONS


def here(tx: Transaction, kind: str, key: str) -> Version:
    """The version of a row that is here; `NONE` where there is no row."""
    sql, split = _VERSIONS[kind]
    row = tx.db.execute(sql, split(key)).fetchone()
    return NONE if row is None else (row[0], row[1])


def buried(tx: Transaction, kind: str, key: str) -> Version:
    """The version of a row's deletion; `NONE` where no trace of one is left."""
    row = tx.db.execute(
        "SELECT clock, device FROM tombstones WHERE kind = ? AND id = ?", (kind, key)
    ).fetchone()
    return NONE if row is None else (row[0], row[1])


def is_newer(tx: Transaction, row: Row) -> bool:
    """Whether the row is newer than what is here, a tombstone included.

    What the replica has as new needs not be sent any more; of what is newer here it has to hear,
    even if it was told once: it has lost that since.
    """
    known = max(here(tx, row.kind, row.id), buried(tx, row.kind, row.id))
    if (row.clock, row.device) >= known:
        link.heard(tx, row)
    else:
        tx.changed(row.kind, row.id, known[0])
    return (row.clock, row.device) > known


def erase(tx: Transaction, kind: str, key: str) -> None:
    """Delete a row from its table, and do no more; not for memories."""
    sql, split = _VERSIONS[kind]
    tx.db.execute(sql.replace("SELECT clock, device", "DELETE"), split(key))


def _hot_key(key: str) -> tuple[str, str]:
    section, _, name = key.partition("/")
    return section, name


def _alone(key: str) -> tuple[str]:
    return (key,)


_Split: TypeAlias = Callable[[str], tuple[Any, ...]]
_OF_A_MEMORY: Final = (
    "SELECT clock, device FROM memories WHERE id = ?1"
    " UNION ALL SELECT clock, device FROM remote_only WHERE id = ?1"
)
_VERSIONS: Final[dict[str, tuple[str, _Split]]] = {
    memory_rows.KIND: (_OF_A_MEMORY, _alone),
    hot_rows.KIND: ("SELECT clock, device FROM hot WHERE section = ? AND key = ?", _hot_key),
    tree_rows.KIND: ("SELECT clock, device FROM tree WHERE path = ?", _alone),
    key_values.KIND: ("SELECT clock, device FROM kv WHERE key = ?", _alone),
    merge_rows.KIND: ("SELECT clock, device FROM merges WHERE id = ?", _alone),
    merging.APART: ("SELECT clock, device FROM kept_apart WHERE id = ?", _alone),
    uses_rows.KIND: (
        "SELECT clock, device FROM uses WHERE id = ? AND device = ?",
        uses_rows.parts_of,
    ),
    METRIC_KIND: (
        "SELECT clock, device FROM metrics WHERE name = ? AND device = ?",
        uses_rows.parts_of,
    ),
    files.KIND: ("SELECT clock, device FROM files WHERE path = ?", _alone),
}
