"""profClaw's tools: its search finds notes, conversations and watched files."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

from ..errors import InvalidInput
from ..recall.answer import Hit
from ..recall.context_reading import quoted
from ..recall.sources import CHUNKS, MEMORIES
from ..schemas import profclaw as schemas
from ..schemas.recall import RecallBody
from ..store.records.conversations import PATH, line_of
from . import files, memories
from . import recall as recalling
from .files import chunk_view
from .operation import Run, Scope
from .views import view_of

_MEMORY: Final = "memory://"


async def search(scope: Scope, arguments: schemas.ProfSearch) -> schemas.ProfFound:
    """Search chunks and memories; a memory of a conversation has its `chat://` path."""
    least = arguments.min_score or None
    body = RecallBody(query=arguments.query, limit=arguments.max_results, min_relevance=least)
    place = None if arguments.source == "all" else arguments.source
    recalled = await recalling.answered(scope, body, (MEMORIES.name, CHUNKS.name), place)
    hits = recalled.answer.hits
    lines = await scope.read(lambda db: [_line(db, hit) for hit in hits])
    chunks = [_chunk(hit, line) for hit, line in zip(hits, lines, strict=True)]
    return schemas.ProfFound(
        query=arguments.query,
        method="fts",
        total_candidates=len(chunks),
        chunks=chunks,
        auto_synced=recalled.auto_synced,
    )


def _line(db: sqlite3.Connection, hit: Hit) -> int:
    """The line of a turn in its conversation, at which `memory_get` has it."""
    is_turn = hit.source == MEMORIES.name and hit.memory.position is not None
    return line_of(db, hit.memory) if is_turn else 1


def _chunk(hit: Hit, line: int) -> schemas.ProfChunk:
    if hit.source == CHUNKS.name:
        return view_of(schemas.ProfChunk, chunk_view(hit))
    memory = hit.memory
    path = f"{PATH}{memory.group}" if memory.group else _MEMORY + memory.id
    text, score = quoted(memory, memory.text), round(hit.relevance, 3)
    return schemas.ProfChunk(memory.id, path, line, line, text, score)


async def get(scope: Scope, arguments: schemas.ProfGet) -> schemas.ProfLines:
    """Read lines; a memory has one."""
    if arguments.path.startswith(_MEMORY):
        memory = await memories.get(scope, arguments.path.removeprefix(_MEMORY))
        return schemas.ProfLines(
            path=arguments.path, from_line=1, to_line=1, lines=1, text=quoted(memory, memory.text)
        )
    try:
        read = await files.get(scope, arguments.path, arguments.first, lines=arguments.lines)
    except InvalidInput as error:
        error.field = {"from_line": "from"}.get(error.field or "", error.field)
        raise
    return view_of(schemas.ProfLines, read, lines=read.total_lines)


async def stats(scope: Scope, _arguments: schemas.ProfNothing) -> schemas.ProfStats:
    """Count what is indexed."""
    index = await files.stats(scope)
    last = index.state.last_sync_at
    return schemas.ProfStats(
        total_files=index.files,
        total_chunks=index.chunks,
        total_tokens_estimate=index.tokens,
        last_sync_at=None if last is None else int(1_000 * last),
    )


RUN: Final[Mapping[str, Run]] = {"memory_search": search, "memory_get": get, "memory_stats": stats}
