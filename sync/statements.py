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

# The row's version in the table, and that of the row which comes in its place.
_NEWER: Final = (
    "(excluded.clock, excluded.device)"
    " > (coalesce(cold_memories.clock, -1), coalesce(cold_memories.device, ''))"
)
_MOVED: Final = (
    "(excluded.place_clock, excluded.place_device)"
    " > (coalesce(cold_memories.place_clock, -1), coalesce(cold_memories.place_device, ''))"
)
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
            AND o.data IS NULL AND (o.clock, o.device) >= ({_field("clock")}, {_field("device")})
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
    WHERE (excluded.clock, excluded.device) > (objects.clock, objects.device) OR {_OUTDONE}
"""
_REMOVE_STATEMENTS: Final = f"""
    DELETE FROM cold_memories WHERE id IN (
        SELECT c.id FROM json_each(?2) AS j JOIN cold_memories AS c
            ON c.id IN ({_field("id")}, ?1 || ':' || {_field("id")}) AND c.agent_id = ?1
        WHERE (coalesce(c.clock, -1), coalesce(c.device, ''))
            <= ({_field("clock")}, {_field("device")})
    )
"""
_ADVANCE: Final = """
    INSERT INTO replica_clock (agent_id, seq, epoch) VALUES (?1, 1, lower(hex(randomblob(8))))
    ON CONFLICT (agent_id) DO UPDATE SET seq = seq + 1
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
        AND (m.place_clock, m.place_device)
            > (coalesce(cold_memories.place_clock, -1), coalesce(cold_memories.place_device, ''))
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
        " WHERE agent_id = ?1 AND (seq, id) > (?2, ?3) ORDER BY seq, id LIMIT ?4",
        (agent, seq, key, limit),
    )


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
        " WHERE agent_id = ?1 AND (seq, kind, id) > (?2, ?3, ?4)"
        " ORDER BY seq, kind, id LIMIT ?5",
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
        importance=_number(importance, 0.5),
        created_at=int(_number(created, 0.0)),
        access_count=int(_number(accesses, 0.0)),
    )
    if record is None or clock is None:
        return Row(
            kind=STATEMENT,
            id=str(key),
            data=None,
            clock=-1,
            device="",
            view=view,
            seq=int(seq or 0),
        )
    if check is not None and digest(str(record)) != check:
        return None
    return Row(
        kind=STATEMENT,
        id=str(key).removeprefix(f"{agent}:"),
        data=str(record),
        clock=int(clock),
        device=str(device),
        place=None if place is None else str(place),
        place_clock=int(place_clock or 0),
        place_device=str(place_device or ""),
        view=view,
        seq=int(seq or 0),
    )


def object_of(values: Sequence[Value]) -> Row | None:
    """The row in a line of `objects_after`; None: it is not as it was sent."""
    kind, key, data, clock, device, check, seq = values
    if data is not None and check is not None and digest(str(data)) != check:
        return None
    return Row(
        kind=str(kind),
        id=str(key),
        data=None if data is None else str(data),
        clock=int(clock or 0),
        device=str(device),
        seq=int(seq or 0),
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


def _number(value: Value, otherwise: float) -> float:
    return float(value) if isinstance(value, int | float) else otherwise


def _json(rows: Sequence[dict[str, Any]]) -> str:
    return msgspec.json.encode(rows).decode()
