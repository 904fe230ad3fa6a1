"""Sessions, and what went into which of their answers."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ..errors import Conflict
from ..memory.records import AnswerUsed, Fate, Session, SessionStatus, Used, Via
from .record_kind import RecordKind, is_short
from .transaction import Transaction

# The number of answers kept for each session, the last ones.
_ANSWERS_KEPT: Final = 1_000
# The ids that an error names, of sessions with one name.
_SHOWN_ALIKE: Final = 5


class Counted(msgspec.Struct, frozen=True):
    """The number of answers kept of a session, and the time of the last one."""

    answers: int
    last_at: float | None


SESSIONS: Final = RecordKind(
    "session",
    Session,
    missing="no session has the id or name '{}'",
    field="session",
    checks={"name": is_short},
    liveness_fields=("created_at",),
)
# The id of an answer begins with that of its session.
ANSWERS: Final = RecordKind(
    "answer",
    AnswerUsed,
    checks={"query": is_short},
    id_of=lambda key: key.rpartition("/")[2],
    history=False,
)
_OF_SESSION: Final = "id > :key || '/' AND id < :key || '0'"  # "0" is what follows "/"


def page(
    db: sqlite3.Connection, status: SessionStatus | None, limit: int, offset: int
) -> tuple[list[Session], int]:
    """The sessions, newest first, and their number."""
    where = "(:status IS NULL OR data ->> 'status' = :status)"
    order = "data ->> 'created_at' DESC, id"
    return SESSIONS.page(db, where, order, limit, offset, status=status)


def named(db: sqlite3.Connection, key: str) -> Session:
    """The session with this id or name; `NotFound`, or `Conflict` if several have the name."""
    if (session := SESSIONS.find(db, key)) is not None:
        return session
    alike = SESSIONS.select(db, "data ->> 'name' = :name AND :name <> ''", name=key)
    if len(alike) > 1:
        ids = ", ".join(session.id for session in alike[:_SHOWN_ALIKE])
        raise Conflict(
            f"{len(alike)} sessions are called '{key}'", field="session", hint=f"say which: {ids}"
        )
    return alike[0] if alike else SESSIONS.get(db, key)


def put(tx: Transaction, session: Session) -> Session:
    """Store a session."""
    tx.tell("session.changed", id=session.id, status=session.status)
    return SESSIONS.put(tx, session)


def set_status(tx: Transaction, key: str, status: SessionStatus) -> Session:
    """Archive or reopen a session."""
    known = named(tx.db, key)
    if known.status == status:
        return known
    return put(tx, replace(known, status=status, updated_at=tx.now))


def record(tx: Transaction, key: str, via: Via, query: str, used: Sequence[Used]) -> None:
    """Record what went into an answer; only the last 1,000 answers of a session are kept."""
    # The times of answers increase, also among those of other devices.
    name = f"{int(tx.now * 1000):014d}-{secrets.token_hex(2)}"
    answer = AnswerUsed(id=name, at=tx.now, via=via, query=query, used=tuple(used))
    ANSWERS.put(tx, answer, key=f"{key}/{name}")
    old = f"id DESC LIMIT -1 OFFSET {_ANSWERS_KEPT}"
    for dropped in ANSWERS.select(tx.db, _OF_SESSION, old, key=key):
        ANSWERS.delete(tx, f"{key}/{dropped.id}")


def answers(
    db: sqlite3.Connection, key: str, limit: int, offset: int = 0
) -> tuple[list[AnswerUsed], int]:
    """The answers of a session, last first, and their number."""
    return ANSWERS.page(db, _OF_SESSION, "id DESC", limit, offset, key=key)


def answer(db: sqlite3.Connection, key: str, name: str) -> AnswerUsed | None:
    """An answer of a session."""
    return ANSWERS.find(db, f"{key}/{name}")


def fates(db: sqlite3.Connection, ids: Iterable[str], now: float) -> dict[str, Fate]:
    """The fates of memories; those without one are left out."""
    rows = db.execute(
        "SELECT id, CASE WHEN merged_into IS NOT NULL THEN 'merged'"
        " WHEN superseded_by IS NOT NULL THEN 'superseded' ELSE 'expired' END FROM memories"
        " WHERE id IN (SELECT value FROM json_each(?)) AND (merged_into IS NOT NULL"
        " OR superseded_by IS NOT NULL OR expires_at <= ?)",
        (msgspec.json.encode([*ids]).decode(), now),
    )
    return dict(rows.fetchall())


def counted(db: sqlite3.Connection, key: str) -> Counted:
    """The number of answers."""
    sql = "SELECT count(*), max(data ->> 'at') FROM rows WHERE kind = 'answer' AND live AND "
    return Counted(*db.execute(sql + _OF_SESSION, {"key": key}).fetchone())
