"""Merging and forgetting memories, earlier versions of rows, and undoing changes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..errors import Conflict, InvalidInput, NotFound
from ..language.secrets import cleared, secrets_in, secrets_of
from ..maintenance.tidying import tidy
from ..memory.agent_files import EPISODES, REFLECTIONS
from ..memory.records import Memory, Undoing, name_key
from ..schemas import memory as schemas
from ..schemas.common import CategoryPath, KindName, MemoryId, Position, Time, Words
from ..store import apply, erasure, undo
from ..store.agent_store import AgentStore
from ..store.database import rows
from ..store.database.rows import Kind
from ..store.database.transaction import Transaction
from ..store.kinds import KINDS, kind_of
from ..store.records import (
    entity_rows,
    history,
    key_values,
    memories,
    memory_rows,
    merging,
    notes,
)
from ..store.records.entities import canonical
from ..store.records.experiences import EXPERIENCES
from ..store.records.history import Version
from ..store.records.memory_rows import fetch
from ..store.records.selecting import Filters, where
from ..store.records.sessions import SESSIONS, named
from .operation import Operation, Scope
from .views import memory_view, view_of


@Operation("POST", "/api/memory/tidy", role="write")
async def tidy_up(scope: Scope, dry_run: bool = False) -> schemas.Tidied:
    """Merge duplicates, mark contradicted memories, archive faded ones."""
    async with scope.store() as store:
        return await tidy(store, dry_run=dry_run)


@Operation("POST", "/api/memory/{id}/merge", role="write")
async def merge(scope: Scope, id: MemoryId, into: MemoryId) -> schemas.Merged:
    """Merge a memory into another."""

    def apply(tx: Transaction) -> tuple[Memory, Memory]:
        memory = memories.find_living(tx.db, id, tx.now)
        target = memories.find_living(tx.db, into, tx.now)
        try:
            return merging.merge(tx, memory, target)
        except Conflict as error:
            raise Conflict(error.message, field="into", hint=error.hint) from error

    retired, target = await scope.write(apply)
    return schemas.Merged(memory_view(scope, target), memory_view(scope, retired))


@Operation("POST", "/api/memory/{id}/unmerge", role="write")
async def unmerge(scope: Scope, id: MemoryId) -> schemas.Unmerged:
    """Undo the merge of a memory into another."""

    def apply(tx: Transaction) -> tuple[Memory, Memory | None]:
        retired = memories.find(tx.db, id)
        back = merging.unmerge(tx, retired)
        return back, fetch(tx.db, retired.merged_into)

    back, target = await scope.write(apply)
    return schemas.Unmerged(
        memory_view(scope, back), None if target is None else memory_view(scope, target)
    )


# Forgetting


# The maximum for one transaction, so that other writers get their turn.
_TOGETHER: Final = 200
_SHOWN: Final = 10
# The files to which the daemon adds reported texts.
_LOGS: Final = (EPISODES, REFLECTIONS)


@Operation("POST", "/api/memory/forget", role="write")
async def forget(
    scope: Scope,
    category: CategoryPath | None = None,
    query: Words | None = None,
    secrets: bool = False,
    dry_run: bool = False,
) -> schemas.Forgotten:
    """Forget all memories of a category, that contain words, or that hold secrets.

    With several fields, those that match all. `category` is one category and all below it. `query`
    are words that the text, the subject or the outcome contains, all of them and in any case.
    `secrets` are memories with a key, a token or a password; as the only field, it also deletes
    such pairs, replaces such values of the hot state, the tree and the episodes by a mark, and
    deletes earlier versions of rows with one. Merged and expired memories are included. `dry_run`
    only counts them and shows the newest.
    """
    words = None if query is None else query.casefold().split()
    category = scope.category(category)
    if words == [] or (words is None and category is None and not secrets):
        raise InvalidInput(
            "say what to forget: a 'category', a 'query' or both, or 'secrets'",
            field="category" if words is None else "query",
        )
    everywhere = secrets and words is None and category is None

    def read(db: sqlite3.Connection) -> tuple[list[str], list[Memory], list[_Held]]:
        ids = _fitting(db, category, words or (), scope.now)
        if secrets:
            ids = [key for key in ids if secrets_of(memories.find(db, key))]
        shown = [memories.find(db, key) for key in ids[: _SHOWN if dry_run else 0]]
        held = _holding_secrets(db, _LOGS) if everywhere else []
        # The texts of forgotten memories are also removed from the summaries.
        return ids, shown, [row for row in held if row.id not in ids]

    async with scope.store() as store:
        ids, newest, held = await store.read(read)
        kinds = [f"{row.kind}/" if row.where == "history" else "" for row in held]
        elsewhere = [f"{row.where} {kind}{row.id}" for row, kind in zip(held, kinds, strict=True)]
        for log in _LOGS if everywhere else ():
            file = (store.place.workspace or store.place.folder) / log
            if await asyncio.to_thread(erasure.rewrite, file, _cleared, dry_run=dry_run):
                elsewhere.append(f"file {log}")
        if not dry_run:
            await _forget_all(store, ids)
            for row in held:
                await store.write(partial(_clear_held, held=row))
            await store.eraser.erase_now()
            if store.exists:
                await scope.daemon.agent_files.catch_up(store)
    shown = [memory_view(scope, memory) for memory in newest]
    return schemas.Forgotten(len(ids), not dry_run, shown, elsewhere if everywhere else UNSET)


def _cleared(content: str) -> str:
    lines = content.split("\n")
    for number, line in enumerate(lines):
        with suppress(msgspec.DecodeError, UnicodeError):
            if secrets_in(value := msgspec.json.decode(line)):
                lines[number] = msgspec.json.encode(cleared(value)).decode()
    return "\n".join(lines)


async def _forget_all(store: AgentStore, ids: Sequence[str]) -> None:
    """Forget memories by their ids, ignoring missing ones."""

    def apply(tx: Transaction, keys: Sequence[str]) -> None:
        for key in keys:
            with suppress(NotFound):
                memories.delete(tx, memories.find(tx.db, key))

    for start in range(0, len(ids), _TOGETHER):
        await store.write(partial(apply, keys=ids[start : start + _TOGETHER]))


async def forget_everything(store: AgentStore) -> tuple[int, int]:
    """Forget every row; return the numbers of memories and key-value pairs."""
    names = await store.read(lambda db: [row.key for row in apply.every(db) if row.data])
    kinds = [kind for kind, _ in names]
    for start in range(0, len(names), _TOGETHER):
        await store.write(partial(_forget_rows, names=names[start : start + _TOGETHER]))
    return kinds.count(memory_rows.KIND.name), kinds.count(key_values.PAIRS.kind.name)


def _forget_rows(tx: Transaction, names: Sequence[tuple[str, str]]) -> None:
    for kind, key in names:
        rows.write(tx, kind_of(kind), key, None)
    # There is nothing left where they could have left traces.
    tx.forgotten.clear()


def everything(db: sqlite3.Connection) -> list[str]:
    """The ids of all memories, newest first."""
    return _fitting(db, None, (), 0.0)


def _fitting(
    db: sqlite3.Connection, category: str | None, words: Sequence[str], now: float
) -> list[str]:
    condition, arguments = where(Filters(category=category, merged=True, expired=True), now)
    sql = f"SELECT id, text, subject, outcome FROM memories WHERE {condition}"  # noqa: S608
    rows = db.execute(f"{sql} ORDER BY created_at DESC, row DESC", arguments)
    return [
        key
        for key, *texts in rows
        if not words or all(word in "\n".join(filter(None, texts)).casefold() for word in words)
    ]


class _Held(msgspec.Struct, frozen=True):
    """A row that holds a secret, or (`where` is history) held it in an earlier version."""

    where: str
    kind: str
    id: str


def _holding_secrets(db: sqlite3.Connection, written: Sequence[str]) -> list[_Held]:
    """Where secrets are, apart from memories; `written` are the notes that the daemon writes."""
    helds: list[_Held] = []
    for kind in (kind for kind in KINDS.values() if kind.clears_secrets):
        for key, data in rows.live_rows(db, kind):
            if secrets_in(_with_name(key, msgspec.json.decode(data))):
                helds.append(_Held(kind.name, kind.name, key))
    for path in written:
        note = rows.load(db, notes.KIND, path)
        if note is not None and secrets_in(note.data["text"].splitlines()):
            helds.append(_Held("note", notes.KIND.name, path))
    seen: set[tuple[str, str]] = set()
    ours = f"kind <> ? OR id IN ({', '.join('?' * len(written))})"
    for version in history.read(db, ours, notes.KIND.name, *written):
        key = (version.kind, version.id)
        data = version.row.data
        if key not in seen and data and secrets_in(_with_name(version.id, data)):
            seen.add(key)
            helds.append(_Held("history", *key))
    return helds


def _clear_held(tx: Transaction, held: _Held) -> None:
    """Delete a pair; replace a secret in any other row by a mark; delete all earlier versions."""
    kind = kind_of(held.kind)
    row = rows.load(tx.db, kind, held.id)
    if row is not None and held.where == "pair":
        key_values.delete(tx, held.id)
    elif row is not None and held.where == "note":
        lines = cleared(row.data["text"].split("\n"))
        rows.write(tx, kind, held.id, {**row.data, "text": "\n".join(lines)}, why="secret")
    elif row is not None and held.where != "history":
        name = _name_of(held.id)
        data = {field: cleared({name: value})[name] for field, value in row.data.items()}
        rows.write(tx, kind, held.id, data, why="secret")
    rows.erase(tx, kind, held.id)


def _with_name(key: str, data: dict[str, object]) -> list[object]:
    """The values of a row, by the name of the row, which may indicate a secret."""
    return [data, *({_name_of(key): value} for value in data.values())]


def _name_of(key: str) -> str:
    return key.rpartition("/")[2]


# Earlier versions


_RECORDED: Final = tuple(name for name, kind in KINDS.items() if kind.history)


@Operation("GET", "/api/history")
async def list_versions(
    scope: Scope,
    kind: KindName | None = None,
    id: str | None = None,
    conflicts: bool = False,
    limit: Annotated[int, Meta(ge=1, le=500)] = 50,
) -> schemas.VersionList:
    """List versions that were replaced, and values that lost a conflict.

    Those of one row, by its id and kind (default memory), or the latest of all rows of a kind, or
    of all kinds. With `conflicts` only values that were lost because another device changed the
    same field.
    """
    of_kind = _kind(kind or memory_rows.KIND.name)

    def read(db: sqlite3.Connection) -> schemas.VersionList:
        device: str | UnsetType = UNSET
        if id is not None:
            key = _key(db, of_kind, id)
            versions = history.versions(db, of_kind, key, limit)
            if (row := of_kind.load(db, key)) is not None:
                device = row.clocks.latest[1]
        else:
            versions = history.latest(db, limit, kind, conflicts=conflicts)
        shown = (
            version for version in versions if version.why == history.CONFLICT or not conflicts
        )
        return schemas.VersionList([_version(db, version) for version in shown], device)

    return await scope.read(read)


@Operation("POST", "/api/conflicts/seen", role="write")
async def see_conflicts(
    scope: Scope, numbers: Annotated[tuple[Position, ...], Meta(max_length=1_000)]
) -> schemas.ConflictsSeen:
    """Record that somebody looked at lost values: no device counts them any longer.

    The `numbers` are those of their versions.
    """
    async with scope.store(exists=True) as store:
        seen = await store.write(lambda tx: history.mark_seen(tx, numbers))
    return schemas.ConflictsSeen(seen)


_LONGEST_TEXT: Final = 200


@Operation("POST", "/api/undo", role="write")
async def put_back(
    scope: Scope,
    id: str | None = None,
    kind: KindName = "memory",
    number: int | None = None,
    by: str | None = None,
    since: Time | None = None,
    dry_run: bool = False,
) -> schemas.Undone:
    """Undo the last change of a row (`id`), or all that an author (`by`) changed `since` a time.

    `by` is a program (`claude-code`, `cli`), a user (`uid:1000`) or both (`uid:1000 cli`).
    `number` names an earlier version of the row. With `dry_run` nothing is changed.
    """
    if (id is None) == (by is None):
        raise InvalidInput("name a row with 'id', or an author with 'by' and 'since'", field="id")
    if by is not None and since is None:
        raise InvalidInput("say since when: 'since'", field="since")

    def apply(tx: Transaction) -> list[tuple[str, str, Undoing]]:
        if by is not None and since is not None:
            return undo.undo_by(tx, by, scope.moment(since, "since"))
        of_kind = _kind(kind)
        key = _key(tx.db, of_kind, id or "")
        undo.undo(tx, of_kind, key, number)
        return [(kind, key, "put back")]

    async with scope.store() as store:
        # The last change may be in a file only, and is to be undone there.
        if by is not None or kind == notes.KIND.name:
            await scope.daemon.workspaces.keep_all([store])
        if dry_run:
            would = await store.rehearse(apply)
            rows = await store.read(lambda db: [_as_it_is(db, *row) for row in would])
            return schemas.Undone(rows, done=False)
        changed = await store.write(apply)
        if any(of_kind == notes.KIND.name for of_kind, *_ in changed):
            await scope.daemon.workspaces.keep_all([store])
        await store.eraser.erase_now()
        lines = {(kind, key) for kind, key, _ in changed if kind in undo.FILED}
        await scope.daemon.agent_files.remove(store, lines)
    return schemas.Undone([schemas.UndoneRow(*row) for row in changed], done=True)


def _as_it_is(db: sqlite3.Connection, kind: str, key: str, result: Undoing) -> schemas.UndoneRow:
    row = kind_of(kind).load(db, key) if result.startswith("deleted") else None
    text = row.data.get("text") if row is not None else None
    beginning = text[:_LONGEST_TEXT] if isinstance(text, str) else UNSET
    return schemas.UndoneRow(kind, key, result, beginning)


def _kind(name: str) -> Kind:
    if name not in _RECORDED:
        raise InvalidInput(
            f"no versions are kept of '{name}': choose {', '.join(_RECORDED)}", field="kind"
        )
    return KINDS[name]


# Names in the hint about an unknown row, from the latest versions.
_LATEST: Final = 100
_NAMED: Final = 10

# What callers name a row by, apart from its id.
_RESOLVED: Final[Mapping[str, Callable[[sqlite3.Connection, str], str]]] = {
    entity_rows.KIND.name: lambda db, name: canonical(db, name_key(name)),
    EXPERIENCES.kind.name: lambda db, key: EXPERIENCES.get(db, key).id,
    SESSIONS.kind.name: lambda db, key: named(db, key).id,
}


def _key(db: sqlite3.Connection, kind: Kind, key: str) -> str:
    if kind.name == memory_rows.KIND.name:
        try:
            return memories.find(db, key).id
        except NotFound as error:
            if not memory_rows.is_forgotten(db, key):
                raise
            text = f"'{key}' was forgotten, with all its versions: it cannot come back"
            raise NotFound(text, field="id") from error
    resolved = _RESOLVED[kind.name](db, key) if kind.name in _RESOLVED else key
    if kind.load(db, resolved) is None:
        noun = "entry of the hot state" if kind is KINDS["hot"] else kind.name
        known = dict.fromkeys(version.id for version in history.latest(db, _LATEST, kind.name))
        hint = f"earlier versions are kept of {', '.join([*known][:_NAMED])}"
        raise NotFound(
            f"no {noun} is called '{key}'",
            field="id",
            hint=hint if known else f"no earlier version of any {noun} is kept yet",
        )
    return resolved


def _version(db: sqlite3.Connection, version: Version) -> schemas.VersionView:
    replaced, after = history.replaced(db, KINDS[version.kind], version)
    data = version.row.data
    return view_of(schemas.VersionView, version, data=data, replaced=replaced, after=after)
