"""The URLs, commands and paths of a text, and the URLs of all memories."""

from __future__ import annotations

from typing import Final

from ..memory.metadata import extract
from ..shapes.metadata import (
    LinkPage,
    LinksQuery,
    LinkView,
    MetadataCounts,
    MetadataFound,
    TextBody,
)
from ..store import selecting
from .operation import operation
from .scope import Scope
from .views import memory_view


async def find(_scope: Scope, body: TextBody) -> MetadataFound:
    """Extract URLs, commands and paths from a text. Nothing is stored."""
    found = extract(body.text)
    counts = MetadataCounts(len(found.urls), len(found.commands), len(found.paths))
    return MetadataFound(found, counts)


async def links(scope: Scope, query: LinksQuery) -> LinkPage:
    """Every stored URL with its memories, best first."""
    limit = scope.page_limit(query.limit)
    async with scope.store() as store:
        scoring = store.rules.scoring
        found, total = await store.read(
            lambda db: selecting.links(
                db, limit=limit, offset=query.offset, now=scope.now, scoring=scoring
            )
        )

    def view(link: selecting.Link) -> LinkView:
        memories = [memory_view(memory, scope.now, scoring) for memory in link.memories]
        return LinkView(link.url, link.count, memories)

    return LinkPage([view(link) for link in found], total)


OPERATIONS: Final = (
    operation("GET", "/api/metadata/urls", links),
    operation("POST", "/api/metadata", find, agent=False),
)
