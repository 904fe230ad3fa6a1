"""The memories that a question may mean: those with its words, and those around the best."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from ..store.selecting import Filters, where
from .postings import Postings

# How far a match lends to its neighbours, and around how many of the best they are looked up.
REACH: Final = 4
_DISTANCES: Final = tuple(k for k in range(-REACH, REACH + 1) if k)
_SURROUNDED: Final = 40
# What of a long text is looked at; its words are all in the index.
_BEGINNING: Final = 2000
_ENDING: Final = 200
_KIN_SHARE: Final = 0.3

_COLUMNS: Final = (
    "row, grp, position, actor, category, created_at, updated_at, last_accessed_at, access_count,"
    " importance, superseded_by IS NOT NULL, length(text)"
)
_EXCERPT: Final = (
    f"CASE WHEN length(text) <= {_BEGINNING + _ENDING} THEN text"
    f" ELSE substr(text, 1, {_BEGINNING}) || substr(text, -{_ENDING}) END"
)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What ranking needs to know of one memory; `length` is that of its text in characters."""

    row: int
    group: str
    position: int | None
    actor: str
    category: str
    created_at: float
    updated_at: float
    last_accessed_at: float | None
    access_count: int
    importance: float
    superseded: bool
    length: int


class Pool(msgspec.Struct, frozen=True):
    """The candidates, and where in their conversations they stand: group and position."""

    entries: tuple[Entry, ...]
    places: Mapping[tuple[str, int], int]

    def beside(self, at: int, distance: int) -> int:
        """The entry so many places behind entry `at` in its group; -1 if none is in the pool."""
        entry = self.entries[at]
        if entry.position is None:
            return -1
        return self.places.get((entry.group, entry.position + distance), -1)

    def around(self, at: int) -> list[tuple[int, int]]:
        """The neighbours of entry `at` within reach, itself left out: distance and entry."""
        entry = self.entries[at]
        if entry.position is None or not entry.group:
            return []
        group, position, places = entry.group, entry.position, self.places
        return [
            (distance, near)
            for distance in _DISTANCES
            if (near := places.get((group, position + distance), -1)) >= 0
        ]


def gather(
    db: sqlite3.Connection,
    postings: Postings,
    extra: Iterable[int],
    filters: Filters,
    *,
    now: float,
    limit: int,
    neighbours: bool,
) -> Pool:
    """The best `limit` rows by the weight of their words that pass the filters.

    Args:
        db: a reader.
        postings: of the query's words.
        extra: rows that something else than the words has named, such as a category.
        filters: which memories are meant.
        now: the time.
        limit: how many rows the words may name.
        neighbours: whether those next to the best take part though they have none of the words.
    """
    ordered = _by_weight(postings)
    entries = _passing(db, ordered, filters, now, limit)
    for named in _load(db, set(extra) - entries.keys(), filters, now):
        entries[named.row] = named
    if neighbours:
        best = [entries[row] for row in ordered[:_SURROUNDED] if row in entries]
        for near in _next_to(db, best, filters, now):
            entries.setdefault(near.row, near)
    found = tuple(entries.values())
    return Pool(found, places_of(found))


def _by_weight(postings: Postings) -> list[int]:
    weights: dict[int, float] = dict.fromkeys(postings.newest, 0.0)
    for row in postings.phrased:
        weights[row] = postings.unmet
    for posting in postings.rare:
        for row in posting.rows:
            weights[row] = weights.get(row, 0.0) + posting.weight
        for row in posting.kin:
            weights[row] = weights.get(row, 0.0) + _KIN_SHARE * posting.kin_weight
    return sorted(weights, key=lambda row: (-weights[row], -row))


def _passing(
    db: sqlite3.Connection, rows: Sequence[int], filters: Filters, now: float, limit: int
) -> dict[int, Entry]:
    """Load the first `limit` of `rows` that pass, in steps, for most often nearly all do."""
    found: dict[int, Entry] = {}
    at, step = 0, limit
    while at < len(rows) and len(found) < limit:
        part = rows[at : at + step]
        loaded = {entry.row: entry for entry in _load(db, part, filters, now)}
        found.update((row, loaded[row]) for row in part if row in loaded)
        at, step = at + step, step * 4
    return dict(list(found.items())[:limit])


def _load(db: sqlite3.Connection, rows: Iterable[int], filters: Filters, now: float) -> list[Entry]:
    condition, arguments = where(filters, now)
    found = db.execute(
        f"SELECT {_COLUMNS} FROM memories"
        f" WHERE row IN (SELECT value FROM json_each(?)) AND {condition}",
        (msgspec.json.encode(list(rows)).decode(), *arguments),
    )
    return [_entry(row) for row in found]


def _next_to(
    db: sqlite3.Connection, best: Sequence[Entry], filters: Filters, now: float
) -> Iterator[Entry]:
    condition, arguments = where(filters, now)
    for group, first, last in _stretches(best):
        rows = db.execute(
            f"SELECT {_COLUMNS} FROM memories WHERE grp = ? AND grp <> ''"
            f" AND position BETWEEN ? AND ? AND {condition}",
            (group, first, last, *arguments),
        )
        yield from map(_entry, rows)


def _stretches(best: Sequence[Entry]) -> Iterator[tuple[str, int, int]]:
    """The stretches of conversations within reach of `best`, joined where they overlap."""
    places: dict[str, list[int]] = {}
    for entry in best:
        if entry.group and entry.position is not None:
            places.setdefault(entry.group, []).append(entry.position)
    for group, positions in places.items():
        positions.sort()
        first = last = positions[0]
        for position in positions[1:]:
            if position - last > 2 * REACH:
                yield group, first - REACH, last + REACH
                first = position
            last = position
        yield group, first - REACH, last + REACH


def texts(db: sqlite3.Connection, rows: Iterable[int]) -> dict[int, str]:
    """The texts of memories by row; of a long one its beginning and its end."""
    found = db.execute(
        f"SELECT row, {_EXCERPT} FROM memories WHERE row IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(list(rows)).decode(),),
    )
    return dict(found.fetchall())


def places_of(entries: Sequence[Entry]) -> dict[tuple[str, int], int]:
    """Where in their conversations entries stand: group and position."""
    return {
        (entry.group, entry.position): at
        for at, entry in enumerate(entries)
        if entry.group and entry.position is not None
    }


def _entry(row: tuple[Any, ...]) -> Entry:
    return Entry(*row)
