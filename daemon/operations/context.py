"""The context block: what an agent reads before its turn."""

from __future__ import annotations

import sqlite3
import time
from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from ..errors import InvalidInput
from ..files.agent_files import long_warning
from ..memory import agent_files
from ..memory.messages import estimated_tokens
from ..recall.context import SOURCE_OF, read_block
from ..recall.context_items import (
    FRAME_TOKENS,
    BlockItem,
    FilledSection,
    plain,
    thermocline,
    written,
)
from ..recall.context_reading import BlockReading, BlockRequest
from ..recall.context_systems import SYSTEMS, block_of
from ..recall.sources import MEMORIES
from ..schemas.common import AgentName, Words
from ..schemas.recall import ContextBlock, ContextFormat, ContextItem, ContextSection
from ..store.agent_store import AgentStore
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
async def ask(
    scope: Scope,
    query: Words = "",
    max_tokens: Annotated[int, Meta(ge=200, le=8_000)] = 2_000,
    format: ContextFormat = "thermocline",
    session: str | None = None,
    found: bool = False,
    user: AgentName | None = None,
) -> ContextBlock:
    """What the agent reads before its turn: what it always knows, and what a query finds.

    Without a `query` it has what is always worth knowing. If all memories fit into `max_tokens`,
    about four characters each, all are in it. Formats other than `thermocline` and `json` are those
    of the systems they are named after. With a `session`, which needs `thermocline` or `json`, the
    block is limited to what that session sees. Nothing in a block counts as used. `found` leaves
    out everything that the query does not find, for a turn within a conversation; it needs
    `thermocline` or `json`. `user` names the agent, as in `/api/recall`.
    """
    started, scope = time.perf_counter(), scope.of_user(user)
    if session is not None and format in SYSTEMS:
        raise InvalidInput(f"format '{format}' knows no session", field="session")
    if found and format in SYSTEMS:
        raise InvalidInput(f"format '{format}' has what it has", field="found")
    # TinyClaw's agents find their folder when they first call.
    is_first = format == "tinyclaw" and scope.leaves_traces
    async with scope.store(create=is_first) as store:
        entered = await sessions.entered(store, session)
        near = await scope.daemon.vectors.near(store, query) if query.strip() else Near()
        request = BlockRequest(
            agent=scope.agent,
            query=query,
            now=scope.now,
            local=scope.zone,
            rules=scope.settings,
            filters=sessions.seen(entered, Filters()),
            isolated=sessions.is_isolated(entered),
            found=found,
            max_tokens=max_tokens,
            format=format,
            nearness=near.nearness,
        )
        built, synced = await _built(scope, store, request, format)
        if built.answers and scope.leaves_traces:
            # Nobody asked for what is in it, so that it does not count as used.
            store.note_answer((), len(built.block.text or ""))
    scope.daemon.minutes.note_recall(scope.agent, (time.perf_counter() - started) * 1000)
    built.block.auto_synced, built.block.note = synced, near.note or UNSET
    if built.lines > agent_files.KNOWLEDGE_LINES and not request.isolated:
        built.block.warnings = [long_warning(built.lines)]
    return built.block


async def _built(
    scope: Scope, store: AgentStore, request: BlockRequest, format: ContextFormat
) -> tuple[_Made, bool | UnsetType]:
    """The block, and of one with a query whether it has the files as they are now."""
    files = scope.daemon.agent_files
    await scope.make_own_files(store)
    make = partial(_made, request=request, format=format)
    seconds = scope.settings.limits.query_seconds
    reading = partial(files.read, store, make, seconds=seconds)
    if not request.query.strip():
        return await reading(), UNSET
    wait = min(_WAIT_SECONDS, scope.settings.index.search_wait_ms / 1000)
    return await read_current(scope, store, request.filters, wait, reading)


def _made(db: sqlite3.Connection, request: BlockRequest, format: ContextFormat) -> _Made:
    lines = agent_entries.part(db, agent_entries.KNOWLEDGE).lines
    if format in SYSTEMS:
        # Those systems search memories only.
        text = block_of(format, BlockReading(db, request, frozenset({MEMORIES.name})))
        block = ContextBlock(format=format, tokens=estimated_tokens(text), text=text)
        return _Made(block, lines)
    inner = replace(request, max_tokens=request.max_tokens - FRAME_TOKENS)
    at, zone = request.shown_at, request.local
    block = ContextBlock(format=format, tokens=0)
    if format == "json":
        sections = read_block(db, inner, lambda item: _json(_item(item, request.now)))
        block.sections = [_section(section, request.now) for section in sections]
        block.tokens = estimated_tokens(_json(block.sections)) if sections else 0
    else:
        sections = read_block(db, inner, partial(written, now=at, zone=zone))
        block.text = thermocline(sections, request.agent, at, zone)
        block.tokens = estimated_tokens(block.text)
    answers = any(
        SOURCE_OF.get(section.name) == MEMORIES.name and item.relevance is not None
        for section in sections
        for item in section.items
    )
    return _Made(block, lines, answers)


def _section(section: FilledSection, now: float) -> ContextSection:
    return ContextSection(
        section.name, [_item(item, now) for item in section.items], section.left_out
    )


def _item(item: BlockItem, now: float) -> ContextItem:
    return view_of(
        ContextItem,
        item,
        text=plain(item.whole),
        age_seconds=None if item.at is None else max(0.0, round(now - item.at, 3)),
        cut=item.is_cut,
        relevance=None if item.relevance is None else round(item.relevance, 6),
    )


def _json(value: ContextItem | list[ContextSection]) -> str:
    return msgspec.json.encode(value).decode()
