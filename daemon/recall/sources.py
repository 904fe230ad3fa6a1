"""The sources of recall: one entry of `SOURCES` for each kind of item.

The key of a candidate is unique among all sources: its row in the table of its source, with the
number of that source in the lowest bits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any, Final, TypeAlias

import msgspec

from ..language.speech import UNRECORDED
from ..store.database.record_kind import RecordKind
from ..store.records import (
    agent_entries,
    entities,
    entity_rows,
    experiences,
    indexed_files,
    key_values,
    memory_rows,
    selecting,
    tree_rows,
)
from ..store.records.selecting import Filters

# An SQL condition and its arguments.
Condition: TypeAlias = tuple[str, Sequence[Any]]
Passes: TypeAlias = Callable[[Filters, float], Condition | None]
# Excludes the marks of messages that were not to be kept.
TELLING: Final = f"text <> '{UNRECORDED}'"
_BITS: Final = 4
# The characters read of a text's terms.
_READ: Final = 16_000
_NUMBER: Final = (1 << _BITS) - 1
_STRETCHES: Final = (
    "(SELECT value ->> 0 AS part, value ->> 1 AS since, value ->> 2 AS until FROM json_each(?))"
)


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """The fields of one item that ranking uses.

    Attributes:
        key: unique among all sources.
        terms: the terms of its text in order, separated by blanks.
        codes: the codes of the concepts and dates in it.
        group, position: the conversation or file that it is part of, and its place there. No two
            sources share a group.
        is_turn: whether it is a turn of a conversation, not a statement by itself.
        superseded_by: the row of the newer memory that replaces it.
        is_question: whether it is a turn that ends with a question, or an episode with one.
    """

    key: int
    created_at: float
    updated_at: float
    terms: str = ""
    codes: str = ""
    group: str = ""
    position: int | None = None
    is_turn: bool = False
    actor: str = ""
    category: str = ""
    last_accessed_at: float | None = None
    access_count: int = 0
    importance: float = 0.5
    superseded_by: int | None = None
    is_question: bool = False

    @property
    def source(self) -> Source:
        """The source that it is from."""
        return SOURCES[self.key & _NUMBER]

    @property
    def row(self) -> int:
        """Its row in the table of its source."""
        return self.key >> _BITS


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of item that recall can find.

    Attributes:
        name: singular noun of its items.
        table: its table; the column `row` is also the row of the full-text index.
        index: its full-text index.
        columns: SQL of the fields of `Candidate` after its key, in their order; the terms of an
            item are in the table `indexed`.
        joined: SQL of a further table that they need, one row for each item.
        text: SQL of the text of an item.
        beside: the condition for the items of a `part`, which is a group, from a position `since`
            `until` another; "" if items have no neighbours.
        passes: the condition for filters at a time; None if no item can pass.
        show: the items in some rows, by row; items with neighbours have an `id`.
        count: the number of items.
        encoded: the condition for the items whose texts have vectors; "": none has.
        weight: the worth of an equal match, as a fraction of a memory's.
        depth: the number of candidates to rank, as a fraction of that of memories.
    """

    name: str
    table: str
    index: str
    columns: str
    text: str
    joined: str = ""
    beside: str = ""
    passes: Passes
    show: Callable[[sqlite3.Connection, Sequence[int]], Mapping[int, Any]]
    count: Callable[[sqlite3.Connection], int]
    encoded: str = ""
    weight: float = 1.0
    depth: float = 1.0

    @property
    def number(self) -> int:
        """Its place in `SOURCES`."""
        return _NUMBERS[self.name]

    def key(self, row: int) -> int:
        """The key of a candidate in this row."""
        return row << _BITS | self.number

    def key_of(self, column: str) -> str:
        """SQL of the key of a candidate whose row is in a column."""
        return f"{column} << {_BITS} | {self.number}"

    def has_key(self, column: str) -> str:
        """SQL: whether the key in a column belongs to this source."""
        return f"{column} & {_NUMBER} = {self.number}"

    def keys(self, rows: Iterable[int]) -> list[int]:
        """The keys of candidates in these rows."""
        number = self.number
        return [row << _BITS | number for row in rows]

    def has(self, key: int) -> bool:
        """Whether a key belongs to this source."""
        return key & _NUMBER == self.number

    def rows(self, keys: Iterable[int]) -> list[int]:
        """The rows of the keys that belong to this source."""
        number = self.number
        return [key >> _BITS for key in keys if key & _NUMBER == number]

    def count_passing(self, db: sqlite3.Connection, condition: Condition) -> int:
        """The number of items that pass."""
        query = f"SELECT count(*) FROM {self.table} WHERE {condition[0]}"
        return int(db.execute(query, condition[1]).fetchone()[0])

    def load(
        self, db: sqlite3.Connection, rows: str, argument: object, condition: Condition
    ) -> list[Candidate]:
        """The candidates that pass, in the rows that SQL selects from one JSON argument."""
        return self._load(db, self.table, f"{self.table}.row IN ({rows})", argument, condition)

    def load_beside(
        self,
        db: sqlite3.Connection,
        stretches: Sequence[tuple[str, int, int]],
        condition: Condition,
    ) -> list[Candidate]:
        """The candidates that pass, in stretches of groups, by their rows."""
        table = f"{_STRETCHES} CROSS JOIN {self.table}"
        beside = self._load(db, table, self.beside, stretches, condition)
        return sorted(beside, key=lambda candidate: candidate.key)

    def _load(
        self,
        db: sqlite3.Connection,
        table: str,
        where: str,
        argument: object,
        condition: Condition,
    ) -> list[Candidate]:
        row = f"{self.table}.row"
        result = db.execute(
            f"SELECT {self.key_of(row)}, {self.columns} FROM {table} {self.joined}"
            f" LEFT JOIN {self.index}_terms AS indexed ON indexed.row = {row}"
            f" WHERE {where} AND {condition[0]}",
            (msgspec.json.encode(argument).decode(), *condition[1]),
        )
        return list(starmap(Candidate, result))


