"""profClaw's tools: its search finds notes, conversations and watched files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..recall.recall import Hit
from ..recall.sources import CHUNKS, MEMORIES
from ..shapes import profclaw as shapes
from ..shapes.files import LinesQuery
from ..shapes.recall import RecallBody
from ..store.conversations import PATH
from . import files, memories
from . import recall as recalling
from .files import found_chunk
from .operation import Run
from .scope import Scope
from .views import view_of

# The paths of the agent's own notes in the workspace.
_NOTES: Final = ("MEMORY.md", "memory/")
_MEMORY: Final = "memory://"
# The results among which those of one kind are chosen.
_MOST: Final = 100


async def search(scope: Scope, asked: shapes.ProfSearch) -> shapes.ProfFound:
    """Search chunks and memories; a memory of a conversation has its `chat://` path."""
    limit = asked.max_results if asked.source == "all" else _MOST
    least = asked.min_score or None
    body = RecallBody(query=asked.query, limit=limit, min_relevance=least)
    done = await recalling.answered(scope, body, (MEMORIES.name, CHUNKS.name))
    chunks = [_chunk(hit) for hit in done.answer.hits]
    chosen = [one for one in chunks if asked.source in {"all", _source(one.path)}]
    return shapes.ProfFound(
        query=asked.query,
        method="fts",
        total_candidates=len(chosen),
        chunks=chosen[: asked.max_results],
    )


def _chunk(hit: Hit) -> shapes.ProfChunk:
    if hit.source == CHUNKS.name:
        return view_of(shapes.ProfChunk, found_chunk(hit))
    memory = hit.memory
    path = f"{PATH}{memory.group}" if memory.group else _MEMORY + memory.id
    return shapes.ProfChunk(memory.id, path, 1, 1, memory.text, round(hit.relevance, 3))


async def get(scope: Scope, asked: shapes.ProfGet) -> shapes.ProfLines:
    """Read lines; a memory has one."""
    if asked.path.startswith(_MEMORY):
        memory = await memories.get(scope, asked.path.removeprefix(_MEMORY))
        return shapes.ProfLines(path=asked.path, from_line=1, to_line=1, lines=1, text=memory.text)
    read = await files.get(
        scope, LinesQuery(path=asked.path, from_line=asked.first, lines=asked.lines)
    )
    return view_of(shapes.ProfLines, read, lines=read.total_lines)


async def stats(scope: Scope, asked: shapes.ProfNothing) -> shapes.ProfStats:  # noqa: ARG001 - as every tool
    """Count what is indexed."""
    found = await files.stats(scope)
    last = found.state.last_sync_at
    return shapes.ProfStats(
        total_files=found.files,
        total_chunks=found.chunks,
        total_tokens_estimate=found.tokens,
        last_sync_at=None if last is None else int(1_000 * last),
    )


def _source(path: str) -> str:
    if path.startswith(PATH):
        return "chat"
    return "memory" if path.startswith((*_NOTES, _MEMORY)) else "custom"


RUN: Final[Mapping[str, Run]] = {"memory_search": search, "memory_get": get, "memory_stats": stats}
