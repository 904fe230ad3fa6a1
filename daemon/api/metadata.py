"""`/api/metadata`: the URLs, commands and paths of a text, and the URLs of all memories."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ..memory.metadata import extract
from ..memory.records import Metadata
from ..store import selecting
from .calls import Call, Reply, Route
from .memories import Limit, Offset, capped
from .views import MemoryView, memory_view


class TextBody(msgspec.Struct, forbid_unknown_fields=True):
    """The text to look through, of any length that a body may have."""

    text: Annotated[str, Meta(min_length=1)]


class Summary(msgspec.Struct):
    """How many of each were found."""

    urls_count: int
    commands_count: int
    paths_count: int


class MetadataAnswer(msgspec.Struct):
    """What was found, in the order of the text."""

    metadata: Metadata
    summary: Summary


class LinksQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which page of the URLs."""

    limit: Limit = 50
    offset: Offset = 0


class LinkView(msgspec.Struct):
    """A stored URL, how many memories carry it, and the best 20 of those, the best first."""

    url: str
    count: int
    memories: list[MemoryView]


class Links(msgspec.Struct):
    """A page of the stored URLs, those of the best memories first, and how many there are."""

    results: list[LinkView]
    total: int


async def links(call: Call) -> Reply:
    """Every stored URL with its memories."""
    query = call.query(LinksQuery)
    limit = capped(call, query.limit)
    async with call.store() as store:
        scoring = store.rules.scoring
        found, total = await store.read(
            lambda db: selecting.links(
                db, limit=limit, offset=query.offset, now=call.now, scoring=scoring
            )
        )

    def view(link: selecting.Link) -> LinkView:
        memories = [memory_view(memory, call.now, scoring) for memory in link.memories]
        return LinkView(link.url, link.count, memories)

    return Reply(Links([view(link) for link in found], total))


async def find(call: Call) -> Reply:
    """Extract the references of a text. Nothing is stored."""
    found = extract((await call.body(TextBody)).text)
    summary = Summary(len(found.urls), len(found.commands), len(found.paths))
    return Reply(MetadataAnswer(found, summary))


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/metadata/urls",
        handler=links,
        summary="Every stored URL with its memories, best first",
        query=LinksQuery,
        answer=Links,
    ),
    Route(
        method="POST",
        path="/api/metadata",
        handler=find,
        summary="Extract URLs, commands and paths from a text",
        body=TextBody,
        answer=MetadataAnswer,
        agent=False,
    ),
)
