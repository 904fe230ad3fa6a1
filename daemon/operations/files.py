"""Watched files: searching their chunks, reading their lines, and what is watched."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET

from ..errors import Forbidden, InvalidInput, NotFound
from ..files import walker
from ..files.chunk_index import IndexStanding
from ..recall.recall import Hit, Request
from ..recall.sources import CHUNKS
from ..shapes import files as shapes
from ..store import chunk_tables, conversations, watched
from ..store.agent_store import AgentStore
from ..store.selecting import Filters
from . import sessions
from .operation import Operation
from .scope import Scope
from .views import either, view_of

_ADDING_SECONDS: Final = 2.0


@Operation("POST", "/api/files/search")
async def search(scope: Scope, body: shapes.FileSearch) -> shapes.FilesFound:
    """Search the watched files."""
    started = time.perf_counter()
    rules, tuning = scope.settings.index, scope.settings.recall
    least = either(body.min_score, body.minScore, "min_score", rules.min_score)
    async with scope.store() as store:
        session = await sessions.entered(store, body.session)
        request = Request(
            text=body.query,
            filters=sessions.seen(session, Filters()),
            sources=frozenset({CHUNKS.name}),
            limit=body.max_results or body.maxResults or rules.max_results,
            min_relevance=least or None,
            weights=tuning.weights,
            now=scope.now,
            local=scope.zone,
        )

        read = sessions.recalling(request, tuning, session, scope.now)
        wait = rules.search_wait_ms if body.wait_ms is None else body.wait_ms
        synced = await _bring(scope, store, wait / 1000)
        answer, used = await store.read(read, seconds=scope.settings.limits.query_seconds)
        await sessions.record(scope, store, session, "files", body.query, used)
    return shapes.FilesFound(
        query=body.query,
        chunks=[found_chunk(hit) for hit in answer.hits],
        searched=answer.searched[CHUNKS.name],
        took_ms=round((time.perf_counter() - started) * 1000, 3),
        auto_synced=UNSET if synced is None else synced,
        why=answer.why or UNSET,
    )


@Operation("GET", "/api/files/search")
async def search_by_url(scope: Scope, query: shapes.FileSearch) -> shapes.FilesFound:
    """Search the watched files by a question in the URL."""
    return await search(scope, query)


@Operation("GET", "/api/files/get")
async def get(scope: Scope, query: shapes.LinesQuery) -> shapes.FileLines:
    """Read lines of a watched file as it is now, or turns of a conversation."""
    if query.path.startswith(conversations.PATH):
        return await _turns(scope, query)
    async with scope.store() as store:
        index = scope.daemon.indexes.of(store) if store.exists else None
        place = index.place_of(query.path) if index is not None else None
        known = await store.read(lambda db: chunk_tables.digest_of(db, query.path))
        if place is None or known is None:
            raise NotFound(f"'{query.path}' is not a watched file", field="path")
        limit = scope.settings.index.max_file_kb * 1024
        text = await asyncio.to_thread(_text_of, place[0], place[1], limit)
    return _lines(query, text.splitlines(keepends=True))


async def _turns(scope: Scope, query: shapes.LinesQuery) -> shapes.FileLines:
    name = query.path.removeprefix(conversations.PATH)
    found = await scope.read(lambda db: conversations.transcript(db, name))
    if not found:
        raise NotFound(f"nothing is kept of a conversation '{name}'", field="path")
    return _lines(query, [f"{line}\n" for line in found])


def _lines(query: shapes.LinesQuery, lines: Sequence[str]) -> shapes.FileLines:
    last = len(lines) if query.to_line is None else query.to_line
    if query.lines is not None:
        last = min(last, query.from_line + query.lines - 1)
    last = min(last, len(lines))
    first = query.from_line
    if first > max(last, 1):
        raise InvalidInput(
            f"the lines {first} to {last} are none: '{query.path}' has {len(lines)}",
            field="from_line",
        )
    return shapes.FileLines(query.path, first, last, len(lines), "".join(lines[first - 1 : last]))


@Operation("POST", "/api/files/get")
async def get_by_body(scope: Scope, body: shapes.LinesQuery) -> shapes.FileLines:
    """Read lines of a watched file as it is now, with the request in the body."""
    return await get(scope, body)


@Operation("POST", "/api/files/sync", role="write")
async def sync(scope: Scope) -> shapes.FilesSynced:
    """Look at every watched file now, and update the index."""
    started = time.perf_counter()
    async with scope.store(exists=True) as store:
        done = await scope.daemon.indexes.of(store).sync()
        totals = await store.read(chunk_tables.totals)
    return shapes.FilesSynced(
        **msgspec.structs.asdict(done),
        files=totals.files,
        chunks=totals.chunks,
        took_ms=round((time.perf_counter() - started) * 1000, 3),
    )


@Operation("GET", "/api/files/list")
async def index(scope: Scope, query: shapes.FilesQuery) -> shapes.FilePage:
    """List the watched files."""
    limit = scope.page_limit(query.limit)
    found, total = await scope.read(
        lambda db: chunk_tables.page(db, query.prefix, limit, query.offset, left_out=query.left_out)
    )
    return shapes.FilePage([view_of(shapes.FileView, one) for one in found], total)


@Operation("GET", "/api/files/chunks")
async def chunks(scope: Scope, query: shapes.ChunksQuery) -> shapes.ChunkList:
    """List the chunks of a watched file, by their lines."""
    known, found = await scope.read(
        lambda db: (chunk_tables.digest_of(db, query.path), chunk_tables.chunks_of(db, query.path))
    )
    if known is None:
        raise NotFound(f"'{query.path}' is not a watched file", field="path")
    return shapes.ChunkList(
        query.path,
        [shapes.ChunkPlace(one.id, one.first_line, one.last_line, one.heading) for one in found],
    )


@Operation("GET", "/api/files/stats")
async def stats(scope: Scope) -> shapes.FilesStats:
    """Show how much is indexed, what is watched, and whether the index is current."""
    async with scope.store() as store:
        totals = await store.read(chunk_tables.totals)
        if store.exists:
            found = scope.daemon.indexes.of(store)
            state, paths = found.state, [shapes.WatchedPath(*one) for one in found.paths()]
        else:
            state, paths = IndexStanding(), []
    return shapes.FilesStats(
        files=totals.files,
        left_out=totals.left_out,
        chunks=totals.chunks,
        tokens=totals.chars // 4,
        index_bytes=totals.bytes,
        state=view_of(shapes.IndexState, state),
        paths=paths,
    )


@Operation("POST", "/api/files/paths", role="write")
async def add(scope: Scope, body: shapes.PathBody) -> shapes.PathAdded:
    """Watch a folder or file.

    Outside of the agent's workspace, and of the paths that the configuration grants the agent, only
    root and the daemon's own user may.
    """
    path = await asyncio.to_thread(_real, body.path)
    _check_place(scope, path)
    async with scope.store(create=True) as store:
        added = await store.write(lambda tx: watched.add(tx, path))
        found = scope.daemon.indexes.of(store)
        if added:
            found.doubt()
        in_step = await scope.daemon.indexes.in_step(store, _ADDING_SECONDS)
        state = found.state
    return shapes.PathAdded(path, added, in_step, state.watched_files, state.to_read)


@Operation("DELETE", "/api/files/paths", role="write")
async def remove(scope: Scope, query: shapes.PathBody) -> shapes.PathRemoved:
    """Stop watching a path that was added; its chunks are removed."""
    async with scope.store() as store:
        known = await store.read(watched.paths)
        # A path that was removed, or is a link now, is removed as it was added.
        real = await asyncio.to_thread(os.path.realpath, query.path)
        path = query.path if query.path in known else real
        await store.write(lambda tx: watched.remove(tx, path))
        scope.daemon.indexes.of(store).doubt()
        await scope.daemon.indexes.in_step(store, _ADDING_SECONDS)
    return shapes.PathRemoved(path)


def found_chunk(hit: Hit) -> shapes.FoundChunk:
    """A chunk as answers show it."""
    return view_of(
        shapes.FoundChunk,
        hit.item,
        start_line=hit.item.first_line,
        end_line=hit.item.last_line,
        score=round(hit.relevance, 3),
    )


async def _bring(scope: Scope, store: AgentStore, seconds: float) -> bool | None:
    """Wait for an index that is older than the files; None: it was current, or is not searched."""
    if not store.exists:
        return None
    indexes = scope.daemon.indexes
    if not scope.settings.index.on_search:
        return None if indexes.of(store).in_step.is_set() else False
    return await indexes.bring(store, seconds)


def _real(given: str) -> str:
    path = Path(given)
    if not path.is_absolute():
        raise InvalidInput(f"give the whole path (got '{given}')", field="path")
    real = os.path.realpath(path)
    if not os.path.exists(real):  # noqa: PTH110 - a path that cannot be looked at is not there
        raise NotFound(f"'{given}' does not exist", field="path")
    if not os.path.isdir(real) and not os.path.isfile(real):  # noqa: PTH112, PTH113
        raise InvalidInput(f"cannot watch '{given}': neither a file nor a folder", field="path")
    if not walker.is_plain(real[1:] or "-"):
        raise InvalidInput("cannot watch this path: it is too long or not UTF-8", field="path")
    return real


def _check_place(scope: Scope, path: str) -> None:
    """Check that the agent or the caller may read a path."""
    state_dir = os.path.realpath(scope.daemon.identity.state_dir)
    if _is_below(path, state_dir):
        raise InvalidInput(f"cannot watch '{path}': it is part of the state folder", field="path")
    if scope.daemon.gate.is_own(scope.peer):
        return
    _, workspace = scope.daemon.agents.place(scope.agent)
    allowed = [*map(str, scope.daemon.indexes.granted(scope.agent))]
    if workspace is not None:
        allowed.append(os.path.realpath(workspace))
    if not any(_is_below(path, one) for one in allowed):
        raise Forbidden(
            f"user {scope.peer.uid} may not let the daemon read '{path}'",
            field="path",
            hint=f"its owner can grant it in the configuration: agents.{scope.agent}.paths",
        )


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _text_of(top: Path, below: str, limit: int) -> str:
    try:
        with os.fdopen(walker.open_below(top, below), "rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise NotFound(
            f"cannot read '{below}': {(error.strerror or 'it is gone').lower()}"
        ) from error
    if len(content) > limit:
        raise InvalidInput(f"'{below}' is larger than {limit // 1024} KB", field="path")
    return content.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
