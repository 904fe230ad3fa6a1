"""The context block: what an agent reads before its turn."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ..errors import InvalidInput, ThermoclineError
from ..files.agent_files import long_warning
from ..memory import agent_files
from ..memory.messages import estimated_tokens
from ..recall.context import SOURCE_OF, read_block
from ..recall.context_items import FRAME_TOKENS, FilledSection, plain, thermocline, written
from ..recall.context_reading import BlockReading, BlockRequest
from ..recall.context_systems import SYSTEMS, block_of
from ..recall.sources import MEMORIES
from ..schemas.recall import ContextBlock, ContextItem, ContextQuery, ContextSection
from ..store.records import agent_entries
from ..store.records.selecting import Filters
from ..vectors.vectors import Near
from . import sessions
from .files import read_current
from .operation import Operation, Scope
from .views import view_of

# An agent waits for its block before each turn.
_WAIT_SECONDS: Final = 0.3


class _Made(msgspec.Struct):
    """A block, whether memories answer its query, and the lines of the knowledge."""

    block: ContextBlock
    lines: int
    answers: bool = False


@Operation("POST", "/api/context", tool="context", also_get=True)
async def ask(scope: Scope, body: ContextQuery) -> ContextBlock:
    """What the agent reads before its turn: what it always knows, and what a query finds."""
    started, scope = time.perf_counter(), scope.of_user(body.user)
    if body.session is not None and body.format in SYSTEMS:
        raise InvalidInput(f"format '{body.format}' knows no session", field="session")
    if body.found and body.format in SYSTEMS:
        raise InvalidInput(f"format '{body.format}' has what it has", field="found")
    # TinyClaw's agents find their folder when they first call.
    is_first = body.format == "tinyclaw" and scope.leaves_traces
    async with scope.store(create=is_first) as store:
        session = await sessions.entered(store, body.session)
        seen = sessions.seen(session, Filters())
        is_asked = bool(body.query.strip())
        near = await scope.daemon.vectors.near(store, body.query) if is_asked else Near()
        request = BlockRequest(
            agent=scope.agent,
            query=body.query,
            now=scope.now,
            local=scope.zone,
            rules=scope.settings,
            filters=seen,
            isolated=sessions.is_isolated(session),
            found=body.found,
            max_tokens=body.max_tokens,
            nearness=near.nearness,
        )
        if scope.leaves_traces:
            # On a disk that refuses writes, the block is given all the same.
            with suppress(ThermoclineError):
                await scope.daemon.agent_files.make_missing(store)
        reading = partial(
            scope.daemon.agent_files.read,
            store,
            partial(_made, request=request, body=body),
            seconds=scope.settings.limits.query_seconds,
        )
        synced: bool | UnsetType = UNSET
        if is_asked:
            wait = min(_WAIT_SECONDS, scope.settings.index.search_wait_ms / 1000)
            built, synced = await read_current(scope, store, seen, wait, reading)
        else:
            built = await reading()
        if built.answers and scope.leaves_traces:
            # Nobody asked for what is in it, so that it does not count as used.
            store.note_answer((), len(built.block.text or ""))
    scope.daemon.minutes.note_recall(scope.agent, (time.perf_counter() - started) * 1000)
    built.block.auto_synced, built.block.note = synced, near.note or UNSET
    if built.lines > agent_files.KNOWLEDGE_LINES and not sessions.is_isolated(session):
        built.block.warnings = [long_warning(built.lines)]
    return built.block


def _made(db: sqlite3.Connection, request: BlockRequest, body: ContextQuery) -> _Made:
    lines = agent_entries.part(db, agent_entries.KNOWLEDGE).lines
    if body.format in SYSTEMS:
        # Those systems search memories only.
        text = block_of(body.format, BlockReading(db, request, frozenset({MEMORIES.name})))
        block = ContextBlock(format=body.format, tokens=estimated_tokens(text), text=text)
        return _Made(block, lines)
    inner = replace(request, max_tokens=body.max_tokens - FRAME_TOKENS)
    at, zone = request.shown_at, request.local
    sections = read_block(db, inner, partial(written, now=at, zone=zone))
    text = thermocline(sections, request.agent, at, zone)
    block = ContextBlock(format=body.format, tokens=estimated_tokens(text))
    if body.format == "json":
        block.sections = [_section(section, request.now) for section in sections]
    else:
        block.text = text
    answers = any(
        SOURCE_OF.get(section.name) == MEMORIES.name and item.relevance is not None
        for section in sections
        for item in section.items
    )
    return _Made(block, lines, answers)


def _section(section: FilledSection, now: float) -> ContextSection:
    items = [
        view_of(
            ContextItem,
            item,
            text=plain(item.whole),
            age_seconds=None if item.at is None else max(0.0, round(now - item.at, 3)),
            cut=item.is_cut,
            relevance=None if item.relevance is None else round(item.relevance, 6),
        )
        for item in section.items
    ]
    return ContextSection(section.name, items, section.left_out)
