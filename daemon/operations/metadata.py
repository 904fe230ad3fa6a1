"""The URLs, commands and paths of a text."""

from __future__ import annotations

from typing import Final

from ..memory.metadata import extract
from ..shapes.metadata import MetadataCounts, MetadataFound, TextBody
from .operation import operation
from .scope import Scope


async def find(_scope: Scope, body: TextBody) -> MetadataFound:
    """Extract URLs, commands and paths from a text. Nothing is stored."""
    found = extract(body.text)
    counts = MetadataCounts(len(found.urls), len(found.commands), len(found.paths))
    return MetadataFound(found, counts)


OPERATIONS: Final = (operation("POST", "/api/metadata", find, agent=False),)
