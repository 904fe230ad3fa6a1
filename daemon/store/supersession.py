"""Storing a memory and marking those that it replaces, in one transaction."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ..language.pairing import judge_pair
from ..language.replacing import may_be_replaced, terms_to_look_up
from ..memory.records import Memory, outranks
from . import memories, merging
from .memory_rows import fetch
from .transaction import Transaction

# The maximum number of texts that are compared.
_COMPARED: Final = 20
# The newest texts that are read for a word; a word in more is a poor guide.
_OF_A_WORD: Final = 32
# Texts of the same transaction are searched for the beginnings of words.
_PREFIX: Final = 5
_CURRENT: Final = (
    "position IS NULL AND merged_into IS NULL AND superseded_by IS NULL"
    " AND created_at <= ? AND (expires_at IS NULL OR expires_at > ?)"
)


class Inserted(msgspec.Struct, frozen=True):
    """A new memory, and those that it replaces, as they were before."""

    memory: Memory
    superseded: tuple[Memory, ...] = ()


def insert(tx: Transaction, memory: Memory) -> Inserted:
    """Store a new memory; those that it replaces are marked.

    Raises:
        Conflict: its id is taken.
    """
    older = find_replaced(tx, memory)
    return Inserted(memories.insert(tx, memory), mark(tx, older, memory.id))


def mark(tx: Transaction, older: Sequence[Memory], newer: str) -> tuple[Memory, ...]:
    """Mark some memories as superseded by a stored one; return those that were marked."""
    return tuple(one for one in older if merging.supersede(tx, one.id, newer) is not None)


def find_replaced(tx: Transaction, memory: Memory) -> list[Memory]:
    """As `replaced_by`, including new memories of the same transaction.

    They are not indexed yet: the index would be written out for each look-up.
    """
    return replaced_by(tx.db, memory, tx.unindexed)


def replaced_by(
    db: sqlite3.Connection, memory: Memory, unindexed: Sequence[Sequence[Any]] = ()
) -> list[Memory]:
    """The current memories that a memory replaces, newest first.

    Only the texts that share rare words with it are compared, 20 at most. Turns of conversations
    replace nothing and are not replaced, and what was inferred never replaces what a user stated.
    """
    terms, any_of = terms_to_look_up(memory.text) if memory.position is None else ([], False)
    if not terms:
        return []
    wanted = any if any_of else all
    rows = _with_any(db, terms) if any_of else _with_all(db, terms)
    rows += [
        row
        for row, text, *_ in unindexed
        if wanted(term[:_PREFIX] in (lower := text.lower()) for term in terms)
    ]
    found = []
    for key, text in _texts(db, rows, memory):
        if may_be_replaced(text, memory.text, any_of):
            older = fetch(db, key)
            assert older is not None
            replaced = judge_pair(older, memory).relation == "contradiction"
            if replaced and not outranks(older, memory):
                found.append(older)
    return found


def _with_all(db: sqlite3.Connection, terms: Sequence[str]) -> list[int]:
    """The newest rows whose text has all the terms."""
    return _matching(db, " ".join(f'"{term}"' for term in terms))


def _with_any(db: sqlite3.Connection, terms: Sequence[str]) -> list[int]:
    """The rows that share the most terms, rare ones first, then the newest."""
    weights: Counter[int] = Counter()
    for term in terms:
        rows = _matching(db, f'"{term}"')
        for row in rows:
            weights[row] += _OF_A_WORD + 1 - len(rows)
    # A single word that many texts have is shared by chance.
    guided = [row for row, weight in weights.items() if weight > 1]
    return sorted(guided, key=lambda row: (-weights[row], -row))[:_COMPARED]


def _matching(db: sqlite3.Connection, words: str) -> list[int]:
    found = db.execute(
        "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? ORDER BY rowid DESC LIMIT ?",
        (words, _OF_A_WORD),
    )
    return [row for (row,) in found.fetchall()]


def _texts(db: sqlite3.Connection, rows: Sequence[int], newer: Memory) -> list[tuple[str, str]]:
    if not rows:
        return []
    return db.execute(
        f"SELECT id, text FROM memories WHERE row IN (SELECT value FROM json_each(?))"
        f" AND {_CURRENT} AND id <> ? ORDER BY row DESC LIMIT {_COMPARED}",
        (str(rows), newer.created_at, newer.updated_at, newer.id),
    ).fetchall()