def _columns(**sql: str) -> str:
    """The columns of a candidate up to the last that `sql` names; others have their defaults."""
    default = {
        "terms": f"coalesce(substr(indexed.terms, 1, {_READ}), '')",
        "codes": "coalesce(indexed.codes, '')",
        "group": "''",
        "position": "NULL",
        "is_turn": "0",
        "actor": "''",
        "category": "''",
        "last_accessed_at": "NULL",
        "access_count": "0",
        "importance": "0.5",
        "superseded_by": "NULL",
        "is_question": "0",
    }
    names = Candidate.__struct_fields__[1:]
    last = max(map(names.index, ("codes", *sql)))
    return ", ".join(sql.get(name) or default.get(name) or name for name in names[: last + 1])


def _passes_as_memory(filters: Filters, now: float) -> Condition | None:
    # A filter of file paths alone selects files, not memories.
    if (filters.paths and filters.category is None) or filters.place == "custom":
        return None
    return telling(filters, now)


def telling(filters: Filters, now: float) -> Condition:
    """The condition for memories that say something."""
    condition, arguments = selecting.where(filters, now)
    return f"{condition} AND {TELLING}", arguments


def _passes(
    condition: str = "true",
    arguments: Callable[[float, Filters], Sequence[float | None]] = lambda *_: (),
) -> Passes:
    """For sources without any field but a time that a filter could match."""

    def passes(filters: Filters, now: float) -> Condition | None:
        if filters.beside_time != Filters():
            return None
        told, bounds = selecting.told(filters, "created_at")
        return f"{condition} AND {told}", (*arguments(now, filters), *bounds)

    return passes


_BY_TIME: Final = _passes()
MEMORIES: Final = Source(
    name="memory",
    table="memories",
    index=memory_rows.INDEX,
    columns=_columns(
        is_turn="grp <> '' AND position IS NOT NULL",
        group="grp",
        position="position",
        actor="actor",
        category="category",
        last_accessed_at="last_accessed_at",
        access_count="access_count",
        importance="importance",
        superseded_by=(
            "(SELECT newer.row FROM memories AS newer WHERE newer.id = memories.superseded_by)"
        ),
        is_question="position IS NOT NULL AND substr(rtrim(text), -1) IN ('?', '？')",
    ),
    text="text",
    beside="grp = part AND grp <> '' AND position BETWEEN since AND until",
    passes=_passes_as_memory,
    show=selecting.at_rows,
    count=tree_rows.total,
    encoded="merged_into IS NULL",
)


def _records(kind: RecordKind[Any], columns: str, passes: Passes = _BY_TIME, **more: Any) -> Source:
    """The source of the records of a kind with a projection, each with a vector."""
    projection = kind.projection
    assert projection is not None
    return Source(
        name=kind.kind.name,
        table=projection.table,
        index=projection.index,
        columns=columns,
        text=kind.text_of_row(),
        passes=passes,
        show=kind.at_rows,
        count=kind.count,
        encoded="true",
        **more,
    )


PAIRS: Final = _records(
    key_values.PAIRS,
    _columns(),
    # Tiny Claw's weight of a pair.
    weight=0.5,
    # A pair has no signals but its words, so the first by words are the best.
    depth=0.25,
)


