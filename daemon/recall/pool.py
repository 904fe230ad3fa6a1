"""The candidates of a query: those with its words, those named otherwise, and their neighbours."""

from __future__ import annotations

import datetime as dt
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from ..language.dates import seconds_of
from ..memory.scoring import DAY
from .postings import Postings, admitted
from .query import Query
from .sources import MEMORIES, Candidate, Condition, Conditions, Source, rows_by_source

# The distance at which a match counts for its neighbours; the best candidates with neighbours.
REACH: Final = 4
DISTANCES: Final = tuple(k for k in range(-REACH, REACH + 1) if k)
_SURROUNDED: Final = 12
# A memory of so few texts is ranked as a whole.
_FEW: Final = 100
# What happened on a day may be told in the days after it.
_AFTER_DAY: Final = 3 * DAY
_PER_DAY: Final = 60
_PER_ACTOR: Final = 100
_THESE: Final = "SELECT value FROM json_each(?)"
_ALL: Final = "SELECT row FROM memories LIMIT ?"


class Pool(msgspec.Struct, frozen=True):
    """The candidates, and the indexes of those in conversations by group and position."""

    entries: tuple[Candidate, ...]
    places: Mapping[str, Mapping[int, int]]

    def beside(self, at: int, distance: int) -> int:
        """The entry `distance` places after entry `at` in its group; -1 if not in the pool."""
        entry = self.entries[at]
        if entry.position is None:
            return -1
        return self.places.get(entry.group, {}).get(entry.position + distance, -1)

    def around(self, at: int) -> list[tuple[int, int]]:
        """The neighbours of entry `at` within reach, without itself: distance and entry."""
        entry = self.entries[at]
        places, position = self.places.get(entry.group), entry.position
        if places is None or position is None:
            return []
        return [
            (distance, places[position + distance])
            for distance in DISTANCES
            if position + distance in places
        ]


def gather(
    db: sqlite3.Connection,
    query: Query,
    postings: Postings,
    extra: Iterable[int],
    sources: Conditions,
    *,
    limit: int,
    least: int = 1,
    neighbours: bool,
) -> Pool:
    """The best `limit` of each source by the weight of their words that pass its condition.

    `limit` is that of memories: other sources have it times their depth, but at least `least`.
    `extra` are keys that something other than a word names, such as a category. Memories that
    replace candidates are included, and with `neighbours` the neighbours of the best; these may
    have no such word. `query` is that of the postings: what it excludes is no candidate.
    """
    weighed = _weighed(postings)
    # By weight; among equals newest first.
    heaviest = rows_by_source(key for _, keys in weighed for key in sorted(keys, reverse=True))
    extra = set(extra)
    result: dict[int, Candidate] = {}
    for source, condition in sources:
        rows = heaviest.get(source.name, []) if source.name in postings.texts else []
        most = max(least, int(limit * source.depth))
        if (
            source is MEMORIES
            and (weighed or query.wants)
            and postings.texts.get(source.name, 0) <= _FEW
        ):
            # So few are ranked by words of grammar, too, and by what the question wants.
            every = source.load(db, _ALL, _FEW, condition)
            allowed = set(admitted(db, query, [entry.row for entry in every]))
            entries = {entry.key: entry for entry in every if entry.key in allowed}
        else:
            entries = _passing(db, source, iter(rows), condition, most)
        if named := source.rows(extra - entries.keys()):
            for candidate in source.load(db, _THESE, named, condition):
                entries[candidate.key] = candidate
        _add_newer(db, query, source, entries, condition)
        if neighbours and source.beside and entries:
            best = [
                entries[key] for row in rows[:_SURROUNDED] if (key := source.key(row)) in entries
            ]
            if stretches := list(_stretches(best)):
                for near in source.load_beside(db, stretches, condition):
                    entries.setdefault(near.key, near)
        result |= entries
    together = tuple(result.values())
    return Pool(together, places_of(together))


def with_memories(
    db: sqlite3.Connection, pool: Pool, keys: Iterable[int], sources: Conditions
) -> Pool:
    """The pool with further memories, those that pass."""
    rows = MEMORIES.rows(set(keys) - {entry.key for entry in pool.entries})
    if not rows:
        return pool
    more = [
        entry
        for source, condition in sources
        if source is MEMORIES
        for entry in MEMORIES.load(db, _THESE, rows, condition)
    ]
    together = (*pool.entries, *more)
    return Pool(together, places_of(together))


