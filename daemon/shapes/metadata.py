"""The references of a text, and those of all memories."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ..memory.records import Metadata
from .common import Limit, Offset
from .memory import MemoryView


class TextBody(Struct, forbid_unknown_fields=True):
    """The text to search; only the limit of a body applies."""

    text: Annotated[str, Meta(min_length=1)]


class MetadataCounts(Struct):
    """How many of each were found."""

    urls_count: int
    commands_count: int
    paths_count: int


class MetadataFound(Struct):
    """What was found, in the order of the text."""

    metadata: Metadata
    summary: MetadataCounts


class UrlQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which URLs to list."""

    limit: Limit = 50
    offset: Offset = 0


class UrlView(Struct):
    """A URL, the number of memories that mention it, and the first ten of them by score."""

    url: str
    count: int
    memories: list[MemoryView]


class UrlPage(Struct):
    """A page of URLs, those of the memories with the highest scores first."""

    results: list[UrlView]
    total: int
