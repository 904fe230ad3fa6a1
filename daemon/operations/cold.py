"""The archive: of this device, and of a database in EvoClaw's shape."""

from __future__ import annotations

from typing import Final

from ..memory.metadata import extract
from ..memory.records import Memory
from ..recall.query import parse
from ..recall.recall import Request, recall
from ..recall.sources import MEMORIES
from ..shapes.cold import ColdFound, ColdQuery, ColdSearchBody, DatabaseBody, Initialized
from ..shapes.memory import MemoryPage
from ..shapes.recall import HitView
from ..store.selecting import Filters
from .memories import listed
from .operation import Operation
from .scope import Scope
from .sync import account_of
from .views import memory_fields, memory_view

_ARCHIVED: Final = Filters(archived=True)
# The database is searched for each of them, in every text.
_MOST_WORDS: Final = 12
_METHOD: Final = "cold"


@Operation("GET", "/api/cold")
async def index(scope: Scope, query: ColdQuery) -> MemoryPage:
    """List the archive, by words or the newest first."""
    if not query.query.strip():
        return await listed(scope, _ARCHIVED, query.limit, query.offset)
    end, tuning = query.offset + scope.page_limit(query.limit), scope.settings.recall
    request = Request(
        text=query.query,
        sources=frozenset({MEMORIES.name}),
        min_relevance=0.0,
        filters=_ARCHIVED,
        limit=max(tuning.candidates, end),
        weights=tuning.weights,
        preset=tuning.preset,
        scoring=scope.settings.scoring,
        now=scope.now,
    )
    answer = await scope.read(lambda db: recall(db, request, tuning), timed=True)
    views = [memory_view(scope, hit.memory) for hit in answer.hits[query.offset : end]]
    return MemoryPage(views, len(answer.hits))


@Operation("POST", "/api/cold/init", role="write")
async def init(scope: Scope, body: DatabaseBody | None = None) -> Initialized:
    """Make the tables of the replica, or of another database, that are missing."""
    await scope.daemon.databases.prepare(await account_of(scope, body or DatabaseBody()))
    return Initialized()


@Operation("POST", "/api/cold/search")
async def search(scope: Scope, body: ColdSearchBody) -> ColdFound:
    """Search all memories that the replica, or another database, holds."""
    words = list(parse(body.query).telling[:_MOST_WORDS])
    account = await account_of(scope, body)
    found = await scope.daemon.databases.search(account, scope.agent, words, body.limit)
    scoring = scope.settings.scoring
    hits = []
    for one in found:
        memory = Memory(
            id=one.id,
            text=one.text,
            category=one.category,
            importance=one.importance,
            metadata=extract(one.text),
            created_at=one.created_at,
            updated_at=one.created_at,
            access_count=one.access_count,
        )
        share = one.hits / len(words) if words else 0.0
        fields = memory_fields(memory, scope.now, scoring)
        hits.append(HitView(**fields, relevance=round(share, 6), search_method=_METHOD))
    return ColdFound(hits)
