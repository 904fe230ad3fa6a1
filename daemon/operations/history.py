"""Earlier versions of rows, and restoring them."""

from __future__ import annotations

import sqlite3
from typing import Final

from msgspec import UNSET, UnsetType

from ..errors import InvalidInput, NotFound
from ..memory.expiry import parse_since
from ..shapes import history as shapes
from ..store import history, memories, memory_rows, undo
from ..store.history import Version
from ..store.kind import Kind
from ..store.kinds import KINDS
from ..store.transaction import Transaction
from .operation import Operation
from .scope import Scope
from .views import view_of

_RECORDED: Final = tuple(name for name, kind in KINDS.items() if kind.history)


@Operation("GET", "/api/history")
async def index(scope: Scope, query: shapes.HistoryQuery) -> shapes.VersionList:
    """List versions that were replaced, and values that lost a conflict."""
    kind = _kind(query.kind)

    def read(db: sqlite3.Connection) -> shapes.VersionList:
        device: str | UnsetType = UNSET
        if query.id is not None:
            key = _key(db, kind, query.id)
            found = history.versions(db, kind, key, query.limit)
            if (row := kind.load(db, key)) is not None:
                device = row.clocks.latest[1]
        else:
            found = history.latest(db, query.limit, conflicts=query.conflicts)
        wanted = (one for one in found if one.why == history.CONFLICT or not query.conflicts)
        return shapes.VersionList([_view(db, version) for version in wanted], device)

    return await scope.read(read)


@Operation("POST", "/api/undo", role="write")
async def put_back(scope: Scope, body: shapes.UndoBody) -> shapes.Undone:
    """Undo the last change of a row, or what a writer changed since a time."""
    if (body.id is None) == (body.by is None):
        raise InvalidInput("name a row with 'id', or a writer with 'by' and 'since'", field="id")
    if body.by is not None and body.since is None:
        raise InvalidInput("say since when: 'since'", field="since")

    def apply(tx: Transaction) -> list[tuple[str, str]]:
        if body.by is not None and body.since is not None:
            return undo.undo_by(tx, body.by, parse_since(body.since, scope.now))
        kind = _kind(body.kind)
        key = _key(tx.db, kind, body.id or "")
        undo.undo(tx, kind, key, body.number)
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

    found = await scope.write(rehearse if body.dry_run else apply)
    return shapes.Undone([shapes.RowName(*name) for name in found], done=not body.dry_run)


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


def _view(db: sqlite3.Connection, version: Version) -> shapes.VersionView:
    replaced, after = history.replaced(db, KINDS[version.kind], version)
    data = version.row.data
    return view_of(shapes.VersionView, version, data=data, replaced=replaced, after=after)
