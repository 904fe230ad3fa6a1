"""`/api/metadata`: the URLs, commands and paths of a text."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ..memory.metadata import extract
from ..memory.records import Metadata
from .calls import Call, Reply, Route


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


async def find(call: Call) -> Reply:
    """Extract the references of a text. Nothing is stored."""
    found = extract((await call.body(TextBody)).text)
    summary = Summary(len(found.urls), len(found.commands), len(found.paths))
    return Reply(MetadataAnswer(found, summary))


ROUTES: Final = (
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
