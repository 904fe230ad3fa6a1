"""Sessions: stretches of work that see a part of the memory, and record what their answers used."""

from __future__ import annotations

import re
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
from ..memory.records import AnswerUsed, Fate, Session, SessionStatus, Used, Via
from ..recall.answer import Answer
from ..recall.recall import Request, recall
from ..recall.sources import CHUNKS, MEMORIES, file_of, versions
from ..schemas import learning as schemas
from ..store import sessions
from ..store.agent_store import AgentStore
from ..store.selecting import Filters
from .operation import Operation, Scope
from .views import view_of

_NAME_CHARS: Final = 200
_QUERY_CHARS: Final = 2_000
_PATH_CHARS: Final = 4_096
_OWN_FILES: Final = re.compile(r"memory(?:/|\Z)|(?:MEMORY|USER)[^/]*\.md\Z")


@Operation("GET", "/api/sessions")
async def index(scope: Scope, query: schemas.SessionQuery) -> schemas.SessionPage:
    """List sessions, the newest first."""
    limit = scope.page_limit(query.limit)

    def read(db: sqlite3.Connection) -> schemas.SessionPage:
        rows, total = sessions.page(db, query.status, limit, query.offset)
        return schemas.SessionPage([_view(db, session) for session in rows], total)

    return await scope.read(read)


@Operation("POST", "/api/sessions", role="write", statuses=(201,))
async def start(scope: Scope, body: schemas.SessionBody) -> schemas.SessionView:
    """Open a session."""
    session = Session(
        id=secrets.token_hex(8),
        name=checks.check_short(body.name, "name", _NAME_CHARS),
        conversation=checks.check_short(body.conversation, "conversation", _NAME_CHARS),
        user=checks.check_short(body.user, "user", _NAME_CHARS),
        category=scope.category(body.category) or "",
        paths=tuple(map(_path, body.paths)),
        created_at=scope.now,
        updated_at=scope.now,
    )
    async with scope.store(create=True) as store:
        await store.write(lambda tx: sessions.put(tx, session))
        return await _brought(scope, store, session.id)


@Operation("GET", "/api/sessions/{id}")
async def get(scope: Scope, id: str) -> schemas.SessionView:
    """Read a session."""
    return await scope.read(lambda db: _view(db, sessions.named(db, id)))


@Operation("POST", "/api/sessions/{id}/archive", role="write")
async def archive(scope: Scope, id: str) -> schemas.SessionView:
    """Close a session: it takes no question until it is reopened."""
    return await _set(scope, id, "archived")


@Operation("POST", "/api/sessions/{id}/reopen", role="write")
async def reopen(scope: Scope, id: str) -> schemas.SessionView:
    """Open a session again."""
    return await _set(scope, id, "active")


@Operation("GET", "/api/sessions/{id}/used")
async def used(scope: Scope, id: str, query: schemas.UsedQuery) -> schemas.UsedPage:
    """List what went into the answers of a session, the last answer first."""
    return schemas.UsedPage(*await scope.read(lambda db: _answers(scope, db, id, query)))


@Operation("GET", "/api/sessions/{id}/replay")
async def replay(scope: Scope, id: str, query: schemas.UsedQuery) -> schemas.Replayed:
    """Tell what of the answers of a session has changed since they were given."""

    def read(db: sqlite3.Connection) -> schemas.Replayed:
        key, answers, _ = _answers(scope, db, id, query)
        replayed = _replayed(db, answers, scope.now)
        return schemas.Replayed(
            key,
            replayed,
            sum(answer.changed for answer in replayed),
            sum(len(answer.used) for answer in replayed),
        )

    async with scope.store() as store:
        return await scope.daemon.agent_files.read(store, read)


# The handling of `session` in recall, the context block and the search of files.


async def entered(store: AgentStore, key: str | None) -> Session | None:
    """The session of a question, None without one; `NotFound`, or `Conflict` if it is archived."""
    if key is None:
        return None
    session = await store.read(lambda db: sessions.named(db, key))
    if session.status != "active":
        raise Conflict(
            f"session '{key}' is archived",
            field="session",
            hint="reopen it first: `thermocline sessions reopen ID`",
        )
    return session


def seen(session: Session | None, filters: Filters) -> Filters:
    """The filters limited to what its session sees; `InvalidInput` for another category."""
    if session is None or not is_isolated(session):
        return filters
    category = filters.category
    if category is not None and not f"{category}/".startswith(f"{session.category or category}/"):
        raise InvalidInput(
            f"session '{session.id}' sees the category '{session.category}' only", field="category"
        )
    if category is not None and not session.category:
        raise InvalidInput(f"session '{session.id}' sees no memories", field="category")
    return replace(filters, category=category or session.category or None, paths=session.paths)


