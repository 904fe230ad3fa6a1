"""The SQL that moves rows. All rows of a batch travel as one JSON argument, whatever their number.

Every statement may be run twice with the same effect as once, since a batch that failed may have
been applied: a row gives way only to a higher version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from .remote import Statement, Value
from .rows import STATEMENT, Row, View, digest
from .values import integer, number, whole, whole_in

# A version that is none is lower than every other, so that a sound row takes its place.
_SAID_AT: Final = f"({whole_in('cold_memories.clock', -1)}, coalesce(cold_memories.device, ''))"
_PUT_AT: Final = (
    f"({whole_in('cold_memories.place_clock', -1)}, coalesce(cold_memories.place_device, ''))"
)
# The version of the row which comes, and that in the table.
_NEWER: Final = f"(excluded.clock, excluded.device) > {_SAID_AT}"
_MOVED: Final = f"(excluded.place_clock, excluded.place_device) > {_PUT_AT}"
_SAID: Final = (
    "text",
    "importance",
    "created_at",
    "access_count",
    "record",
    "clock",
    "device",
    "digest",
)
_PUT: Final = ("category", "place", "place_clock", "place_device")
_SEQ: Final = "(SELECT seq FROM replica_clock WHERE agent_id = ?1)"


def _field(name: str) -> str:
    return f"json_extract(j.value, '$.{name}')"


def _chosen(columns: Iterable[str], condition: str) -> str:
    return ", ".join(
        f"{name} = CASE WHEN {condition} THEN excluded.{name} ELSE cold_memories.{name} END"
        for name in columns
    )


# An id is unique in EvoClaw's table among all agents, and in ours within one: where another agent
# has it already, the agent's name goes before it, and stays there.
_REMOTE_ID: Final = f"""
    CASE
        WHEN EXISTS (SELECT 1 FROM cold_memories WHERE id = ?1 || ':' || {_field("id")})
            THEN ?1 || ':' || {_field("id")}
        WHEN EXISTS (SELECT 1 FROM cold_memories WHERE id = {_field("id")} AND agent_id <> ?1)
            THEN ?1 || ':' || {_field("id")}
        ELSE {_field("id")}
    END
"""
_PUT_STATEMENTS: Final = f"""
    INSERT INTO cold_memories (id, agent_id, {", ".join((*_SAID, *_PUT))}, seq)
    SELECT {_REMOTE_ID}, ?1, {", ".join(_field(name) for name in (*_SAID, *_PUT))}, {_SEQ}
    FROM json_each(?2) AS j
    WHERE NOT EXISTS (
        SELECT 1 FROM objects AS o
        WHERE o.agent_id = ?1 AND o.kind = '{STATEMENT}' AND o.id = {_field("id")}
            AND o.data IS NULL
            AND ({whole_in("o.clock", -1)}, o.device) >= ({_field("clock")}, {_field("device")})
    )
    ON CONFLICT (id) DO UPDATE SET
        {_chosen(_SAID, _NEWER)}, {_chosen(_PUT, _MOVED)}, seq = excluded.seq
    WHERE {_NEWER} OR {_MOVED}
"""
# A deletion that stands, while another tool has written the statement again, over one of ours
# perhaps: once more in the order, it shows every device that the statement goes again.
_OUTDONE: Final = f"""
    (excluded.kind = '{STATEMENT}' AND excluded.data IS NULL
        AND (excluded.clock, excluded.device) = (objects.clock, objects.device)
        AND EXISTS (
            SELECT 1 FROM cold_memories AS c WHERE c.agent_id = ?1 AND c.clock IS NULL
                AND c.id IN (excluded.id, ?1 || ':' || excluded.id)
        ))
"""
_PUT_OBJECTS: Final = f"""
    INSERT INTO objects (agent_id, kind, id, data, clock, device, digest, seq)
    SELECT ?1, {", ".join(map(_field, ("kind", "id", "data", "clock", "device", "digest")))},
        {_SEQ}
    FROM json_each(?2) AS j WHERE true
    ON CONFLICT (agent_id, kind, id) DO UPDATE SET data = excluded.data, clock = excluded.clock,
        device = excluded.device, digest = excluded.digest, seq = excluded.seq
    WHERE (excluded.clock, excluded.device) > ({whole_in("objects.clock", -1)}, objects.device)
        OR {_OUTDONE}
"""
_REMOVE_STATEMENTS: Final = f"""
    DELETE FROM cold_memories WHERE id IN (
        SELECT c.id FROM json_each(?2) AS j JOIN cold_memories AS c
            ON c.id IN ({_field("id")}, ?1 || ':' || {_field("id")}) AND c.agent_id = ?1
        WHERE ({whole_in("c.clock", -1)}, coalesce(c.device, ''))
            <= ({_field("clock")}, {_field("device")})
    )
