"""The references of a text."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ..memory.records import Metadata


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
