"""Finding the memories that say the same as a new one, or that it replaces; and storing it.

Inside a transaction the answer holds until the commit, so storing only what is not found stores
nothing twice. `find_equivalent` needs the index of the transaction's own memories: `index_new`.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ...language.comparison import comparable, contradicts, is_duplicate
from ...language.normal_form import is_interchangeable, negations
from ...language.replacing import may_be_replaced, terms_to_look_up
from ...memory.indexing import index_text
from ...memory.records import DEFAULT_CATEGORY, Memory, is_outside, outranks
from ...memory.similarity import exact_key, text_digest
from ...memory.stemming import STOP_WORDS
from ..database.connection import column, to_json
from ..database.transaction import Transaction
from . import memories, memory_rows, merging
from .memory_rows import select
from .selecting import at_rows

_MARKS: Final = ".,;:!?()[]{}*_~<>/|-"
# The first would end the quoted word; the rest are in "isn't", which may be written "is not".
_QUOTES: Final = re.compile("[\"\0]|\\S*['’]\\S*")
# The longest words are the rarest; this many identify nearly any text.
_WORDS: Final = 8
_CANDIDATES: Final = 64
_MATCHES: Final = (
    "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? ORDER BY rowid DESC LIMIT ?"
)


def find_same(db: sqlite3.Connection, text: str, now: float) -> Memory | None:
    """A memory with the same text except for case, blanks and closing full stops.

    It needs no index of the transaction's own memories. Archived and merged memories are included,
    expired ones are not.
    """
    return next(_with_text(db, text, now), None)


def same_words(db: sqlite3.Connection, memory: Memory, now: float) -> Iterator[Memory]:
    """The memories with the text of `memory`, except for case, blanks and full stops.

    None of somebody else, or with another subject, outcome or data; no expired one and no turn of a
    conversation, which are never known. Event and type do not matter, nor who said what nobody is
    known to have stated.
    """
    outside = is_outside(memory.source)
    for other in _with_text(db, memory.text, now):
        if memory.position is not None or other.position is not None:
            continue
        said = replace(other, actor=memory.actor) if outranks(memory, other) else other
        if is_outside(other.source) == outside and comparable(said, memory):
            yield other


def known_word_for_word(db: sqlite3.Connection, memory: Memory) -> Memory | None:
    """The first of `same_words` that still holds: it is not superseded.

    The memory that it was merged into takes its place.
    """
    survivors = _survivors(db, same_words(db, memory, memory.updated_at))
    return next((each for each in survivors if each.superseded_by is None), None)


def find_equivalent(db: sqlite3.Connection, memory: Memory) -> Memory | None:
    """The memory that says the same as `memory`, whatever their ids.

    This includes a memory that would be merged with it; a turn is never a duplicate. One that
    still holds comes before those that are superseded. The memory that it was merged into takes
    its place.
    """
    superseded = None
    for survivor in _survivors(db, _equivalent(db, memory)):
        if survivor.superseded_by is None:
            return survivor
        superseded = superseded or survivor
    return superseded


def _survivors(db: sqlite3.Connection, memories: Iterable[Memory]) -> Iterator[Memory]:
    for memory in memories:
        if (survivor := merging.successor(db, memory.id)) is not None:
            yield survivor


def holds_again(db: sqlite3.Connection, known: Memory, told: Memory) -> bool:
    """Whether `known` was superseded by something that `told`, which says the same, supersedes."""
    survivor = merging.successor(db, known.id)
    newer = memory_rows.fetch(db, survivor.superseded_by) if survivor is not None else None
    return newer is not None and newer.created_at <= told.created_at and not outranks(newer, told)


def _equivalent(db: sqlite3.Connection, memory: Memory) -> Iterator[Memory]:
    yield from same_words(db, memory, memory.updated_at)
    for other in _with_telling_words(db, memory.text):
        if not other.expired(memory.updated_at) and is_duplicate(other, memory):
            yield other


def is_known(db: sqlite3.Connection, memory: Memory) -> bool:
    """Whether `memory` says nothing new, or was deleted under its id."""
    if memory_rows.KIND.load(db, memory.id) is not None:
        return True
    return find_equivalent(db, memory) is not None


def _with_text(db: sqlite3.Connection, text: str, now: float) -> Iterator[Memory]:
    key = exact_key(text)
    for memory in select(db, "digest = ? ORDER BY row", text_digest(text)):
        if exact_key(memory.text) == key and not memory.expired(now):
            yield memory


def _with_telling_words(db: sqlite3.Connection, text: str) -> list[Memory]:
    """Memories that have all the telling words of `text`, or if none is, any word; newest first."""
    all_words = set(_words(text))
    telling = {word for word in all_words if not is_interchangeable(word.strip(_MARKS).lower())}
    longest = sorted(telling or all_words, key=lambda word: (-len(word), word))[:_WORDS]
    if not longest:
        return []
    query = (" " if telling else " OR ").join(f'"{word}"' for word in longest)
    return select(db, f"row IN ({_MATCHES})", query, _CANDIDATES)


def _words(text: str) -> Iterator[str]:
    """The words of `text` as the index splits them, without those of grammar."""
    for chunk in index_text(text).split():
        word = _QUOTES.sub(" ", chunk).strip()
        small = word.strip(_MARKS).lower()
        if any(map(str.isalnum, word)) and not (small in STOP_WORDS or small in negations()):
            yield word


# The maximum number of texts that are compared.
_COMPARED: Final = 20
# The newest texts that are read for a word; a word in more is a poor guide.
_OF_A_WORD: Final = 32
_CURRENT: Final = (
    "position IS NULL AND merged_into IS NULL"
    " AND (superseded_by IS NULL OR superseded_by IN (SELECT value FROM json_each(?)))"
    # What is dated after this moment was stored before it all the same, by a clock that was wrong.
    " AND (created_at <= ? OR created_at > ?) AND (expires_at IS NULL OR expires_at > ?)"
)


class Inserted(msgspec.Struct, frozen=True):
    """A new memory, or a known one, and those that it replaces, as they were before."""

    memory: Memory
    superseded: tuple[Memory, ...] = ()
    is_known: bool = False


def insert(tx: Transaction, memory: Memory, *, file_alike: bool = False) -> Inserted:
    """Store a memory under a new id; those that it replaces are marked.

    With `file_alike` it goes to the category of what it replaces, if it has only the default one.
    """
    # Imported ones have the time of their source, and replace nothing that is dated after it.
    ahead_of = memory.updated_at if memory.created_at == memory.updated_at else math.inf
    memory_rows.index_new(tx)
    older = contradicted_by(tx.db, memory, ahead_of=ahead_of)
    older = [other for other in older if not outranks(other, memory)]
    if file_alike and older and memory.category == DEFAULT_CATEGORY:
        memory = replace(memory, category=older[0].category)
    inserted = Inserted(memories.add(tx, memory), tuple(older))
    for other in older:
        merging.mark_superseded(tx, other, memory)
    return inserted


def contradicted_by(
    db: sqlite3.Connection,
    memory: Memory,
    *,
    retiring: Collection[str] = (),
    ahead_of: float = math.inf,
) -> list[Memory]:
    """The current memories that a later one contradicts, newest first.

    Only the texts that share rare words with it are compared, 20 at most. Turns of conversations
    contradict nothing and are not contradicted. `retiring` are the ids of those whose marks no
    longer count, since they are to be merged. What is dated after `ahead_of` counts as stored
    before. New memories of the same transaction must be indexed: `index_new`.
    """
    terms, any_of = terms_to_look_up(memory.text) if memory.position is None else ([], False)
    if not terms:
        return []
    with_all = " ".join(f'"{term}"' for term in terms)
    rows = _with_any(db, terms) if any_of else _rows_with(db, with_all)
    candidates = _current(db, rows, memory, retiring, ahead_of) if rows else []
    similar = [row for row, text in candidates if may_be_replaced(text, memory.text, any_of)]
    older = at_rows(db, similar) if similar else {}
    return [older[row] for row in similar if contradicts(older[row], memory)]


def _with_any(db: sqlite3.Connection, terms: Sequence[str]) -> list[int]:
    """The rows that share the most terms, rare ones first, then the newest."""
    weights: Counter[int] = Counter()
    for term in terms:
        rows = _rows_with(db, f'"{term}"')
        for row in rows:
            weights[row] += _OF_A_WORD + 1 - len(rows)
    # A single word that many texts have is shared by chance.
    guided = [row for row, weight in weights.items() if weight > 1]
    return sorted(guided, key=lambda row: (-weights[row], -row))[:_COMPARED]


def _rows_with(db: sqlite3.Connection, words: str) -> list[int]:
    """The newest rows whose text has all the words."""
    return column(db, _MATCHES, words, _OF_A_WORD)


def _current(
    db: sqlite3.Connection,
    rows: Sequence[int],
    newer: Memory,
    retiring: Collection[str],
    ahead_of: float,
) -> list[tuple[int, str]]:
    """The rows and texts of the current memories among these rows, newest first."""
    return db.execute(
        "SELECT row, text FROM memories WHERE row IN (SELECT value FROM json_each(?))"
        f" AND {_CURRENT} AND id <> ? ORDER BY row DESC LIMIT {_COMPARED}",
        (
            *(to_json(rows), to_json([*retiring])),
            *(newer.created_at, ahead_of, newer.updated_at, newer.id),
        ),
    ).fetchall()