"""
_LAST: Final = (
    "coalesce((SELECT seq FROM {table} WHERE agent_id = ?1 AND typeof(seq) = 'integer'"
    " ORDER BY seq DESC LIMIT 1), 0)"
)
# Where the order itself was damaged, it goes on behind every row that it has.
_ADVANCE: Final = f"""
    INSERT INTO replica_clock (agent_id, seq, epoch) VALUES (?1, 1, lower(hex(randomblob(8))))
    ON CONFLICT (agent_id) DO UPDATE SET seq = 1 + CASE WHEN typeof(seq) = 'integer' THEN seq
        ELSE max({_LAST.format(table="cold_memories")}, {_LAST.format(table="objects")}) END
"""
# A statement that this device no longer has in full is moved all the same.
_MOVE_STATEMENTS: Final = f"""
    UPDATE cold_memories SET category = m.category, place = m.place,
        place_clock = m.place_clock, place_device = m.place_device, seq = {_SEQ}
    FROM (
        SELECT {", ".join(f"{_field(name)} AS {name}" for name in ("id", *_PUT))}
        FROM json_each(?2) AS j
    ) AS m
    WHERE cold_memories.agent_id = ?1 AND cold_memories.id IN (m.id, ?1 || ':' || m.id)
        AND (m.place_clock, m.place_device) > {_PUT_AT}
"""
STATEMENT_COLUMNS: Final = (
    "id",
    "text",
    "category",
    "importance",
    "created_at",
    "access_count",
    "record",
    "clock",
    "device",
    "place",
    "place_clock",
    "place_device",
    "digest",
    "seq",
)
_COLUMNS: Final = ", ".join(STATEMENT_COLUMNS)
# What can be named and told from all others, and what has a place in the order.
_NAMED: Final = {"cold_memories": "typeof(id) = 'text'"}
_NAMED["objects"] = "typeof(kind) = 'text' AND typeof(id) = 'text'"
_PLACED: Final = "typeof(seq) = 'integer'"
# What `object_of` cannot read, whether or not it was deleted.
UNSOUND_OBJECT: Final = f"NOT ({_NAMED['objects']} AND {_PLACED} AND typeof(clock) = 'integer')"
# -1 where another tool wrote it, or wrote over it.
CRITICAL_VERSION: Final = (
    "CASE WHEN typeof(version) = 'integer' AND version > 0 THEN version ELSE -1 END"
)
# Of rows whose place is none, those that an index finds: a text is behind all integers.
DISPLACED: Final = "seq >= ''"


def advance(agent: str) -> Statement:
    """Take the next place in the agent's order; first in a batch, it also takes the write lock."""
    return Statement(_ADVANCE, (agent,))


def put(agent: str, rows: Sequence[Row]) -> list[Statement]:
    """Write rows, deletions included, where they are newer than what is there."""
    moved = [_moved(row) for row in rows if row.moved]
    rows = [row for row in rows if not row.moved]
    statements = [_said(row) for row in rows if row.kind == STATEMENT and not row.deleted]
    others = [row for row in rows if row.kind != STATEMENT or row.deleted]
    removed = [_object(row) for row in others if row.kind == STATEMENT]
    found: list[Statement] = []
    if statements:
        found.append(Statement(_PUT_STATEMENTS, (agent, _json(statements))))
    if moved:
        found.append(Statement(_MOVE_STATEMENTS, (agent, _json(moved))))
    if others:
        found.append(Statement(_PUT_OBJECTS, (agent, _json([_object(row) for row in others]))))
    if removed:
        found.append(Statement(_REMOVE_STATEMENTS, (agent, _json(removed))))
    return found


def statements_after(agent: str, seq: int, key: str, limit: int) -> Statement:
    """The statements behind a place in the agent's order, in that order."""
    return Statement(
        f"SELECT {_COLUMNS} FROM cold_memories"
        f" WHERE agent_id = ?1 AND (seq, id) > (?2, ?3) AND {_PLACED}"
        f" AND {_NAMED['cold_memories']} ORDER BY seq, id LIMIT ?4",
        (agent, seq, key, limit),
    )


def displaced(agent: str, limit: int) -> Statement:
    """Kind and id of the rows that no page holds, and whether these name them; all are read."""
    cold, rest = _NAMED["cold_memories"], _NAMED["objects"]
    return Statement(
        f"SELECT '{STATEMENT}', id, {cold} FROM cold_memories"
        f" WHERE agent_id = ?1 AND NOT ({cold} AND (seq IS NULL OR {_PLACED}))"
        f" UNION ALL SELECT kind, id, {rest} FROM objects"
        f" WHERE agent_id = ?1 AND NOT ({rest} AND {_PLACED}) LIMIT {limit}",
        (agent,),
    )


