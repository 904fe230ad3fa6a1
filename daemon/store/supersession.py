"""Storing a memory and marking those that it replaces, in one transaction."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from ..language.normal_form import LONGEST
from ..language.pairing import judge_pair
from ..language.replacing import may_be_replaced, terms_to_look_up
from ..language.sorted_words import content_terms
from ..memory.records import DEFAULT_CATEGORY, Memory, outranks
from . import memories, merging
from .memory_rows import fetch
from .transaction import Transaction

# The maximum number of texts that are compared.
_COMPARED: Final = 20
# The newest texts that are read for a word; a word in more is a poor guide.
_OF_A_WORD: Final = 32
_CURRENT: Final = (
    "position IS NULL AND merged_into IS NULL"
    " AND (superseded_by IS NULL OR superseded_by IN (SELECT value FROM json_each(?)))"
    " AND created_at <= ? AND (expires_at IS NULL OR expires_at > ?)"
)


class Inserted(msgspec.Struct, frozen=True):
    """A new memory, and those that it replaces, as they were before."""

    memory: Memory
    superseded: tuple[Memory, ...] = ()


def insert(tx: Transaction, memory: Memory, *, file_alike: bool = False) -> Inserted:
    """Store a new memory; those that it replaces are marked.

    With `file_alike` it goes to the category of what it replaces, if it has only the default one.

    Raises:
        Conflict: its id is taken.
    """
    older = contradicted_by(tx.db, memory, tx.new_by_term)
    older = [other for other in older if not outranks(other, memory)]
    if file_alike and older and memory.category == DEFAULT_CATEGORY:
        memory = msgspec.structs.replace(memory, category=older[0].category)
    inserted = Inserted(memories.insert(tx, memory), _mark(tx, older, memory.id))
    if memory.position is None and len(memory.text) <= LONGEST:
        for stem in content_terms(memory.text):
            tx.new_by_term.setdefault(stem, []).append(memory.id)
    return inserted


def _mark(tx: Transaction, older: Sequence[Memory], newer: str) -> tuple[Memory, ...]:
    return tuple(one for one in older if merging.supersede(tx, one.id, newer) is not None)


def contradicted_by(
    db: sqlite3.Connection,
    memory: Memory,
    new: Mapping[str, Sequence[str]] = {},
    *,
    retiring: Collection[str] = (),
) -> list[Memory]:
    """The current memories that a later one contradicts, newest first.

    Only the texts that share rare words with it are compared, 20 at most. Turns of conversations
    contradict nothing and are not contradicted.

    Args:
        db: the connection.
        memory: the later memory.
        new: the ids of memories that the index does not have yet, by the stems of their words.
        retiring: the ids of memories whose marks no longer count, since they are to be merged.
    """
    terms, any_of = terms_to_look_up(memory.text) if memory.position is None else ([], False)
    if not terms:
        return []
    rows = _with_any(db, terms) if any_of else _with_all(db, terms)
    keys = [key for term in terms for stem in content_terms(term) for key in new.get(stem, ())]
    contradicted = []
    for key, text in _texts(db, rows, keys[-_COMPARED:], memory, retiring):
        if may_be_replaced(text, memory.text, any_of):
            older = fetch(db, key)
            assert older is not None
            if judge_pair(older, memory).relation == "contradiction":
                contradicted.append(older)
    return contradicted


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


def _texts(
    db: sqlite3.Connection,
    rows: Sequence[int],
    keys: Sequence[str],
    newer: Memory,
    retiring: Collection[str],
) -> list[tuple[str, str]]:
    """The ids and texts of current memories by their rows or ids, newest first."""
    if not rows and not keys:
        return []
    return db.execute(
        "SELECT id, text FROM memories WHERE (row IN (SELECT value FROM json_each(?))"
        " OR id IN (SELECT value FROM json_each(?)))"
        f" AND {_CURRENT} AND id <> ? ORDER BY row DESC LIMIT {_COMPARED}",
        (
            *(_json(rows), _json(keys), _json(list(retiring))),
            *(newer.created_at, newer.updated_at, newer.id),
        ),
    ).fetchall()


def _json(values: Sequence[object]) -> str:
    return msgspec.json.encode(values).decode()
