"""What is put right once everything has come from the replica.

Until then, what seems to be missing may be on its way. What is to be looked at is noted in the
memory itself, so that an interruption loses none of it.
"""

from __future__ import annotations

from typing import Final

from . import merging, tree_rows
from .transaction import Transaction

# Set while a category may be gone that something is filed in.
_HOMELESS: Final = "homeless"
# Set while something may point to a memory that is gone, or to itself in a circle.
_LOOSE: Final = "loose"
# Its value where no tombstone tells what is gone.
_TRACELESS: Final = "traceless"


def category_gone(tx: Transaction) -> None:
    """Note that a category went, in which something may be filed here."""
    tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, '')", (_HOMELESS,))


def links_came(tx: Transaction) -> None:
    """Note that a memory went, or that one came which points to another."""
    tx.db.execute("INSERT OR IGNORE INTO meta VALUES (?, '')", (_LOOSE,))


def swept(tx: Transaction) -> None:
    """Note that memories went without a trace."""
    tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_LOOSE, _TRACELESS))


def mend(tx: Transaction) -> None:
    """Put right what was noted; everything that the replica has is here."""
    loose = tx.db.execute("DELETE FROM meta WHERE key = ? RETURNING value", (_LOOSE,)).fetchone()
    if loose is not None:
        gone = merging.NOT_HERE if loose[0] == _TRACELESS else merging.DELETED
        merging.mend_links(tx, gone)
    if tx.db.execute("DELETE FROM meta WHERE key = ?", (_HOMELESS,)).rowcount:
        _house(tx)


def _house(tx: Transaction) -> None:
    """Make anew the categories that went elsewhere, while here something was filed in them."""
    rows = tx.db.execute(
        "SELECT category FROM memories WHERE merged_into IS NULL"
        " AND category NOT IN (SELECT path FROM tree)"
        " UNION SELECT category FROM remote_only WHERE category NOT IN (SELECT path FROM tree)"
    ).fetchall()
    for (category,) in rows:
        tree_rows.ensure(tx, category)
