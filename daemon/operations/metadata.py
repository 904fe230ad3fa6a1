"""The URLs, commands and paths of a text, and the URLs of all memories."""

from __future__ import annotations

from typing import Final

from ..memory.metadata import extract
from ..shapes.metadata import MetadataCounts, MetadataFound, TextBody, UrlPage, UrlQuery, UrlView
from ..store.selecting import urls
from .operation import operation
from .scope import Scope
from .views import memory_view


async def find(_scope: Scope, body: TextBody) -> MetadataFound:
    """Extract URLs, commands and paths from a text. Nothing is stored."""
    found = extract(body.text)
    counts = MetadataCounts(len(found.urls), len(found.commands), len(found.paths))
    return MetadataFound(found, counts)


async def list_urls(scope: Scope, query: UrlQuery) -> UrlPage:
    """List the URLs that memories mention, with those memories, best first."""
    limit, now = scope.page_limit(query.limit), scope.now
    async with scope.store() as store:
        scoring = store.rules.scoring
        found, total = await store.read(
            lambda db: urls(db, limit=limit, offset=query.offset, now=now, scoring=scoring),
            seconds=scope.settings.limits.query_seconds,
        )
    return UrlPage(
        [
            UrlView(url, count, [memory_view(memory, now, scoring) for memory in memories])
            for url, count, memories in found
        ],
        total,
    )


OPERATIONS: Final = (
    operation("POST", "/api/metadata", find, agent=False),
    operation("GET", "/api/metadata/urls", list_urls),
)