def _passes_below(filters: Filters, _: float) -> Condition | None:
    """Files have no category: a filter by category without paths selects no files."""
    told, bounds = selecting.told(filters, "(SELECT mtime FROM files WHERE id = file) / 1e9")
    filters = filters.beside_time
    if filters == Filters(place=filters.place):
        return None if filters.place == "chat" else (f"{_PLACES[filters.place]} AND {told}", bounds)
    if not filters.paths or msgspec.structs.replace(filters, category=None, paths=()) != Filters():
        return None
    below = (
        "file IN (SELECT files.id FROM files, json_each(?) AS one WHERE files.path = one.value"
        " OR substr(files.path, 1, length(one.value) + 1) = one.value || '/')"
    )
    paths = msgspec.json.encode([path.rstrip("/") for path in filters.paths]).decode()
    return f"{below} AND {told}", (paths, *bounds)


# Other files than the agent's own have whole paths.
_OWN_FILES: Final = "(SELECT substr(path, 1, 1) <> '/' FROM files WHERE id = file)"
_PLACES: Final[Mapping[str | None, str]] = {
    None: "true",
    "memory": _OWN_FILES,
    "custom": f"NOT {_OWN_FILES}",
}
CHUNKS: Final = Source(
    name="file",
    table="chunks",
    index=indexed_files.INDEX,
    columns=_columns(
        created_at="files.mtime / 1e9",
        updated_at="files.mtime / 1e9",
        # No group of a memory begins with this character.
        group="char(1) || file",
        position="position",
    ),
    text="heading || ' ' || text",
    joined="CROSS JOIN files ON files.id = file",
    beside=(
        "file = CAST(substr(part, 2) AS INTEGER) AND substr(part, 1, 1) = char(1)"
        " AND position BETWEEN since AND until"
    ),
    passes=_passes_below,
    show=indexed_files.at_rows,
    count=indexed_files.chunk_count,
    encoded="true",
    depth=0.5,
)


EXPERIENCES: Final = _records(
    experiences.EXPERIENCES,
    _columns(
        updated_at="last_used_at",
        last_accessed_at="last_used_at",
        access_count="use_count - 1",
        importance="success_score",
    ),
    _passes(
        experiences.NOT_FADED,
        lambda now, filters: experiences.not_faded(now, filters.half_life_days),
    ),
    depth=0.25,
)


def _own(name: str, plural: str, encoded: str = "", **columns: str) -> Source:
    index = agent_entries.INDEXES[plural]
    return Source(
        name=name,
        table=plural,
        index=index,
        columns=_columns(updated_at="created_at", **columns),
        text=agent_entries.TEXT[plural],
        passes=_BY_TIME,
        show=agent_entries.shown_by(plural),
        count=partial(agent_entries.count, name=plural),
        encoded=encoded,
        # Few of them are shown among the memories.
        depth=0.05,
    )


REFLECTIONS: Final = _own("reflection", "reflections")
EPISODES: Final = _own(
    "episode",
    "episodes",
    encoded="true",
    # The rules' summary begins with what was asked.
    is_question="data ->> '$.summary' GLOB '* asked: *[?？]*'",
)
SKILLS: Final = _own("skill", "skills")
OWN: Final = (REFLECTIONS, EPISODES, SKILLS)


ENTITIES: Final = Source(
    name="entity",
    table="entities",
    index=entity_rows.INDEX,
    columns=_columns(access_count="mentions"),
    text="text",
    # A name and its type alone (`Entity.summary`) answer nothing.
    passes=_passes(
        "(mentions > 1 OR updated_at > ?) AND (text GLOB '*): *' OR text GLOB '*, also *')",
        lambda now, _: (now - entities.FADES_AFTER,),
    ),
    show=entity_rows.at_rows,
    count=entity_rows.count,
    # The memories that mention an entity say more than its name.
    weight=0.5,
    depth=0.05,
)
SOURCES: Final = (MEMORIES, PAIRS, *OWN, CHUNKS, EXPERIENCES, ENTITIES)
# Sources to search, each with the condition that its items must pass.
Conditions: TypeAlias = Sequence[tuple[Source, Condition]]
_NUMBERS: Final = {source.name: number for number, source in enumerate(SOURCES)}


def rows_by_source(keys: Iterable[int]) -> dict[str, list[int]]:
    """The rows of keys in their order, by the name of their source."""
    rows: list[list[int]] = [[] for _ in SOURCES]
    for key in keys:
        rows[key & _NUMBER].append(key >> _BITS)
    return {source.name: of_source for source, of_source in zip(SOURCES, rows, strict=True)}
