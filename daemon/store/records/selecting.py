"""Listing memories by their fields, without a query in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from ...memory.records import Memory, Order, Tier
from ...memory.scoring import COLD, HOT, WARM, Scoring, score
from ..database.connection import INSIDE, DatabaseConnection, scalar, to_json
from . import tree_rows
from .memory_rows import FIELDS, from_row, select

# The scores of each tier, from the first to below the second.
_BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "hot": (HOT, float("inf")),
    "warm": (WARM, HOT),
    "cold": (COLD, WARM),
    "frozen": (float("-inf"), COLD),
}
_NEWEST: Final = ("created_at DESC", "row DESC")
_ORDER: Final = {
    "newest": _NEWEST,
    "oldest": ("created_at", "row"),
    "importance": ("importance DESC", *_NEWEST),
    "score": ("score(importance, created_at, access_count, pinned) DESC", "row DESC"),
    "uses": ("access_count DESC", *_NEWEST),
    "type": ("type", *_NEWEST),
    "category": ("category", *_NEWEST),
    # Those without a subject come last.
    "subject": ("subject = ''", "subject COLLATE NOCASE", *_NEWEST),
}


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions on memories; fields left out do not matter."""

    types: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    category: str | None = None  # it and all below it, under its present name or the original one
    tags: tuple[str, ...] = ()  # all of them
    url: str | None = None  # a part of one of the stored URLs, in any case
    actor: str | None = None
    group: str | None = None
    source: str | None = None
    archived: bool | None = None
    standing: bool | None = None
    outside: bool | None = None  # whether their source is neither a person nor the agent
    tier: Tier | None = None
    since: float | None = None
    until: float | None = None
    min_importance: float | None = None
    paths: tuple[str, ...] = ()  # of files, by the beginnings of their paths; memories have no path
    # The agent's own memories and notes, its conversations, or other files.
    place: Literal["memory", "chat", "custom"] | None = None
    half_life_days: float | None = None  # of experiences, in place of the settings
    # The id of a memory, or its beginning; only memories merged into it.
    merged_into: str | None = None
    # Whether to include those, which are excluded by default.
    merged: bool = False
    expired: bool = False

    @property
    def beside_time(self) -> Filters:
        """The conditions that only memories and files can meet: all items have a time."""
        return msgspec.structs.replace(
            self, since=None, until=None, merged=False, expired=False, half_life_days=None
        )


def page(
    db: sqlite3.Connection,
    filters: Filters,
    *,
    order: Order,
    reverse: bool = False,
    limit: int,
    offset: int,
    now: float,
    scoring: Scoring,
) -> tuple[list[Memory], int]:
    """A page of the memories that pass, and their total number."""
    if filters.tier is not None or order == "score":
        # Only these two need the score of every row.
        teach_score(db, now, scoring)
    condition, arguments = where(filters, now)
    total = _total(db, filters, condition, arguments, now)
    ordered = f"{condition} ORDER BY {_by(order, reverse)} LIMIT ? OFFSET ?"
    return select(db, ordered, *arguments, limit, offset), total


def newest(db: sqlite3.Connection, filters: Filters, *, limit: int, now: float) -> list[Memory]:
    """The newest memories that pass; no other rows are read."""
    condition, arguments = where(filters, now)
    return select(db, f"{condition} ORDER BY {_by('newest')} LIMIT ?", *arguments, limit)


def living_after(
    db: sqlite3.Connection, row: int, *, now: float, limit: int
) -> list[tuple[int, Memory]]:
    """The first memories after a row, each with its row: a page of all live ones."""
    rows = db.execute(
        f"SELECT row, {', '.join(FIELDS)} FROM memories WHERE row > ? AND merged_into IS NULL"
        " AND (expires_at IS NULL OR expires_at > ?) ORDER BY row LIMIT ?",
        (row, now, limit),
    )
    return [(number, from_row(rest)) for number, *rest in rows]


def at_rows(db: sqlite3.Connection, rows: Sequence[int]) -> dict[int, Memory]:
    """The memories in these rows."""
    result = db.execute(
        f"SELECT row, {', '.join(FIELDS)} FROM memories"
        " WHERE row IN (SELECT value FROM json_each(?))",
        (to_json(rows),),
    )
    return {number: from_row(rest) for number, *rest in result}


def living_at(db: sqlite3.Connection, rows: Sequence[int], *, now: float) -> list[Memory]:
    """The live ones among the memories in these rows."""
    living = "merged_into IS NULL AND (expires_at IS NULL OR expires_at > ?)"
    here = f"row IN (SELECT value FROM json_each(?)) AND {living}"
    return select(db, here, to_json(rows), now)


