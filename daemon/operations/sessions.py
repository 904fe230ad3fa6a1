"""Sessions: stretches of work that see a part of the memory, and record what their answers used."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from ..config.settings import Tuning
from ..errors import Conflict, InvalidInput, NotFound
from ..language.secrets import clear
from ..memory import checks
from ..recall.recall import Answer, Request, recall
from ..recall.sources import CHUNKS, MEMORIES, file_of, versions
from ..shapes import sessions as shapes
from ..store import sessions
from ..store.agent_store import AgentStore
from ..store.selecting import Filters
from ..store.sessions import AnswerUsed, Session, Status, Used, Via
from .operation import Operation
from .scope import Scope
from .views import name_of, view_of

_NAME_CHARS: Final = 200
_QUERY_CHARS: Final = 2_000
_PATH_CHARS: Final = 4_096


@Operation("GET", "/api/sessions")
async def index(scope: Scope, query: shapes.SessionQuery) -> shapes.SessionPage:
    """List sessions, the newest first."""
    limit = scope.page_limit(query.limit)

    def read(db: sqlite3.Connection) -> shapes.SessionPage:
        found, total = sessions.page(db, query.status, limit, query.offset)
        return shapes.SessionPage([_view(db, one) for one in found], total)

    return await scope.read(read)


@Operation("POST", "/api/sessions", role="write", statuses=(201,))
async def start(scope: Scope, body: shapes.SessionBody) -> shapes.SessionView:
    """Open a session."""
    made = Session(
        id=secrets.token_hex(8),
        name=checks.check_short(body.name, "name", _NAME_CHARS),
        conversation=name_of(body.conversation, body.conversationId, "conversation"),
        user=name_of(body.user, body.userId, "user"),
        category=scope.category(body.category) or "",
        paths=tuple(map(_path, body.paths)),
        created_at=scope.now,
        updated_at=scope.now,
    )
    async with scope.store(create=True) as store:
        await store.write(lambda tx: sessions.put(tx, made))
        return await _brought(scope, store, made.id)


@Operation("GET", "/api/sessions/{id}")
async def get(scope: Scope, id: str) -> shapes.SessionView:  # noqa: A002 - the part of the path
    """Read a session."""
    return await scope.read(lambda db: _view(db, sessions.get(db, id)))


@Operation("POST", "/api/sessions/{id}/archive", role="write")
async def archive(scope: Scope, id: str) -> shapes.SessionView:  # noqa: A002 - the part of the path
    """Close a session: nothing is asked in it until it is reopened."""
    return await _set(scope, id, "archived")


@Operation("POST", "/api/sessions/{id}/reopen", role="write")
async def reopen(scope: Scope, id: str) -> shapes.SessionView:  # noqa: A002 - the part of the path
    """Open a session again."""
    return await _set(scope, id, "active")


@Operation("GET", "/api/sessions/{id}/used")
async def used(scope: Scope, id: str, query: shapes.UsedQuery) -> shapes.UsedPage:  # noqa: A002
    """List what went into the answers of a session, the last answer first."""
    found, total = await scope.read(lambda db: _answers(scope, db, id, query))
    answers = [
        view_of(shapes.UsedAnswer, one, used=[view_of(shapes.UsedItem, item) for item in one.used])
        for one in found
    ]
    return shapes.UsedPage(id, answers, total)


@Operation("GET", "/api/sessions/{id}/replay")
async def replay(scope: Scope, id: str, query: shapes.UsedQuery) -> shapes.Replayed:  # noqa: A002
    """Tell what of the answers of a session has changed since they were given."""

    def read(db: sqlite3.Connection) -> shapes.Replayed:
        found, _ = _answers(scope, db, id, query)
        told = _replayed(db, found, scope.now)
        return shapes.Replayed(
            id, told, sum(one.changed for one in told), sum(len(one.used) for one in told)
        )

    async with scope.store() as store:
        return await scope.daemon.own_files.read(store, read)


# The handling of `session` in recall, the context block and the search of files.


async def entered(store: AgentStore, key: str | None) -> Session | None:
    """The session of a question; None if it names none.

    Raises:
        NotFound: the session does not exist.
        Conflict: it is archived.
    """
    if key is None:
        return None
    found = await store.read(lambda db: sessions.get(db, key))
    if found.status != "active":
        raise Conflict(
            f"session '{key}' is archived",
            field="session",
            hint=f"POST /api/sessions/{key}/reopen opens it again",
        )
    return found


def seen(session: Session | None, filters: Filters) -> Filters:
    """The filters of a question, limited to what its session sees.

    Raises:
        InvalidInput: it asks for a category that the session does not see.
    """
    if session is None or not (session.category or session.paths):
        return filters
    wanted = filters.category
    if wanted is not None and not f"{wanted}/".startswith(f"{session.category or wanted}/"):
        raise InvalidInput(
            f"session '{session.id}' sees the category '{session.category}' only",
            field="category",
        )
    if wanted is not None and not session.category:
        raise InvalidInput(f"session '{session.id}' sees no memories", field="category")
    return replace(filters, category=wanted or session.category or None, paths=session.paths)


def versions_of(db: sqlite3.Connection, shown: Iterable[tuple[str, str]], now: float) -> list[Used]:
    """The content of an answer, each item by source and id, with the hash of its text."""
    by_source: dict[str, list[str]] = {}
    for source, key in shown:
        by_source.setdefault(source, []).append(key)
    fates = sessions.fates(db, by_source.get(MEMORIES.name, ()), now)
    return [
        Used(source, key, said, fates.get(key) if source == MEMORIES.name else None)
        for source, keys in by_source.items()
        for key, said in versions(db, source, keys).items()
        if key in keys
    ]


def recalling(
    request: Request, tuning: Tuning, session: Session | None, now: float
) -> Callable[[sqlite3.Connection], tuple[Answer, list[Used]]]:
    """A read that answers `request`, with what to record in the session."""

    def read(db: sqlite3.Connection) -> tuple[Answer, list[Used]]:
        answer = recall(db, request, tuning)
        shown = [
            (hit.source, hit.id.removeprefix("kv:")) for hit in answer.hits if session is not None
        ]
        return answer, versions_of(db, shown, now)

    return read


async def record(
    scope: Scope,
    store: AgentStore,
    session: Session | None,
    via: Via,
    query: str,
    used: Sequence[Used],
) -> None:
    """Record what went into an answer in a session, unless the caller may only read."""
    if session is not None and scope.leaves_traces:
        asked = clear(query).text[:_QUERY_CHARS]
        await store.write(lambda tx: sessions.record(tx, session.id, via, asked, used))


async def _set(scope: Scope, key: str, status: Status) -> shapes.SessionView:
    async with scope.store() as store:
        changed = await store.write(lambda tx: sessions.set_status(tx, key, status))
        if status == "active":
            return await _brought(scope, store, key)
        return await store.read(lambda db: _view(db, changed))


async def _brought(scope: Scope, store: AgentStore, key: str) -> shapes.SessionView:
    """The session, after its files were read again, or the wait for that has timed out."""
    rules = scope.settings.index
    if rules.on_session_start:
        await scope.daemon.indexes.bring(store, rules.search_wait_ms / 1000)
    return await scope.daemon.own_files.read(store, lambda db: _view(db, sessions.get(db, key)))


def _answers(
    scope: Scope, db: sqlite3.Connection, key: str, query: shapes.UsedQuery
) -> tuple[list[AnswerUsed], int]:
    sessions.get(db, key)
    if query.answer is None:
        return sessions.answers(db, key, scope.page_limit(query.limit), query.offset)
    one = sessions.answer(db, key, query.answer)
    if one is None:
        raise NotFound(f"session '{key}' has no answer '{query.answer}'", field="answer")
    return [one], 1


def _replayed(
    db: sqlite3.Connection, answers: Sequence[AnswerUsed], now: float
) -> list[shapes.ReplayedAnswer]:
    wanted: dict[str, set[str]] = {}
    for one in answers:
        for item in one.used:
            wanted.setdefault(item.source, set()).add(item.id)
    current = {source: versions(db, source, keys) for source, keys in wanted.items()}
    fates = sessions.fates(db, wanted.get(MEMORIES.name, ()), now)
    told: list[shapes.ReplayedAnswer] = []
    for one in answers:
        items = [_item(item, current[item.source], fates) for item in one.used]
        changed = sum(item.change != "same" for item in items)
        told.append(view_of(shapes.ReplayedAnswer, one, used=items, changed=changed))
    return told


def _item(
    item: Used, current: Mapping[str, str], fates: Mapping[str, sessions.Fate]
) -> shapes.ReplayedItem:
    now = current.get(item.id)
    change: shapes.Change = "same" if now == item.hash else "gone" if now is None else "changed"
    if change != "same" and item.source == CHUNKS.name:
        beside = [said for key, said in current.items() if file_of(key) == file_of(item.id)]
        change = "moved" if item.hash in beside else "changed" if beside else "gone"
    if change == "same" and item.source == MEMORIES.name:
        fate = fates.get(item.id)
        change = fate if fate is not None and fate != item.fate else "same"
    return view_of(shapes.ReplayedItem, item, change=change, now=UNSET if now is None else now)


def _view(db: sqlite3.Connection, session: Session) -> shapes.SessionView:
    counted = sessions.counted(db, session.id)
    return view_of(
        shapes.SessionView,
        session,
        last_active_at=max(session.updated_at, counted.last_at or 0.0),
        answers=counted.answers,
    )


def _path(given: str) -> str:
    path = checks.check_short(given, "paths", _PATH_CHARS)
    if not path:
        raise InvalidInput("name no blank path", field="paths")
    return path