def _weighed(postings: Postings) -> list[tuple[float, Iterable[int]]]:
    """The keys that the words name, grouped by the sum of their weights, heaviest first.

    Most keys have only one word and need no sum.
    """
    weighed = [(posting.weight, posting.keys) for posting in postings.words]
    for posting in postings.words:
        better = posting.keys
        for other in posting.also:
            weighed.append((other.weight, other.keys - better))
            better |= other.keys
    weighed += ((math.inf, postings.phrased), (0.0, postings.naming))
    seen: set[int] = set()
    several: set[int] = set()
    for _, keys in weighed:
        several |= seen & keys
        seen |= keys
    if not seen:
        # One group for each, which keeps their order.
        return [(0.0, (key,)) for key in postings.newest]
    sums = dict.fromkeys(several, 0.0)
    by_weight: dict[float, list[int]] = {}
    for weight, keys in weighed:
        for key in keys & several:
            sums[key] += weight
        by_weight.setdefault(weight, []).extend(keys - several)
    for key, total in sums.items():
        by_weight.setdefault(total, []).append(key)
    return sorted(by_weight.items(), reverse=True)


def _passing(
    db: sqlite3.Connection, source: Source, rows: Iterator[int], condition: Condition, limit: int
) -> dict[int, Candidate]:
    """Load the first `limit` of `rows` that pass, in steps, since usually nearly all pass."""
    result: dict[int, Candidate] = {}
    step = limit
    while len(result) < limit and (part := [*islice(rows, step)]):
        loaded = {
            candidate.row: candidate for candidate in source.load(db, _THESE, part, condition)
        }
        result.update((loaded[row].key, loaded[row]) for row in part if row in loaded)
        step *= 4
    return dict(islice(result.items(), limit))


def _add_newer(
    db: sqlite3.Connection,
    query: Query,
    source: Source,
    entries: dict[int, Candidate],
    condition: Condition,
) -> None:
    """Add the memories that replace candidates, and those that replace these, if admitted."""
    known = {entry.row for entry in entries.values()}
    while newer := {row for item in entries.values() if (row := item.superseded_by)} - known:
        known |= newer
        rows = source.rows(admitted(db, query, sorted(newer)))
        for candidate in source.load(db, _THESE, rows, condition):
            entries[candidate.key] = candidate


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


def told_then(db: sqlite3.Connection, query: Query, now: float, local: dt.tzinfo) -> list[int]:
    """The newest memory rows told at the times in the past that the query names.

    Of a span longer than two days only if the query asks for nothing else.
    """
    rows: list[int] = []
    for date in query.dates:
        for period in date.periods:
            start, end = seconds_of(period, local)
            if start >= now or (end - start > 2 * DAY and not query.of_time):
                continue
            after = 0.0 if query.of_time else _AFTER_DAY
            result = db.execute(
                "SELECT row FROM memories WHERE created_at >= ? AND created_at < ?"
                " ORDER BY created_at DESC LIMIT ?",
                (start, end + after, _PER_DAY),
            )
            rows += (row for (row,) in result)
    return rows[: 4 * _PER_DAY]


def of_actor(db: sqlite3.Connection, query: Query) -> list[int]:
    """The newest memory rows of the person that the query names, if it asks for nothing else."""
    if query.topics or not query.people:
        return []
    result = db.execute(
        # Without the second condition SQLite does not use the partial index.
        "SELECT row FROM memories WHERE actor = ? AND actor <> '' ORDER BY row DESC"
        f" LIMIT {_PER_ACTOR}",
        query.people[:1],
    )
    return [row for (row,) in result]


def of_categories(
    db: sqlite3.Connection, paths: Iterable[str], passing: Condition, limit: int
) -> list[int]:
    """The most important memory rows of each category that pass.

    One look-up a category, without those below it: the index has them in this order.
    """
    condition, arguments = passing
    return [
        row
        for path in paths
        for (row,) in db.execute(
            f"SELECT row FROM memories WHERE category = ? AND {condition}"
            " ORDER BY importance DESC, created_at DESC LIMIT ?",
            (path, *arguments, limit),
        )
    ]


def places_of(entries: Sequence[Candidate]) -> dict[str, dict[int, int]]:
    """The indexes of entries by group and position."""
    places: dict[str, dict[int, int]] = {}
    for at, entry in enumerate(entries):
        if entry.group and entry.position is not None:
            places.setdefault(entry.group, {})[entry.position] = at
    return places
