"""`/api/history` and `/api/undo`: the versions that rows had, and putting them back."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ..errors import InvalidInput, NotFound
from ..memory.expiry import parse_since
from ..store import history, memories, memory_rows, undo
from ..store.history import Version
from ..store.kind import Kind
from ..store.kinds import KINDS
from ..store.transaction import Transaction
from .calls import Call, Reply, Route

Limit = Annotated[int, Meta(ge=1, le=500)]
_RECORDED: Final = tuple(name for name, kind in KINDS.items() if kind.history)


class HistoryQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Whose versions: one row's, by its kind and id, or the latest of all.

    `conflicts` leaves only values that lost because another device changed the same field.
    """

    kind: str = "memory"
    id: str | None = None
    conflicts: bool = False
    limit: Limit = 50


class VersionView(msgspec.Struct):
    """A version that was replaced `at`, by whom, on which device and what for."""

    number: int
    kind: str
    id: str
    at: float
    writer: str
    device: str
    why: str
    data: dict[str, Any]


class Versions(msgspec.Struct):
    """Versions, the latest first."""

    results: list[VersionView]


class UndoWish(msgspec.Struct, forbid_unknown_fields=True):
    """What to put back: the last change of a row, or all that a writer changed since a time.

    `number` names a version of the row other than the last. With `dry_run` nothing is changed.
    """

    id: str | None = None
    kind: str = "memory"
    number: int | None = None
    by: str | None = None
    since: str | float | None = None
    dry_run: bool = False


class RowName(msgspec.Struct):
    """A row by its kind and id."""

    kind: str
    id: str


class Undone(msgspec.Struct):
    """The rows that were put back or, where they were new, forgotten."""

    results: list[RowName]
    done: bool


async def index(call: Call) -> Reply:
    """The versions of a row, or the latest of all rows."""
    query = call.query(HistoryQuery)
    kind = _kind(query.kind)

    def read(db: sqlite3.Connection) -> list[Version]:
        if query.id is not None:
            found = history.versions(db, kind, _key(db, kind, query.id), query.limit)
        else:
            found = history.latest(db, query.limit, conflicts=query.conflicts)
        return [one for one in found if one.why == history.CONFLICT or not query.conflicts]

    async with call.store() as store:
        found = await store.read(read)
    return Reply(Versions([_view(version) for version in found]))


async def put_back(call: Call) -> Reply:
    """Undo the last change of a row, or what a writer changed."""
    wish = await call.body(UndoWish)
    if (wish.id is None) == (wish.by is None):
        raise InvalidInput("name a row with 'id', or a writer with 'by' and 'since'", field="id")
    if wish.by is not None and wish.since is None:
        raise InvalidInput("say since when: 'since'", field="since")

    def apply(tx: Transaction) -> list[tuple[str, str]]:
        if wish.by is not None and wish.since is not None:
            return undo.undo_by(tx, wish.by, parse_since(wish.since, call.now))
        kind = _kind(wish.kind)
        key = _key(tx.db, kind, wish.id or "")
        undo.undo(tx, kind, key, wish.number)
        return [(kind.name, key)]

    def rehearse(tx: Transaction) -> list[tuple[str, str]]:
        noted = tx.noted()
        tx.db.execute("SAVEPOINT rehearsal")
        try:
            return apply(tx)
        finally:
            tx.take_back(noted)
            tx.db.execute("ROLLBACK TO rehearsal")
            tx.db.execute("RELEASE rehearsal")

    async with call.store() as store:
        found = await store.write(rehearse if wish.dry_run else apply)
    return Reply(Undone([RowName(*name) for name in found], done=not wish.dry_run))


def _kind(name: str) -> Kind:
    if name not in _RECORDED:
        raise InvalidInput(
            f"no versions are kept of '{name}': choose {', '.join(_RECORDED)}", field="kind"
        )
    return KINDS[name]


def _key(db: sqlite3.Connection, kind: Kind, key: str) -> str:
    if kind.name == memory_rows.KIND.name:
        return memories.find(db, key).id
    if kind.load(db, key) is None:
        raise NotFound(f"no {kind.name} is called '{key}'", field="id")
    return key


def _view(version: Version) -> VersionView:
    return VersionView(
        number=version.number,
        kind=version.kind,
        id=version.id,
        at=version.at,
        writer=version.writer,
        device=version.device,
        why=version.why,
        data=version.row.data,
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/history",
        handler=index,
        summary="Versions that were replaced, and values that lost a conflict",
        query=HistoryQuery,
        answer=Versions,
    ),
    Route(
        method="POST",
        path="/api/undo",
        handler=put_back,
        summary="Undo the last change of a row, or what a writer changed since a time",
        role="write",
        body=UndoWish,
        answer=Undone,
    ),
)
