"""The rows of entities, and the full-text index in which recall finds entities."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from thermocline.sync import Fields, Row

from ...errors import InvalidInput
from ...memory.checks import check_short, check_time
from ...memory.records import Entity, name_key
from ..database import full_text, rows
from ..database.connection import column, scalar, to_json, upsert
from ..database.rows import Kind
from ..database.transaction import IndexEntry, Transaction
from .entities import Stated, canonical, entity_at, spelling, stated

INDEX: Final = "entity_fts"
_LONGEST: Final = 200
_MOST_ALIASES: Final = 50
# Of those that one memory names; the index does not have the others.
_MOST_NAMES: Final = 200


def state(tx: Transaction, name: str, changes: Fields) -> str:
    """Write the row of an entity with at most 50 aliases (else `InvalidInput`); return its key.

    `changes` are fields of `Stated`. An alias that is itself an entity is merged into this one,
    with its aliases.
    """
    key = canonical(tx.db, name_key(name))
    before = stated(tx.db, key)
    fields: Fields = msgspec.to_builtins(before) if before is not None else {}
    fields = {name: value for name, value in fields.items() if value not in (None, "", 0, [])}
    if before is None:
        fields = {"name": spelling(tx.db, key) or name.strip(" "), "last_seen": tx.now}
    fields |= changes
    if "aliases" in changes:
        fields["aliases"] = _aliases(tx, key, changes["aliases"])
    rows.write(tx, KIND, key, {name: value for name, value in fields.items() if value})
    tx.emit("entity.changed", name=fields["name"])
    return key


def _aliases(tx: Transaction, key: str, names: Iterable[str]) -> list[str]:
    aliases: dict[str, str] = {}
    for alias in names:
        other = name_key(alias)
        if other == key:
            continue
        aliases.setdefault(other, alias.strip(" "))
        theirs = stated(tx.db, other)
        if theirs is not None:
            aliases.update((name_key(name), name) for name in theirs.aliases)
            rows.write(tx, KIND, other, None)
    aliases.pop(key, None)
    if len(aliases) > _MOST_ALIASES:
        raise InvalidInput(
            f"cannot give '{key}' more than {_MOST_ALIASES} aliases", field="aliases"
        )
    return sorted(aliases.values())


def named_by(db: sqlite3.Connection, memory: str) -> set[str]:
    """The entities that a memory names, those that it only relates to others included."""
    sql = "SELECT entity FROM mentions WHERE memory = ? LIMIT ?"
    return {*column(db, sql, memory, _MOST_NAMES)}


def refresh(tx: Transaction, names: Iterable[str]) -> None:
    """Update the index for some entities; those no longer named are removed from it."""
    for name in sorted({*names} | {canonical(tx.db, name) for name in names}):
        # Faded entities stay in the index: fading depends on the time of reading.
        whole = canonical(tx.db, name) == name
        _put(tx, name, entity_at(tx.db, name, now=0.0) if whole else None)


def _put(tx: Transaction, key: str, entity: Entity | None) -> None:
    old = tx.db.execute("SELECT row, text FROM entities WHERE id = ?", (key,)).fetchone()
    if entity is None:
        if old is not None:
            tx.db.execute("DELETE FROM entities WHERE row = ?", (old[0],))
            full_text.remove(tx.db, INDEX, old[0], (old[1],))
        return
    columns = {
        "id": key,
        "name": entity.name,
        "text": entity.summary,
        "mentions": entity.mention_count,
        "created_at": entity.first_seen,
        "updated_at": entity.last_seen,
    }
    entry = IndexEntry(upsert(tx.db, "entities", columns), (entity.summary,))
    full_text.put(tx.db, INDEX, entry, None if old is None else (old[1],))


def at_rows(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, Entity]:
    """The entities in these rows of the full-text index."""
    keys = db.execute(
        "SELECT row, id FROM entities WHERE row IN (SELECT value FROM json_each(?))",
        (to_json(numbers),),
    ).fetchall()
    entities = {row: entity_at(db, key, now=0.0) for row, key in keys}
    return {row: entity for row, entity in entities.items() if entity is not None}


def count(db: sqlite3.Connection) -> int:
    """The number of entities."""
    return int(scalar(db, "SELECT count(*) FROM entities"))


def reindex(tx: Transaction) -> None:
    """Rebuild the index."""
    full_text.clear(tx.db, INDEX)
    tx.db.execute("DELETE FROM entities")
    stated = "SELECT id FROM rows WHERE kind = 'entity' AND live"
    refresh(tx, column(tx.db, f"SELECT entity FROM mentions UNION {stated}"))


def _applied(tx: Transaction, before: Row | None, after: Row) -> None:
    names = {after.id}
    for row in (before, after):
        if row is not None and KIND.lives(row):
            names.update(map(name_key, _stated(row).aliases))
    tx.db.execute("DELETE FROM entity_names WHERE entity = ?", (after.id,))
    if KIND.lives(after):
        tx.db.executemany(
            "INSERT OR IGNORE INTO entity_names VALUES (?, ?)",
            [(name_key(alias), after.id) for alias in _stated(after).aliases],
        )
    refresh(tx, names)


def _stated(row: Row) -> Stated:
    return msgspec.convert({name: row.data[name] for name in _FIELDS & row.data.keys()}, Stated)


def _check(row: Row) -> None:
    content = _stated(row)
    for name in (row.id, *content.aliases):
        check_short(name, "name", _LONGEST)
    for at in (content.first_seen, content.last_seen):
        if at is not None:
            check_time(at, field="last_seen")


_FIELDS: Final = frozenset(Stated.__struct_fields__)
KIND: Final[Kind] = Kind(
    name="entity",
    fields=_FIELDS,
    sets=frozenset({"aliases"}),
    check=_check,
    applied=_applied,
    reindex=reindex,
)
