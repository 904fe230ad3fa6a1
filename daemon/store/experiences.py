"""Experiences: their rows, and the table of unpruned ones that recall and lists read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from thermocline.sync import Fields, Row

from ..errors import NotFound
from ..memory.checks import check_data, check_short, check_text, check_time
from ..memory.experiences import (
    FADED,
    Experience,
    confidence,
    identity,
    preference_weight,
    whole_at,
)
from . import full_text, rows
from .kind import Kind, Settled
from .transaction import Transaction

INDEX: Final = "experience_fts"
# The reason recorded in the history for a pruned version.
PRUNED: Final = "pruned"
_FROM: Final = "experiences CROSS JOIN rows ON kind = 'experience' AND rows.id = experiences.id"


class ExperienceTotals(msgspec.Struct, frozen=True):
    """The number of experiences by type, and the mean of their creation times."""

    by_type: dict[str, int]
    created_at: float | None


def get(db: sqlite3.Connection, key: str) -> Experience:
    """The experience with this id, pruned or not.

    Raises:
        NotFound: it does not exist.
    """
    found = find(db, key)
    if found is None:
        raise NotFound(f"no experience has the id '{key}'", field="id")
    return found


def find(db: sqlite3.Connection, key: str) -> Experience | None:
    """The experience with this id, pruned or not."""
    row = rows.load(db, KIND, key)
    return None if row is None else _experience(key, row.data)


def page(
    db: sqlite3.Connection,
    *,
    now: float,
    types: str | None = None,
    user: str | None = None,
    least: float = 0.0,
    limit: int,
    offset: int = 0,
) -> tuple[list[Experience], int]:
    """Unpruned experiences of at least this weight, heaviest first, and their number."""
    conditions = {
        "experiences.type = ?": types,
        "experiences.user = ?": user,
        "experiences.whole_at >= ?": whole_at(least, now) if least else None,
    }
    given = {sql: value for sql, value in conditions.items() if value is not None}
    where, arguments = " AND ".join(given) or "true", [*given.values()]
    found = db.execute(
        f"SELECT rows.id, data FROM {_FROM} WHERE {where}"
        " ORDER BY whole_at DESC, row DESC LIMIT ? OFFSET ?",
        (*arguments, limit, offset),
    )
    read = [_experience(key, msgspec.json.decode(data)) for key, data in found]
    total = db.execute(f"SELECT count(*) FROM experiences WHERE {where}", arguments).fetchone()
    return read, int(total[0])


def preferences(
    db: sqlite3.Connection, user: str | None, limit: int, offset: int
) -> tuple[list[Experience], int]:
    """What users prefer, by user and category, most certain first, and the number of them."""
    # A preference observed in text has no category.
    where = (
        "experiences.type = 'user_preference' AND data ->> '$.solution.category' IS NOT NULL"
        " AND data ->> '$.solution.value' IS NOT NULL AND (?1 IS NULL OR experiences.user = ?1)"
    )
    found = db.execute(
        f"SELECT rows.id, data FROM {_FROM} WHERE {where} ORDER BY experiences.user,"
        " data ->> '$.solution.category', success_score DESC, whole_at DESC LIMIT ?2 OFFSET ?3",
        (user, limit, offset),
    )
    read = [_experience(key, msgspec.json.decode(data)) for key, data in found]
    total = db.execute(f"SELECT count(*) FROM {_FROM} WHERE {where}", (user,)).fetchone()[0]
    return read, int(total)


def at_rows(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, Experience]:
    """The experiences in these rows of the full-text index."""
    found = db.execute(
        f"SELECT row, rows.id, data FROM {_FROM} WHERE row IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(numbers).decode(),),
    )
    return {row: _experience(key, msgspec.json.decode(data)) for row, key, data in found}


def count(db: sqlite3.Connection) -> int:
    """The number of experiences."""
    return int(db.execute("SELECT count(*) FROM experiences").fetchone()[0])


def totals(db: sqlite3.Connection) -> ExperienceTotals:
    """The number by type, and the mean age."""
    found = db.execute("SELECT type, count(*) FROM experiences GROUP BY type ORDER BY type")
    mean = db.execute("SELECT avg(created_at) FROM experiences").fetchone()[0]
    return ExperienceTotals(dict(found.fetchall()), mean)


def put(tx: Transaction, made: Experience, *, new: bool = True) -> Experience:
    """Store an experience."""
    data = {name: value for name in _FIELDS if (value := getattr(made, name)) is not None}
    rows.write(tx, KIND, made.id, data | {"tags": [*made.tags]}, new=new)
    tx.tell("experience.stored", id=made.id)
    return made


def use(tx: Transaction, key: str) -> Experience:
    """Count a use: it has its initial weight again, pruned or not."""
    known = get(tx.db, key)
    used = replace(known, last_used_at=tx.now, use_count=known.use_count + 1, pruned_at=None)
    return put(tx, used, new=False)


def tell(tx: Transaction, told: Experience) -> tuple[Experience, bool]:
    """Store an experience, or count a repetition; return it, and whether it is new."""
    if find(tx.db, told.id) is not None:
        return use(tx, told.id), False
    return put(tx, told), True


def prefer(tx: Transaction, user: str, category: str, value: str) -> Experience:
    """Store a preference; each repetition makes it more certain."""
    key = identity("user_preference", user, category, value)
    known = find(tx.db, key)
    repeats = 1 if known is None else known.use_count + 1
    return put(
        tx,
        Experience(
            id=key,
            type="user_preference",
            intent=f"{category}:{value}",
            solution={"category": category, "value": value},
            success_score=confidence(repeats),
            tags=(category,),
            user=user,
            created_at=tx.now if known is None else known.created_at,
            last_used_at=tx.now,
            use_count=repeats,
            weight=preference_weight(repeats),
        ),
        new=False,
    )


def prune(tx: Transaction, least: float = FADED) -> list[Experience]:
    """Remove experiences of less weight from recall; the history keeps their last version."""
    faded = fading(tx.db, tx.now, least)
    for one in faded:
        data = rows.load(tx.db, KIND, one.id)
        assert data is not None
        rows.write(tx, KIND, one.id, dict(data.data) | {"pruned_at": tx.now}, why=PRUNED)
    if faded:
        tx.tell("experience.pruned", count=len(faded))
    return faded


def fading(db: sqlite3.Connection, now: float, least: float = FADED) -> list[Experience]:
    """Experiences of less weight, lightest first."""
    found = db.execute(
        f"SELECT rows.id, data FROM {_FROM} WHERE whole_at < ? ORDER BY whole_at",
        (whole_at(least, now),),
    )
    return [_experience(key, msgspec.json.decode(data)) for key, data in found]


def delete(tx: Transaction, key: str) -> None:
    """Delete an experience for good.

    Raises:
        NotFound: it does not exist.
    """
    get(tx.db, key)
    rows.write(tx, KIND, key, None)
    tx.tell("experience.deleted", id=key)


def _experience(key: str, data: Fields) -> Experience:
    fields: Fields = {name: data[name] for name in _FIELDS if name in data}
    return msgspec.convert(fields | {"id": key}, Experience)


def reindex(tx: Transaction) -> None:
    """Rebuild the full-text index."""
    full_text.clear(tx, INDEX)
    tx.db.execute("DELETE FROM experiences")
    for row in KIND.table.every(tx.db, KIND.name):
        _applied(tx, None, row)


_COLUMNS: Final = ("id", "type", "user", "created_at", "last_used_at", "use_count")
_DERIVED: Final = (*_COLUMNS, "success_score", "whole_at", "intent")


def _applied(tx: Transaction, before: Row | None, after: Row) -> None:
    """Update the table and its index."""
    old, new = _found(before), _found(after)
    if new is None:
        if old is not None:
            gone = tx.db.execute("DELETE FROM experiences WHERE id = ? RETURNING row", (old.id,))
            full_text.remove(tx, INDEX, gone.fetchone()[0], _indexed(old))
        return
    row = tx.db.execute(
        f"INSERT INTO experiences ({', '.join(_DERIVED)})"
        f" VALUES ({', '.join('?' * len(_DERIVED))}) ON CONFLICT (id) DO UPDATE SET"
        f" {', '.join(f'{name} = excluded.{name}' for name in _DERIVED[1:])} RETURNING row",
        [getattr(new, name) for name in _DERIVED],
    ).fetchone()[0]
    if old is not None and _indexed(old) == _indexed(new):
        return
    if old is not None:
        full_text.remove(tx, INDEX, row, _indexed(old))
    full_text.add(tx, INDEX, [full_text.IndexEntry(row, _indexed(new), new.created_at)])


def _found(row: Row | None) -> Experience | None:
    """The experience of a row, if recall may find it."""
    if row is None or not KIND.lives(row):
        return None
    read = _experience(row.id, row.data)
    return read if read.pruned_at is None else None


def _indexed(one: Experience) -> tuple[str]:
    return (one.intent,)


def _check(row: Row) -> None:
    one = _experience(row.id, row.data)
    check_text(one.intent, _ANY_SIZE, field="intent")
    check_data(one.solution, _ANY_SIZE, field="solution")
    check_short(one.user, "user", _ANY_SIZE)
    for name in ("created_at", "last_used_at"):
        check_time(getattr(one, name), field=name)


def _join(_: Transaction, base: Row | None, ours: Row, theirs: Row) -> Settled:
    """Add the uses of two devices; of the other fields the more certain or later value counts."""
    earlier, later = sorted((ours, theirs), key=lambda row: row.clocks.latest)
    data: dict[str, Any] = dict(earlier.data) | dict(later.data)
    if data.get("pruned_at") is not None and "pruned_at" not in later.data:
        del data["pruned_at"]
    for name in ("last_used_at", "success_score", "weight"):
        data[name] = max(_numbers(name, (ours, theirs)), default=data.get(name))
    was = base.data.get("use_count", 0) if base is not None else 0
    data["use_count"] = sum(_numbers("use_count", (ours, theirs))) - was
    return Settled(data)


def _numbers(name: str, of: Iterable[Row]) -> list[Any]:
    return [row.data[name] for row in of if row.data.get(name) is not None]


_FIELDS: Final = Experience.__struct_fields__[1:]
# Received values are not cut: other devices may allow longer texts.
_ANY_SIZE: Final = 1 << 62
KIND: Final = Kind(
    name="experience",
    fields=frozenset(_FIELDS),
    vital=("intent",),
    sets=frozenset({"tags"}),
    check=_check,
    applied=_applied,
    join=_join,
    reindex=reindex,
)
