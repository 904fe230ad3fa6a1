"""profClaw's tools: its search finds notes, conversations and watched files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..shapes import profclaw as shapes
from ..shapes.files import LinesQuery
from ..shapes.recall import RecallBody
from ..store.conversations import PATH
from . import files, memories
from . import recall as recalling
from .operation import Run
from .scope import Scope
from .views import view_of

# The paths of the agent's own notes in the workspace.
_NOTES: Final = ("MEMORY.md", "memory/")
_MEMORY: Final = "memory://"


async def search(scope: Scope, asked: shapes.ProfSearch) -> shapes.ProfFound:
    """Search chunks and memories; a memory of a conversation has its `chat://` path."""
    body = RecallBody(query=asked.query, limit=asked.max_results, min_relevance=asked.min_score)
    answer = await recalling.ask(scope, body)
    found = [view_of(shapes.ProfChunk, one) for one in answer.chunks]
    found += [
        shapes.ProfChunk(one.id, one.path or _MEMORY + one.id, 1, 1, one.text, one.relevance)
        for one in answer.results
    ]
    chosen = [one for one in found if asked.source in {"all", _source(one.path)}]
    chosen.sort(key=lambda one: one.score, reverse=True)
    return shapes.ProfFound(
        query=asked.query,
        method="fts",
        total_candidates=len(chosen),
        chunks=chosen[: asked.max_results],
    )


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