def is_isolated(session: Session | None) -> bool:
    """Whether a session sees a part only, and must learn nothing of the rest."""
    return session is not None and bool(session.category or session.paths)


def versions_of(db: sqlite3.Connection, shown: Iterable[tuple[str, str]], now: float) -> list[Used]:
    """The content of an answer, each item by source and id, with the hash of its text."""
    by_source: dict[str, list[str]] = {}
    for source, key in shown:
        by_source.setdefault(source, []).append(key)
    fates = sessions.fates(db, by_source.get(MEMORIES.name, ()), now)
    return [
        Used(source, key, text_hash, fates.get(key) if source == MEMORIES.name else None)
        for source, keys in by_source.items()
        for key, text_hash in versions(db, source, keys).items()
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
        question = clear(query).text[:_QUERY_CHARS]
        await store.write(lambda tx: sessions.record(tx, session.id, via, question, used))


async def _set(scope: Scope, key: str, status: SessionStatus) -> schemas.SessionView:
    async with scope.store() as store:
        changed = await store.write(lambda tx: sessions.set_status(tx, key, status))
        if status == "active":
            return await _brought(scope, store, changed.id)
        return await store.read(lambda db: _view(db, changed))


async def _brought(scope: Scope, store: AgentStore, key: str) -> schemas.SessionView:
    """The session, after its files were read again, or the wait for that has timed out."""
    rules = scope.settings.index
    if rules.on_session_start:
        await scope.daemon.indexes.catch_up(store, rules.search_wait_ms / 1000)
    return await scope.daemon.agent_files.read(
        store, lambda db: _view(db, sessions.SESSIONS.get(db, key))
    )


def _answers(
    scope: Scope, db: sqlite3.Connection, key: str, query: schemas.UsedQuery
) -> tuple[str, list[AnswerUsed], int]:
    key = sessions.named(db, key).id
    if query.answer is None:
        return key, *sessions.answers(db, key, scope.page_limit(query.limit), query.offset)
    answer = sessions.answer(db, key, query.answer)
    if answer is None:
        raise NotFound(f"session '{key}' has no answer '{query.answer}'", field="answer")
    return key, [answer], 1


def _replayed(
    db: sqlite3.Connection, answers: Sequence[AnswerUsed], now: float
) -> list[schemas.ReplayedAnswer]:
    ids: dict[str, set[str]] = {}
    for answer in answers:
        for item in answer.used:
            ids.setdefault(item.source, set()).add(item.id)
    current = {source: versions(db, source, keys) for source, keys in ids.items()}
    fates = sessions.fates(db, ids.get(MEMORIES.name, ()), now)
    replayed: list[schemas.ReplayedAnswer] = []
    for answer in answers:
        items = [_item(item, current[item.source], fates) for item in answer.used]
        changed = sum(item.change != "same" for item in items)
        replayed.append(view_of(schemas.ReplayedAnswer, answer, used=tuple(items), changed=changed))
    return replayed


def _item(
    item: Used, current: Mapping[str, str], fates: Mapping[str, Fate]
) -> schemas.ReplayedItem:
    now = current.get(item.id)
    change: schemas.Change = "same" if now == item.hash else "gone" if now is None else "changed"
    if change != "same" and item.source == CHUNKS.name:
        beside = [
            text_hash for key, text_hash in current.items() if file_of(key) == file_of(item.id)
        ]
        change = "moved" if item.hash in beside else "changed" if beside else "gone"
    if change == "same" and item.source == MEMORIES.name:
        fate = fates.get(item.id)
        change = fate if fate is not None and fate != item.fate else "same"
    return view_of(schemas.ReplayedItem, item, change=change, now=UNSET if now is None else now)


def _view(db: sqlite3.Connection, session: Session) -> schemas.SessionView:
    counted = sessions.counted(db, session.id)
    return view_of(
        schemas.SessionView,
        session,
        last_active_at=max(session.updated_at, counted.last_at or 0.0),
        answers=counted.answers,
    )


def _path(prefix: str) -> str:
    path = checks.check_short(prefix, "paths", _PATH_CHARS)
    if not path:
        raise InvalidInput("name no blank path", field="paths")
    if not path.startswith("/") and not _OWN_FILES.match(path):
        raise InvalidInput(
            f"give the whole path (got '{path}')",
            field="paths",
            hint="only the agent's own MEMORY.md, USER.md and memory/ are named without a folder",
        )
    return path
