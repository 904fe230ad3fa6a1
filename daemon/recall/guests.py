"""Memories from elsewhere that take part in a search as if they stood in the database.

They are indexed by themselves, in a database that lives as long as the search, and there the words
of the query are looked up in them. What each word is worth is told by the agent's own memories.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

import msgspec

from ..memory.indexing import indexed_columns
from ..memory.records import Memory
from ..store.rows import INSERT, to_row
from ..store.schema import MIGRATIONS
from .pool import Pool, places_of
from .postings import Posting, Postings, weight_of

# Above every row of a memory that is here.
_FIRST: Final = 1 << 40


class Guests:
    """Memories from elsewhere, in a database of their own.

    Attributes:
        db: holds them like an agent's own database.
        by_row: the memories by their rows, of which the agent's own has none.
    """

    def __init__(self, memories: Iterable[Memory]) -> None:
        self.by_row = dict(enumerate(memories, _FIRST))
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        for migration in MIGRATIONS:
            for statement in migration.statements:
                self.db.execute(statement)
        insert = INSERT.replace("(", "(row, ", 1).replace("VALUES (", "VALUES (?, ", 1)
        for row, memory in self.by_row.items():
            self.db.execute(insert, [row, *to_row(memory)])
            self.db.execute(
                "INSERT INTO memory_fts(rowid, text, subject, tags) VALUES (?, ?, ?, ?)",
                (row, *indexed_columns(memory)),
            )

    def close(self) -> None:
        """Forget them."""
        self.db.close()


def joined(here: Postings, there: Postings, size: int) -> Postings:
    """The postings of both, with the weights that the words have here.

    Args:
        here: of the agent's own memories.
        there: of the guests; what is common here decides nothing there either.
        size: how many memories there are in all.
    """
    words = {posting.word: posting for posting in here.rare}
    newest = set(here.newest)
    for posting in there.rare:
        if posting.word not in here.common:
            words[posting.word] = _joined(words.get(posting.word), posting, size)
        elif not here.rare:
            newest |= posting.rows
    return msgspec.structs.replace(
        here,
        rare=tuple(words.values()),
        unknown=tuple(word for word in here.unknown if word in there.unknown),
        newest=tuple(sorted(newest, reverse=True)),
        phrased=here.phrased | there.phrased,
        naming=here.naming | there.naming,
    )


def _joined(here: Posting | None, there: Posting, size: int) -> Posting:
    if here is None:
        here = Posting(there.word, frozenset(), 0.0)
    rows, kin = here.rows | there.rows, here.kin | there.kin
    weight = here.weight or (weight_of(len(rows), size) if rows else 0.0)
    return Posting(
        word=here.word,
        rows=rows,
        weight=weight,
        kin=kin - rows,
        kin_weight=here.kin_weight or (weight_of(len(kin), size) if kin else 0.0),
    )


def together(here: Pool, there: Pool) -> Pool:
    """One pool of both; a conversation may have turns in each."""
    entries = (*here.entries, *there.entries)
    return Pool(entries, places_of(entries))
