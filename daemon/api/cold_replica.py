"""`/api/cold/init` and `/api/cold/search`: the archive in a database, whatever is here of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from thermocline.sync import Replica, Row

from ..memory.indexing import index_text
from ..memory.records import Memory
from ..memory.scoring import Scoring
from ..recall.query import parse
from ..store import arrived
from .calls import Call, Reply, Route
from .databases import Database, ask
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

    async def prepare(replica: Replica) -> None:
        await replica.prepare(call.now)

    await ask(call, wish, prepare, create=True)
    return Reply(Initialized())


async def search(call: Call) -> Reply:
    """Search a database, which holds the warm memories as well."""
    wish = await call.body(ColdSearch)
    words = parse(wish.query).words[:_MOST_WORDS]

    async def find(replica: Replica) -> list[Row]:
        return await replica.search(words, wish.limit)

    rows = await ask(call, wish, find)
    constants = call.settings.scoring
    scoring = Scoring(constants.half_life_days, constants.reinforcement_boost)
    found = (memory for memory in arrived.shown(rows, call.now) if not memory.expired(call.now))
    return Reply(ColdFound([_hit(memory, words, call.now, scoring) for memory in found]))


def _hit(memory: Memory, words: Sequence[str], now: float, scoring: Scoring) -> HitView:
    text = index_text(memory.text).lower()
    share = sum(word in text for word in words) / len(words) if words else 0.0
    fields = memory_fields(memory, now, scoring)
    return HitView(**fields, relevance=round(share, 6), search_method=_METHOD)


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
