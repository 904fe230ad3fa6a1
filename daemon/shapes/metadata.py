"""The references of a text, and the URLs of all memories."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ..memory.records import Metadata
from .common import Limit, Offset
from .memory import MemoryView


class TextBody(Struct, forbid_unknown_fields=True):
    """The text to look through, of any length that a body may have."""

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


class LinksQuery(Struct, forbid_unknown_fields=True):
    """Which page of the URLs."""

    limit: Limit = 50
    offset: Offset = 0


class LinkView(Struct):
    """A stored URL, how many memories carry it, and the best 20 of those, the best first."""

    url: str
    count: int
    memories: list[MemoryView]


class LinkPage(Struct):
    """A page of the stored URLs, those of the best memories first, and how many there are."""

    results: list[LinkView]
    total: int
