"""`/api/cold/init` and `/api/cold/search`: the archive as a database shows it to EvoClaw."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ..memory.metadata import extract
from ..memory.records import Memory
from ..recall.query import parse
from .calls import Call, Reply, Route
from .databases import Database, account_of
from .views import HitView, memory_fields

Limit = Annotated[int, Meta(ge=1, le=100)]
Text = Annotated[str, Meta(max_length=8192)]
# Each is looked for in every text that the database holds.
_MOST_WORDS: Final = 12
_METHOD: Final = "cold"


class Initialized(msgspec.Struct):
    """The tables are there."""

    initialized: bool = True


class ColdSearch(Database, kw_only=True, forbid_unknown_fields=True):
    """Words to look for in all that the database holds; without any, what matters most."""

    query: Text = ""
    limit: Limit = 10


class ColdFound(msgspec.Struct):
    """What holds most of the words comes first; `relevance` is its share of them."""

    results: list[HitView]


async def init(call: Call) -> Reply:
    """Make the tables that are missing."""
    wish = await call.body(Database) if call.request.body_exists else Database()
    await call.services.databases.prepare(await account_of(call, wish))
    return Reply(Initialized())


async def search(call: Call) -> Reply:
    """Search a database, which holds the warm memories as well."""
    wish = await call.body(ColdSearch)
    words = list(parse(wish.query).words[:_MOST_WORDS])
    account = await account_of(call, wish)
    found = await call.services.databases.search(account, call.agent, words, wish.limit)
    scoring = call.settings.scoring
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
        fields = memory_fields(memory, call.now, scoring)
        hits.append(HitView(**fields, relevance=round(share, 6), search_method=_METHOD))
    return Reply(ColdFound(hits))


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/cold/init",
        handler=init,
        summary="Make the tables of the replica, or of another database",
        role="write",
        body=Database,
        answer=Initialized,
    ),
    Route(
        method="POST",
        path="/api/cold/search",
        handler=search,
        summary="Search all memories that the replica, or another database, holds",
        body=ColdSearch,
        answer=ColdFound,
    ),
)
