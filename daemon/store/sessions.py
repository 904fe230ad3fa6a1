"""Sessions, and what went into which of their answers."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from thermocline.sync import Fields, Row

from ..errors import NotFound
from ..memory.checks import check_short, check_time
from . import rows
from .kind import Kind
from .transaction import Transaction

Status: TypeAlias = Literal["active", "archived"]
# The fates of a memory other than a change of its text.
Fate: TypeAlias = Literal["merged", "superseded", "expired"]
Via: TypeAlias = Literal["recall", "context", "files"]
# The number of answers kept for each session, the last ones.
_ANSWERS: Final = 1_000


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of work. Times are seconds since the epoch.

    Attributes:
        category: it sees only memories below it; "": all, unless it names paths.
        paths: the beginnings of the paths of files that it sees; empty: all, unless it names a
            category.
        updated_at: when it was last opened, archived or reopened.
    """

    id: str
    name: str = ""
    conversation: str = ""
    user: str = ""
    category: str = ""
    paths: tuple[str, ...] = ()
    status: Status = "active"
    created_at: float
    updated_at: float


class Used(msgspec.Struct, frozen=True):
    """Part of an answer: the hash of its content at the time, and its fate at the time."""

    source: str
    id: str
    hash: str
    fate: Fate | None = None


class AnswerUsed(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of a session: the question, the operation, and what went into it."""

    id: str
    at: float
    via: Via
    query: str
    used: tuple[Used, ...]


class Counted(msgspec.Struct, frozen=True):
    """The number of answers kept of a session, and the time of the last one."""

    answers: int
    last_at: float | None


def get(db: sqlite3.Connection, key: str) -> Session:
    """The session.

    Raises:
        NotFound: it does not exist.
    """
    row = rows.load(db, KIND, key)
    if row is None:
        raise NotFound(f"no session has the id '{key}'", field="session")
    return _session(key, row.data)


def page(
    db: sqlite3.Connection, status: Status | None, limit: int, offset: int
) -> tuple[list[Session], int]:
    """The sessions, newest first, and their number."""
    where = "kind = 'session' AND live AND (?1 IS NULL OR data ->> 'status' = ?1)"
    found = db.execute(
        f"SELECT id, data FROM rows WHERE {where} ORDER BY data ->> 'created_at' DESC, id"
        " LIMIT ?2 OFFSET ?3",
        (status, limit, offset),
    )
    total = db.execute(f"SELECT count(*) FROM rows WHERE {where}", (status,)).fetchone()[0]
    return [_session(key, msgspec.json.decode(data)) for key, data in found], int(total)


def put(tx: Transaction, session: Session) -> Session:
    """Store a session."""
    data = {name: getattr(session, name) for name in _FIELDS}
    rows.write(tx, KIND, session.id, data | {"paths": [*session.paths]})
    tx.tell("session.changed", id=session.id, status=session.status)
    return session


def set_status(tx: Transaction, key: str, status: Status) -> Session:
    """Archive or reopen a session."""
    known = get(tx.db, key)
    if known.status == status:
        return known
    return put(tx, replace(known, status=status, updated_at=tx.now))


def record(tx: Transaction, key: str, via: Via, query: str, used: Sequence[Used]) -> None:
    """Record what went into an answer; only the last 1,000 answers of a session are kept."""
    # The times of answers increase, also among those of other devices.
    answer = f"{key}/{int(tx.now * 1000):014d}-{secrets.token_hex(2)}"
    items = msgspec.to_builtins(used)
    rows.write(tx, ANSWERS, answer, {"at": tx.now, "via": via, "query": query, "used": items})
    old = tx.db.execute(
        f"SELECT id {_OF_SESSION} ORDER BY id DESC LIMIT -1 OFFSET {_ANSWERS}", _bounds(key)
    )
    for (one,) in old.fetchall():
        rows.write(tx, ANSWERS, one, None)


def answers(
    db: sqlite3.Connection, key: str, limit: int, offset: int = 0
) -> tuple[list[AnswerUsed], int]:
    """The answers of a session, last first, and their number."""
    found = db.execute(
        f"SELECT id, data {_OF_SESSION} ORDER BY id DESC LIMIT ? OFFSET ?",
        (*_bounds(key), limit, offset),
    )
    read = [_answer(name, msgspec.json.decode(data)) for name, data in found]
    return read, counted(db, key).answers


def answer(db: sqlite3.Connection, key: str, name: str) -> AnswerUsed | None:
    """An answer of a session."""
    row = rows.load(db, ANSWERS, f"{key}/{name}")
    return None if row is None else _answer(row.id, row.data)


def fates(db: sqlite3.Connection, ids: Iterable[str], now: float) -> dict[str, Fate]:
    """The fates of memories; those without one are left out."""
    found = db.execute(
        "SELECT id, CASE WHEN merged_into IS NOT NULL THEN 'merged'"
        " WHEN superseded_by IS NOT NULL THEN 'superseded' ELSE 'expired' END FROM memories"
        " WHERE id IN (SELECT value FROM json_each(?)) AND (merged_into IS NOT NULL"
        " OR superseded_by IS NOT NULL OR expires_at <= ?)",
        (msgspec.json.encode([*ids]).decode(), now),
    )
    return dict(found.fetchall())


def counted(db: sqlite3.Connection, key: str) -> Counted:
    """The number of answers."""
    found = db.execute(f"SELECT count(*), max(data ->> 'at') {_OF_SESSION}", _bounds(key))
    return Counted(*found.fetchone())


_OF_SESSION: Final = "FROM rows WHERE kind = 'answer' AND live AND id > ? AND id < ?"


def _bounds(key: str) -> tuple[str, str]:
    return f"{key}/", f"{key}0"  # "0" is what follows "/"


def _session(key: str, data: Fields) -> Session:
    fields: Fields = {name: data[name] for name in _FIELDS if name in data}
    return msgspec.convert(fields | {"id": key}, Session)


def _answer(key: str, data: Fields) -> AnswerUsed:
    fields: Fields = {name: data[name] for name in _ANSWER_FIELDS if name in data}
    return msgspec.convert(fields | {"id": key.rpartition("/")[2]}, AnswerUsed)


def _check(row: Row) -> None:
    session = _session(row.id, row.data)
    check_short(session.name, "name", _ANY_SIZE)
    check_time(session.created_at, field="created_at")


def _check_answer(row: Row) -> None:
    answer = _answer(row.id, row.data)
    check_short(answer.query, "query", _ANY_SIZE)
    check_time(answer.at, field="at")


_FIELDS: Final = Session.__struct_fields__[1:]
_ANSWER_FIELDS: Final = AnswerUsed.__struct_fields__[1:]
# Received values are not cut: other devices may allow longer texts.
_ANY_SIZE: Final = 1 << 62
KIND: Final = Kind(name="session", fields=frozenset(_FIELDS), vital=("created_at",), check=_check)
ANSWERS: Final = Kind(
    name="answer", fields=frozenset(_ANSWER_FIELDS), history=False, check=_check_answer
)
