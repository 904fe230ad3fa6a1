"""`/api/cold`: the archive."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from ..memory.records import Memory
from ..recall.recall import Request, Tuning, recall
from ..store.agent_store import AgentStore
from ..store.selecting import Filters, page
from .calls import Call, Reply, Route
from .memories import Limit, Offset, Page, capped
from .views import memory_view

_ARCHIVED: Final = Filters(archived=True)


class ColdQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Words to look for, or none for the newest.

    With words, the best matches are looked at, 200 or up to the end of the page, and `total`
    counts those.
    """

    query: str = ""
    limit: Limit = 10
    offset: Offset = 0


async def index(call: Call) -> Reply:
    """Archived memories, by words or the newest first."""
    query = call.query(ColdQuery)
    limit = capped(call, query.limit)
    async with call.store() as store:
        if query.query.strip():
            return Reply(await _matching(call, store, query, limit))
        return Reply(await _newest(call, store, query, limit))


async def _newest(call: Call, store: AgentStore, query: ColdQuery, limit: int) -> Page:
    scoring = store.rules.scoring

    def newest(db: sqlite3.Connection) -> tuple[list[Memory], int]:
        return page(
            db,
            _ARCHIVED,
            order="newest",
            limit=limit,
            offset=query.offset,
            now=call.now,
            scoring=scoring,
        )

    found, total = await store.read(newest)
    return Page([memory_view(memory, call.now, scoring) for memory in found], total)


async def _matching(call: Call, store: AgentStore, query: ColdQuery, limit: int) -> Page:
    scoring, settings = store.rules.scoring, call.settings.recall
    tuning = Tuning(settings.candidates, settings.common_word_share)
    request = Request(
        text=query.query,
        filters=_ARCHIVED,
        limit=max(tuning.candidates, query.offset + limit),
        now=call.now,
    )
    answer = await store.read(lambda db: recall(db, request, tuning))
    hits = [hit.memory for hit in answer.hits[query.offset : query.offset + limit]]
    views = [memory_view(memory, call.now, scoring) for memory in hits]
    return Page(views, len(answer.hits))


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/cold",
        handler=index,
        summary="The archive, by words or the newest first",
        query=ColdQuery,
        answer=Page,
    ),
)
