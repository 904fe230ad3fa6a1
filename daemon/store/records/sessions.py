"""Sessions: stretches of work, of which some see a part of the memory."""

from __future__ import annotations

import sqlite3
from typing import Final

from msgspec.structs import replace

from ...errors import Conflict
from ...memory.records import Session, SessionStatus
from ..database.record_kind import RecordKind, is_short
from ..database.transaction import Transaction

# The ids that an error names, of sessions with one name.
_SHOWN_ALIKE: Final = 5


SESSIONS: Final = RecordKind(
    "session",
    Session,
    missing="no session has the id or name '{}'",
    field="session",
    checks={"name": is_short},
    shortened=True,
    liveness_fields=("created_at",),
)


def page(
    db: sqlite3.Connection, status: SessionStatus | None, limit: int, offset: int
) -> tuple[list[Session], int]:
    """The sessions, newest first, and their number."""
    where = "(:status IS NULL OR data ->> 'status' = :status)"
    order = "data ->> 'created_at' DESC, id"
    return SESSIONS.page(db, where, order, limit, offset, status=status)


def named(db: sqlite3.Connection, key: str) -> Session:
    """The session with this id, whole or shortened, or name; `NotFound` or `Conflict`."""
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
    tx.emit("session.changed", id=session.id, status=session.status)
    return SESSIONS.put(tx, session)


def archive(tx: Transaction, key: str) -> Session:
    """Archive a session."""
    known = named(tx.db, key)
    if known.status == "archived":
        return known
    return put(tx, replace(known, status="archived", updated_at=tx.now))
