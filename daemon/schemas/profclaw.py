"""profClaw's three tools, by its own names and shapes."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .common import Input
from .tools import Tool, doc


class ProfSearch(Input, rename={"max_results": "maxResults", "min_score": "minScore"}):
    """Search notes, conversations and watched files; memory_get reads on at the path and the lines
    that a result names.
    """  # noqa: D205 - a model reads it as one text

    query: Annotated[str, Meta(min_length=1, max_length=500)]
    max_results: Annotated[int, Meta(ge=1, le=20)] = 6
    min_score: Annotated[float, Meta(ge=0, le=1)] = 0.0
    source: Annotated[
        Literal["all", "memory", "chat", "custom"],
        doc("memory: notes; chat: conversations; custom: other watched files"),
    ] = "all"


class ProfChunk(Struct, rename="camel"):
    """A part of a file or a conversation."""

    id: str
    path: str
    start_line: int
    end_line: int
    text: str
    score: float


class ProfFound(Struct, kw_only=True, rename="camel"):
    """The chunks, best first; `auto_synced` if changed files were read for it."""

    query: str
    method: str
    total_candidates: int
    chunks: list[ProfChunk]
    auto_synced: bool | UnsetType = UNSET


class ProfGet(Input, rename={"first": "from"}):
    """Read lines of a note, a watched file, or a conversation (chat://NAME)."""

    path: Annotated[str, Meta(min_length=1, max_length=4_096)]
    first: Annotated[int, doc("The first line", ge=1)] = 1
    lines: Annotated[int, Meta(ge=1, le=100)] = 20


class ProfLines(Struct, kw_only=True, rename="camel"):
    """The lines, and the number of all."""

    path: str
    from_line: int
    to_line: int
    lines: int
    text: str


class ProfNothing(Input):
    """How much is indexed."""


class ProfStats(Struct, kw_only=True, rename="camel"):
    """`embedding_model` is empty: none is used."""

    total_files: int
    total_chunks: int
    total_tokens_estimate: int
    last_sync_at: int | None
    embedding_model: str = ""
    cached_embeddings: int = 0


TOOLS: Final = (
    Tool("memory_search", "Search", ProfSearch, ProfFound, reads=True),
    Tool("memory_get", "Read", ProfGet, ProfLines, reads=True),
    Tool("memory_stats", "Stats", ProfNothing, ProfStats, reads=True),
)
