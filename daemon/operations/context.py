"""The context block: what an agent reads before its turn."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from functools import partial

import msgspec
from msgspec.structs import replace

from ..errors import InvalidInput, ThermoclineError
from ..files.own_files import long_warning
from ..memory import own_files
from ..memory.messages import estimated_tokens
from ..recall import context_formats, context_systems
from ..recall.context import read_block
from ..recall.context_items import Filled, Shown
from ..recall.context_reading import Asked, BlockReading
from ..recall.context_sections import SOURCE_OF
from ..recall.sources import MEMORIES
from ..shapes.context import ContextBlock, ContextItem, ContextQuery, ContextSection
from ..store import own_entries
from ..store.selecting import Filters
from ..store.sessions import Used
from . import sessions
from .operation import Operation
from .scope import Scope
from .views import view_of


class _Made(msgspec.Struct):
    """A block, whether memories answered its query, and the lines of the knowledge.

    `shown` is what a session records.
    """

    block: ContextBlock
    answers: bool
    lines: int
    shown: list[Used]


@Operation("POST", "/api/context", tool="context")
async def ask(scope: Scope, body: ContextQuery) -> ContextBlock:
    """What the agent reads before its turn: what it always knows, and what a query finds."""
    started = time.perf_counter()
    if body.session is not None and body.format in context_systems.SYSTEMS:
        raise InvalidInput(f"format '{body.format}' knows no session", field="session")
    if body.found and body.format in context_systems.SYSTEMS:
        raise InvalidInput(f"format '{body.format}' has what it has", field="found")
    async with scope.store() as store:
        session = await sessions.entered(store, body.session)
        seen = sessions.seen(session, Filters())
        asked = Asked(
            agent=scope.agent,
            query=body.query,
            now=scope.now,
            local=scope.zone,
            rules=store.rules,
            filters=seen,
            found=body.found,
            max_tokens=body.max_tokens,
        )
        if scope.leaves_traces:
            # On a disk that refuses writes, the block is given all the same.
            with suppress(ThermoclineError):
                await scope.daemon.own_files.make_missing(store)
        made = await scope.daemon.own_files.read(
            store,
            partial(_made, asked=asked, body=body),
            seconds=scope.settings.limits.query_seconds,
        )
        if made.answers and scope.leaves_traces:
            # Nobody asked for what is in it, so that it does not count as used.
            store.note_answer((), len(made.block.text or ""))
        await sessions.record(scope, store, session, "context", body.query, made.shown)
    scope.daemon.minutes.note_recall(scope.agent, (time.perf_counter() - started) * 1000)
    if made.lines > own_files.KNOWLEDGE_LINES:
        made.block.warnings = [long_warning(made.lines)]
    return made.block


@Operation("GET", "/api/context")
async def ask_by_url(scope: Scope, query: ContextQuery) -> ContextBlock:
    """The same for a query in the URL."""
    return await ask(scope, query)


def _made(db: sqlite3.Connection, asked: Asked, body: ContextQuery) -> _Made:
    lines = own_entries.part(db, own_entries.KNOWLEDGE).lines
    if body.format in context_systems.SYSTEMS:
        text = context_systems.block_of(body.format, BlockReading(db, asked))
        block = ContextBlock(format=body.format, tokens=estimated_tokens(text), text=text)
        return _Made(block, False, lines, [])
    inner = replace(asked, max_tokens=body.max_tokens - context_formats.FRAME_TOKENS)
    at, zone = asked.shown_at, asked.local
    sections = read_block(db, inner, partial(context_formats.written, now=at, zone=zone))
    text = context_formats.thermocline(sections, asked.agent, at, zone)
    made = ContextBlock(format=body.format, tokens=estimated_tokens(text))
    if body.format == "json":
        made.sections = [_section(one, asked.now) for one in sections]
    else:
        made.text = text
    answers = any(
        item.relevance is not None and SOURCE_OF.get(section.name) == MEMORIES.name
        for section in sections
        for item in section.items
    )
    shown = [
        (SOURCE_OF[one.name], item.id or item.source)
        for one in sections
        for item in one.items
        if SOURCE_OF.get(one.name) and body.session is not None
    ]
    return _Made(made, answers, lines, sessions.versions_of(db, shown, asked.now))


def _section(one: Filled, now: float) -> ContextSection:
    return ContextSection(one.name, [_item(item, now) for item in one.items], one.left_out)


def _item(item: Shown, now: float) -> ContextItem:
    return view_of(
        ContextItem,
        item,
        text=item.whole,
        age_seconds=None if item.at is None else max(0.0, round(now - item.at, 3)),
        cut=item.is_cut,
        relevance=None if item.relevance is None else round(item.relevance, 6),
    )
