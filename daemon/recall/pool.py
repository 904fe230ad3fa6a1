"""What a question may mean: the candidates with its words, and those around the best."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

import msgspec

from ..store.selecting import Filters
from .postings import Postings
from .sources import MEMORIES, SOURCES, Candidate, Condition, Source

# How far a match lends to its neighbours, and around how many of the best they are looked up.
REACH: Final = 4
DISTANCES: Final = tuple(k for k in range(-REACH, REACH + 1) if k)
_SURROUNDED: Final = 25
# What of a long text is looked at; its words are all in the index.
_BEGINNING: Final = 2000
_ENDING: Final = 200
_WEIGHT_AND_KEY: Final = itemgetter(1, 0)
_THESE: Final = "SELECT value FROM json_each(?)"


class Pool(msgspec.Struct, frozen=True):
    """The candidates, and where in their conversations they stand: group and position."""

    entries: tuple[Candidate, ...]
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
            for distance in DISTANCES
            if (near := places.get((group, position + distance), -1)) >= 0
        ]


def gather(  # noqa: PLR0913 - what is searched, and how wide
    db: sqlite3.Connection,
    postings: Postings,
    extra: Iterable[int],
    filters: Filters,
    sources: Sequence[Source] = (MEMORIES,),
    *,
    now: float,
    limit: int,
    least: int = 1,
    neighbours: bool,
) -> Pool:
    """The best `limit` of each source by the weight of their words that pass the filters.

    Args:
        db: a reader.
        postings: of the query's words.
        extra: keys that something else than the words has named, such as a category.
        filters: which are meant.
        sources: of what.
        now: the time.
        limit: how many memories the words may name, and of other sources by their depth.
        least: how many of any source.
        neighbours: whether those next to the best take part though they have none of the words.
    """
    ordered = _by_weight(postings)
    extra = set(extra)
    found: dict[int, Candidate] = {}
    for source in sources:
        condition = source.passes(filters, now)
        if condition is None:
            continue
        rows = source.rows(ordered)
        entries = _passing(db, source, rows, condition, max(least, int(limit * source.depth)))
        if named := source.rows(extra - entries.keys()):
            for one in source.load(db, _THESE, named, condition):
                entries[one.key] = one
        if neighbours and source.beside:
            best = [
                entries[key] for row in rows[:_SURROUNDED] if (key := source.key(row)) in entries
            ]
            if stretches := list(_stretches(best)):
                for near in source.load(db, source.beside, stretches, condition):
                    entries.setdefault(near.key, near)
        found |= entries
    together = tuple(found.values())
    return Pool(together, places_of(together))


def _by_weight(postings: Postings) -> list[int]:
    """What the words name, the heaviest first; of equals, the newer."""
    weights: dict[int, float] = dict.fromkeys(postings.phrased, math.inf)
    weights |= dict.fromkeys(postings.naming, 0.0)
    for posting in postings.words:
        for key in posting.keys:
            weights[key] = weights.get(key, 0.0) + posting.weight
        for key in posting.kin:
            weights[key] = weights.get(key, 0.0) + posting.kin_weight
    heaviest = sorted(weights.items(), key=_WEIGHT_AND_KEY, reverse=True)
    return [key for key, _ in heaviest] or [*postings.newest]


def _passing(
    db: sqlite3.Connection, source: Source, rows: Sequence[int], condition: Condition, limit: int
) -> dict[int, Candidate]:
    """Load the first `limit` of `rows` that pass, in steps, for most often nearly all do."""
    found: dict[int, Candidate] = {}
    at, step = 0, limit
    while at < len(rows) and len(found) < limit:
        part = rows[at : at + step]
        loaded = {one.row: one for one in source.load(db, _THESE, part, condition)}
        found.update((loaded[row].key, loaded[row]) for row in part if row in loaded)
        at, step = at + step, step * 4
    return dict(list(found.items())[:limit])


def _stretches(best: Sequence[Candidate]) -> Iterator[tuple[str, int, int]]:
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


def texts(db: sqlite3.Connection, keys: Iterable[int]) -> dict[int, str]:
    """The texts of candidates by key; of a long one its beginning and its end."""
    found: dict[int, str] = {}
    keys = list(keys)
    for source in SOURCES:
        if rows := source.rows(keys):
            read = db.execute(
                f"SELECT row, CASE WHEN length(text) <= {_BEGINNING + _ENDING} THEN text"
                f" ELSE substr(text, 1, {_BEGINNING}) || substr(text, -{_ENDING}) END"
                f" FROM (SELECT row, {source.text} AS text FROM {source.table}"
                f" WHERE row IN ({_THESE}))",
                (msgspec.json.encode(rows).decode(),),
            )
            found |= {source.key(row): text for row, text in read}
    return found


def places_of(entries: Sequence[Candidate]) -> dict[tuple[str, int], int]:
    """Where in their conversations entries stand: group and position."""
    return {
        (entry.group, entry.position): at
        for at, entry in enumerate(entries)
        if entry.group and entry.position is not None
    }
