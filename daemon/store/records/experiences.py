"""Experiences: their rows, and the table of unpruned ones that recall and lists read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from thermocline.sync import Row

from ...memory.experiences import (
    FADED,
    HALF_LIFE_DAYS,
    Experience,
    confidence,
    identity,
    preference_weight,
    seconds_from_whole,
)
from ..database import meta
from ..database.record_kind import Projection, RecordKind, is_json, is_short, is_text
from ..database.rows import JoinResult
from ..database.transaction import Transaction

# The reason recorded in the history for a pruned version.
PRUNED: Final = "pruned"
_HALF_LIFE: Final = "experiences_half_life_days"
# By how much longer or shorter than by default the weights halve: by the caller, or the settings.
_PACE: Final = (
    "coalesce({days},"
    f" (SELECT CAST(value AS REAL) FROM main.meta WHERE key = '{_HALF_LIFE}'),"
    f" {HALF_LIFE_DAYS}) / {HALF_LIFE_DAYS}"
)
_HEAVY: Final = f"last_used_at + (whole_at - last_used_at - {{whole}}) * {_PACE} >= {{now}}"
_LIGHTEST: Final = f"last_used_at + (whole_at - last_used_at) * {_PACE}".format(days=":days")
_HEAVIEST: Final = f"{_LIGHTEST} DESC, row DESC"
NOT_FADED: Final = _HEAVY.format(whole="?", days="?", now="?")
_HEAVY_ENOUGH: Final = _HEAVY.format(whole=":whole", days=":days", now=":now")


class ExperienceTotals(msgspec.Struct, frozen=True):
    """The number of experiences by type, and the mean of their creation times."""

    by_type: dict[str, int]
    created_at: float | None


def follow_settings(tx: Transaction) -> None:
    """Note the half-life of the settings, by which recall leaves out what has faded."""
    days = tx.rules.experiences.half_life_days
    if meta.read(tx.db, _HALF_LIFE, float) != days:
        meta.write(tx, _HALF_LIFE, days)


def not_faded(now: float, half_life_days: float | None) -> tuple[float | None, ...]:
    """The arguments of `NOT_FADED`; a half-life of None is that of the settings."""
    return seconds_from_whole(FADED), half_life_days, now


def _join(_: Transaction, base: Row | None, ours: Row, theirs: Row) -> JoinResult:
    """Add the uses of two devices; of the other fields the more certain or later value counts."""
    earlier, later = sorted((ours, theirs), key=lambda row: row.clocks.latest)
    data: dict[str, Any] = dict(earlier.data) | dict(later.data)
    if data.get("pruned_at") is not None and "pruned_at" not in later.data:
        del data["pruned_at"]
    for name in ("last_used_at", "success_score", "weight"):
        data[name] = max(_numbers(name, (ours, theirs)), default=data.get(name))
    was = base.data.get("use_count", 0) if base is not None else 0
    data["use_count"] = sum(_numbers("use_count", (ours, theirs))) - was
    return JoinResult(data)


def _numbers(name: str, rows: Iterable[Row]) -> list[Any]:
    return [row.data[name] for row in rows if row.data.get(name) is not None]


EXPERIENCES: Final = RecordKind(
    "experience",
    Experience,
    missing="no experience has the id '{}'",
    shortened=True,
    checks={"intent": is_text, "solution": is_json, "user": is_short},
    projection=Projection(
        table="experiences",
        index="experience_fts",
        columns=(
            *("type", "user", "created_at", "last_used_at", "use_count", "success_score"),
            *("whole_at", "intent"),
        ),
        texts=("intent",),
        told_at="created_at",
        includes=lambda experience: experience.pruned_at is None,
        before=follow_settings,
    ),
    emits=True,
    liveness_fields=("intent",),
    sets=frozenset({"tags"}),
    join=_join,
)


def page(
    db: sqlite3.Connection,
    *,
    now: float,
    types: str | None = None,
    user: str | None = None,
    least: float = 0.0,
    days: float | None = None,
    limit: int,
    offset: int = 0,
) -> tuple[list[Experience], int]:
    """Unpruned experiences of at least this weight, heaviest first, and their number.

    `days` is the half-life in place of that of the settings, here and below.
    """
    where = "(:type IS NULL OR t.type = :type) AND (:user IS NULL OR t.user = :user)"
    values: dict[str, Any] = {"type": types, "user": user, "days": days}
    if least:
        where += f" AND {_HEAVY_ENOUGH}"
        values |= {"whole": seconds_from_whole(least), "now": now}
    return EXPERIENCES.page(db, where, _HEAVIEST, limit, offset, **values)


def preferences(
    db: sqlite3.Connection, user: str | None, limit: int, offset: int
) -> tuple[list[Experience], int]:
    """What users prefer, by user and category, most certain first, and the number of them."""
    # A preference observed in text has no category.
    where = (
        "t.type = 'user_preference' AND data ->> '$.solution.category' IS NOT NULL"
        " AND data ->> '$.solution.value' IS NOT NULL AND (:user IS NULL OR t.user = :user)"
    )
    order = "t.user, data ->> '$.solution.category', success_score DESC, whole_at DESC"
    return EXPERIENCES.page(db, where, order, limit, offset, user=user)


def totals(db: sqlite3.Connection) -> ExperienceTotals:
    """The number by type, and the mean age."""
    counts = db.execute("SELECT type, count(*) FROM experiences GROUP BY type ORDER BY type")
    mean = db.execute("SELECT avg(created_at) FROM experiences").fetchone()[0]
    return ExperienceTotals(dict(counts.fetchall()), mean)


def use(tx: Transaction, key: str) -> Experience:
    """Count a use: it has its initial weight again, pruned or not."""
    known = EXPERIENCES.get(tx.db, key)
    used = replace(known, last_used_at=tx.now, use_count=known.use_count + 1, pruned_at=None)
    return EXPERIENCES.put(tx, used)


def put_or_use(tx: Transaction, experience: Experience) -> tuple[Experience, bool]:
    """Store an experience, or count a repetition; return it, and whether it is new."""
    if EXPERIENCES.find(tx.db, experience.id) is not None:
        return use(tx, experience.id), False
    return EXPERIENCES.put(tx, experience, new=True), True


def prefer(tx: Transaction, user: str, category: str, value: str) -> Experience:
    """Store a preference; each repetition makes it more certain."""
    key = identity("user_preference", user, category, value)
    known = EXPERIENCES.find(tx.db, key)
    repeats = 1 if known is None else known.use_count + 1
    preference = Experience(
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
    )
    return EXPERIENCES.put(tx, preference)


def prune(tx: Transaction, least: float = FADED, days: float | None = None) -> list[Experience]:
    """Remove experiences of less weight from recall; the history keeps their last version."""
    faded = fading(tx.db, tx.now, least, days)
    for experience in faded:
        EXPERIENCES.put(tx, replace(experience, pruned_at=tx.now), why=PRUNED)
    if faded:
        tx.emit("experience.pruned", count=len(faded))
    return faded


def fading(
    db: sqlite3.Connection, now: float, least: float = FADED, days: float | None = None
) -> list[Experience]:
    """Experiences of less weight, lightest first."""
    values = {"whole": seconds_from_whole(least), "now": now, "days": days}
    return EXPERIENCES.select(db, f"NOT ({_HEAVY_ENOUGH})", _LIGHTEST, **values)
