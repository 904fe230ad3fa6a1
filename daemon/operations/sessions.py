"""Sessions: stretches of work that see a part of the memory."""

from __future__ import annotations

import re
import secrets
from typing import Annotated, Final

from msgspec import Meta
from msgspec.structs import replace

from ..errors import Conflict, InvalidInput
from ..memory import checks
from ..memory.records import Session, SessionStatus
from ..schemas import learning as schemas
from ..schemas.common import CategoryPath, Limit, Offset
from ..store.agent_store import AgentStore
from ..store.records import sessions
from ..store.records.selecting import Filters
from .operation import Operation, Scope

_NAME_CHARS: Final = 200
_PATH_CHARS: Final = 4_096
_Name = Annotated[str, Meta(max_length=_NAME_CHARS)]
_PathStart = Annotated[str, Meta(min_length=1, max_length=_PATH_CHARS)]
_OWN_FILES: Final = re.compile(r"memory(?:/|\Z)|(?:MEMORY|USER)[^/]*\.md\Z")


@Operation("GET", "/api/sessions")
async def index(
    scope: Scope, status: SessionStatus | None = None, limit: Limit = 50, offset: Offset = 0
) -> schemas.SessionPage:
    """List sessions, the newest first."""
    limit = scope.page_limit(limit)
    return schemas.SessionPage(
        *await scope.read(lambda db: sessions.page(db, status, limit, offset))
    )


@Operation("POST", "/api/sessions", role="write", statuses=(201,))
async def start(
    scope: Scope,
    name: _Name = "",
    category: CategoryPath | None = None,
    paths: Annotated[tuple[_PathStart, ...], Meta(max_length=64)] = (),
    conversation: _Name = "",
    user: _Name = "",
) -> Session:
    """Open a session.

    With a `category` or `paths` (prefixes of the paths of watched files), it only sees the memories
    below the one and the files below the other. With neither it sees everything.
    """
    session = Session(
        id=secrets.token_hex(8),
        name=checks.check_short(name, "name", _NAME_CHARS),
        conversation=checks.check_short(conversation, "conversation", _NAME_CHARS),
        user=checks.check_short(user, "user", _NAME_CHARS),
        category=scope.category(category) or "",
        paths=tuple(map(_path, paths)),
        created_at=scope.now,
        updated_at=scope.now,
    )
    async with scope.store(create=True) as store:
        await store.write(lambda tx: sessions.put(tx, session))
        # Its files are read again first, or the wait for that has timed out.
        rules = scope.settings.index
        if rules.on_session_start:
            await scope.daemon.indexes.catch_up(store, rules.search_wait_ms / 1000)
        return await scope.daemon.agent_files.read(
            store, lambda db: sessions.SESSIONS.get(db, session.id)
        )


@Operation("GET", "/api/sessions/{id}")
async def get(scope: Scope, id: str) -> Session:
    """Read a session."""
    return await scope.read(lambda db: sessions.named(db, id))


@Operation("POST", "/api/sessions/{id}/archive", role="write")
async def archive(scope: Scope, id: str) -> Session:
    """Close a session: it takes no question until that is undone."""
    async with scope.store() as store:
        return await store.write(lambda tx: sessions.archive(tx, id))


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
            hint=f"to open it again: `thermocline undo {session.id} --kind session`",
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