def _by(order: Order, reverse: bool = False) -> str:
    """The ORDER BY clause; `reverse` reverses each column except conditions."""
    columns = list(_ORDER[order])
    for number, column in enumerate(columns if reverse else ()):
        if " = " not in column:
            rest = column.removesuffix(" DESC")
            columns[number] = rest if rest != column else f"{column} DESC"
    return ", ".join(columns)


def _total(
    db: sqlite3.Connection, filters: Filters, condition: str, arguments: list[Any], now: float
) -> int:
    """The number of memories that pass, from the counts of the tree if possible."""
    if filters != Filters(archived=filters.archived):
        return int(scalar(db, f"SELECT count(*) FROM memories WHERE {condition}", *arguments))
    warm, cold = tree_rows.totals(db)
    expired_warm, expired_cold = db.execute(
        "SELECT total(archived_at IS NULL), total(archived_at IS NOT NULL) FROM memories"
        " WHERE expires_at IS NOT NULL AND expires_at <= ? AND merged_into IS NULL",
        (now,),
    ).fetchone()
    counted = {False: warm - expired_warm, True: cold - expired_cold}
    return int(sum(counted.values()) if filters.archived is None else counted[filters.archived])


def teach_score(db: sqlite3.Connection, now: float, scoring: Scoring) -> None:
    """What SQL's `score` is measured by from now on, which a filter by tier needs."""
    known = db.scored_by if isinstance(db, DatabaseConnection) else []
    if not known:
        db.create_function("score", 4, lambda i, c, a, p: score(i, c, a, *known[-1], pinned=p))
    known[:] = [(now, scoring)]


_SCORE: Final = "score(importance, created_at, access_count, pinned)"
_MENTIONS: Final = (
    "EXISTS (SELECT 1 FROM json_each(metadata, '$.urls') WHERE instr(lower(value), lower(?)))"
)
_BELOW: Final = (
    "(category = ? OR (category >= ? AND category < ?) OR original_category = ?"
    " OR (original_category >= ? AND original_category < ?))"
)


def told(filters: Filters, column: str) -> tuple[str, Sequence[float]]:
    """The SQL condition for the time in a column, and its arguments."""
    bounds = ((">=", filters.since), ("<=", filters.until))
    used = {f"{column} {sign} ?": time for sign, time in bounds if time is not None}
    return " AND ".join(["true", *used]), [*used.values()]


def where(filters: Filters, now: float) -> tuple[str, list[Any]]:
    """The SQL condition for `filters` and its arguments. Values never become SQL text."""
    types, events, url, target = filters.types, filters.events, filters.url, filters.merged_into
    group, place, category = filters.group, filters.place, filters.category
    low, high = _BOUNDS.get(filters.tier or "", (0.0, 0.0))
    conditions: tuple[tuple[bool, str, Sequence[Any]], ...] = (
        (bool(types), f"type IN ({', '.join('?' * len(types))})", types),
        (bool(events), f"event IN ({', '.join('?' * len(events))})", events),
        # "0" is what follows "/".
        (category not in {None, "root"}, _BELOW, (category, f"{category}/", f"{category}0") * 2),
        *((True, "? IN (SELECT value FROM json_each(memories.tags))", (t,)) for t in filters.tags),
        (url is not None, _MENTIONS, (url,)),
        (filters.actor is not None, "actor = ?", (filters.actor,)),
        (group is not None, "grp = ?", (group,)),
        (filters.source is not None, "source = ?", (filters.source,)),
        # Without this SQLite cannot tell that the partial index will do.
        (bool(group) or place == "chat", "grp <> ''", ()),
        (not group and place in {"memory", "custom"}, "grp = ''", ()),
        (filters.archived is True, "archived_at IS NOT NULL", ()),
        (filters.archived is False, "archived_at IS NULL", ()),
        (filters.standing is True, "standing", ()),
        (filters.standing is False, "NOT standing", ()),
        (filters.tier is not None, f"{_SCORE} >= ? AND {_SCORE} < ?", (low, high)),
        (True, *told(filters, "created_at")),
        (filters.min_importance is not None, "importance >= ?", (filters.min_importance,)),
        (
            target is not None,
            "merged_into >= ? AND merged_into < ?",
            (target, f"{target}\U0010ffff"),
        ),
        (target is None and not filters.merged, "merged_into IS NULL", ()),
        # Calls Python: for the rows that the other conditions leave.
        (filters.outside is True, f"NOT {INSIDE}", ()),
        (filters.outside is False, INSIDE, ()),
        (not filters.expired, "(expires_at IS NULL OR expires_at > ?)", (now,)),
    )
    used = [(part, values) for applies, part, values in conditions if applies]
    condition = " AND ".join(["1", *(part for part, _ in used)])
    return condition, [value for _, values in used for value in values]