def adopt(agent: str) -> list[Statement]:
    """Give a place to every row that has none, or a text in place of one."""
    # With one condition instead of two, the remote would read all rows.
    which = (
        ("cold_memories", "seq IS NULL"),
        ("cold_memories", DISPLACED),
        ("objects", DISPLACED),
    )
    return [
        Statement(f"UPDATE {table} SET seq = {_SEQ} WHERE agent_id = ?1 AND {condition}", (agent,))
        for table, condition in which
    ]


def statements_at(agent: str, ids: Sequence[str]) -> Statement:
    """The statements with these ids."""
    return Statement(
        f"SELECT {_COLUMNS} FROM cold_memories WHERE agent_id = ?1 AND id IN"
        " (SELECT value FROM json_each(?2) UNION ALL SELECT ?1 || ':' || value FROM json_each(?2))",
        (agent, msgspec.json.encode(ids).decode()),
    )


def objects_after(agent: str, after: tuple[int, str, str], limit: int) -> Statement:
    """The rows of the other kinds behind a place in the agent's order, in that order."""
    return Statement(
        "SELECT kind, id, data, clock, device, digest, seq FROM objects"
        f" WHERE agent_id = ?1 AND (seq, kind, id) > (?2, ?3, ?4) AND {_PLACED}"
        f" AND {_NAMED['objects']} ORDER BY seq, kind, id LIMIT ?5",
        (agent, *after, limit),
    )


def objects_at(agent: str, names: Sequence[tuple[str, str]]) -> Statement:
    """The rows of the other kinds with these kinds and ids."""
    return Statement(
        "SELECT o.kind, o.id, data, clock, device, digest, seq FROM json_each(?2) AS j"
        " JOIN objects AS o ON o.agent_id = ?1 AND o.kind = json_extract(j.value, '$[0]')"
        " AND o.id = json_extract(j.value, '$[1]')",
        (agent, msgspec.json.encode(names).decode()),
    )


def statement_of(agent: str, values: Sequence[Value]) -> Row | None:
    """The row in a line of `STATEMENT_COLUMNS`; None: it is not as it was sent."""
    key, text, category, importance, created, accesses, record, clock, device = values[:9]
    place, place_clock, place_device, check, seq = values[9:]
    view = View(
        text=str(text),
        category=str(category),
        importance=number(importance, 0.5),
        created_at=whole(created),
        access_count=whole(accesses),
    )
    if record is None:
        return Row(
            kind=STATEMENT,
            id=str(key),
            data=None,
            clock=-1,
            device="",
            view=view,
            seq=whole(seq),
        )
    said_at, put_at, stands = integer(clock), integer(place_clock, 0), integer(seq, 0)
    if said_at is None or put_at is None or stands is None:
        return None
    if check is not None and digest(str(record)) != check:
        return None
    return Row(
        kind=STATEMENT,
        id=str(key).removeprefix(f"{agent}:"),
        data=str(record),
        clock=said_at,
        device=str(device),
        place=None if place is None else str(place),
        place_clock=put_at,
        place_device=str(place_device or ""),
        view=view,
        seq=stands,
    )


def object_of(values: Sequence[Value]) -> Row | None:
    """The row in a line of `objects_after`; None: it is not as it was sent."""
    kind, key, data, clock, device, check, seq = values
    version, stands = integer(clock), integer(seq)
    if version is None or stands is None:
        return None
    if data is not None and check is not None and digest(str(data)) != check:
        return None
    return Row(
        kind=str(kind),
        id=str(key),
        data=None if data is None else str(data),
        clock=version,
        device=str(device),
        seq=stands,
    )


def _said(row: Row) -> dict[str, Any]:
    assert row.view is not None
    assert row.data is not None
    return {
        "id": row.id,
        "text": row.view.text,
        "category": row.view.category,
        "importance": row.view.importance,
        "created_at": row.view.created_at,
        "access_count": row.view.access_count,
        "record": row.data,
        "clock": row.clock,
        "device": row.device,
        "place": row.place,
        "place_clock": row.place_clock,
        "place_device": row.place_device,
        "digest": digest(row.data),
    }


def _moved(row: Row) -> dict[str, Any]:
    assert row.view is not None
    return {
        "id": row.id,
        "category": row.view.category,
        "place": row.place,
        "place_clock": row.place_clock,
        "place_device": row.place_device,
    }


def _object(row: Row) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "id": row.id,
        "data": row.data,
        "clock": row.clock,
        "device": row.device,
        "digest": None if row.data is None else digest(row.data),
    }


def _json(rows: Sequence[dict[str, Any]]) -> str:
    return msgspec.json.encode(rows).decode()
