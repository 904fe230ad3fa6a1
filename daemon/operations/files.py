"""Watched files: searching their chunks, reading their lines, and what is watched."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..errors import Forbidden, InvalidInput, NotFound
from ..files import walker
from ..memory.records import IndexState
from ..recall.answer import Hit
from ..recall.recall import Request, recall
from ..recall.sources import CHUNKS
from ..schemas import files as schemas
from ..schemas.common import Limit, Offset, RecallLimit, Share, Words
from ..store.agent_store import AgentStore
from ..store.records import conversations, indexed_files, watched
from ..store.records.selecting import Filters
from . import sessions
from .operation import Operation, Scope
from .views import view_of

T = TypeVar("T")
FilePath = Annotated[str, Meta(min_length=1, max_length=4_096)]
AbsolutePath = Annotated[
    str,
    Meta(min_length=1, max_length=4_096, description="an absolute path on the daemon's machine"),
]
Line = Annotated[int, Meta(ge=1, le=2**31)]
_ADDING_SECONDS: Final = 2.0
# What is in them are no files on a disk: they change all the time, and reading some waits.
_OF_THE_SYSTEM: Final = ("/proc", "/sys")


@Operation("POST", "/api/files/search", also_get=True)
async def search(
    scope: Scope,
    query: Words,
    max_results: RecallLimit | None = None,
    min_score: Share | None = None,
    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] | None = None,
    session: str | None = None,
) -> schemas.FilesFound:
    """Search the watched files only.

    The defaults of `max_results` and `min_score` are `index.max_results` and `index.min_score`.
    `wait_ms` is the time to wait for an index that is older than the files (default:
    `index.search_wait_ms`). `session` limits the question to the paths of that session.
    """
    started = time.perf_counter()
    rules, tuning = scope.settings.index, scope.settings.recall
    least = rules.min_score if min_score is None else min_score
    async with scope.store() as store:
        entered = await sessions.entered(store, session)
        near = await scope.daemon.vectors.near(store, query)
        request = Request(
            text=query,
            filters=sessions.seen(entered, Filters()),
            isolated=sessions.is_isolated(entered),
            sources=frozenset({CHUNKS.name}),
            limit=max_results or rules.max_results,
            min_relevance=least or None,
            weights=tuning.weights,
            now=scope.now,
            local=scope.zone,
            nearness=near.nearness,
        )
        read = partial(recall, request=request, tuning=tuning)
        wait = rules.search_wait_ms if wait_ms is None else wait_ms
        synced = await catch_up(scope, store, request.filters, wait / 1000)
        answer = await store.read(read, seconds=scope.settings.limits.query_seconds)
    return schemas.FilesFound(
        query=query,
        chunks=[chunk_view(hit) for hit in answer.hits],
        searched=answer.searched[CHUNKS.name],
        took_ms=round((time.perf_counter() - started) * 1000, 3),
        auto_synced=synced,
        why=answer.why or UNSET,
        note=near.note or UNSET,
    )


@Operation("POST", "/api/files/get", also_get=True)
async def get(
    scope: Scope,
    path: FilePath,
    from_line: Line = 1,
    to_line: Line | None = None,
    lines: Annotated[int, Meta(ge=1, le=100_000)] | None = None,
) -> schemas.FileLines:
    """Read lines of a watched file as it is now, or turns of a conversation.

    Up to `to_line`, or `lines` of them; by default all. The `path` of a conversation is `chat://`
    and its name; each turn is a line of it.
    """
    if path.startswith(conversations.PATH):
        name = path.removeprefix(conversations.PATH)
        transcript = await scope.read(lambda db: conversations.transcript(db, name))
        if not transcript:
            raise NotFound(f"nothing is kept of a conversation '{name}'", field="path")
        content = [f"{line}\n" for line in transcript]
    else:
        content = (await _current_text(scope, path)).splitlines(keepends=True)
    last = min(len(content), len(content) if to_line is None else to_line)
    if lines is not None:
        last = min(last, from_line + lines - 1)
    if from_line > max(last, 1):
        has = f"'{path}' has {len(content)} lines"
        if to_line is not None and to_line < from_line:
            raise InvalidInput(f"give a 'to_line' from {from_line} on: {has}", field="to_line")
        raise InvalidInput(f"cannot read from line {from_line}: {has}", field="from_line")
    text = "".join(content[from_line - 1 : last])
    return schemas.FileLines(path, from_line, last, len(content), text)


async def _current_text(scope: Scope, path: str) -> str:
    async with scope.store() as store:
        index = scope.daemon.indexes.of(store) if store.exists else None
        place = index.place_of(path) if index is not None else None
        known = await store.read(lambda db: indexed_files.identity_of(db, path))
        if place is None or known is None:
            raise NotFound(f"'{path}' is not a watched file", field="path")
        limit = scope.settings.index.max_file_kb * 1024
        return await asyncio.to_thread(_text_of, place[0], place[1], limit)


@Operation("POST", "/api/files/sync", role="write")
async def sync(scope: Scope) -> schemas.FilesSynced:
    """Look at every watched file now, and update the index."""
    started = time.perf_counter()
    async with scope.store(exists=True) as store:
        changes = await scope.daemon.indexes.of(store).sync()
        totals = await store.read(indexed_files.totals)
    return schemas.FilesSynced(
        **msgspec.structs.asdict(changes),
        files=totals.files,
        chunks=totals.chunks,
        took_ms=round((time.perf_counter() - started) * 1000, 3),
    )


@Operation("GET", "/api/files/list")
async def index(
    scope: Scope, prefix: str = "", left_out: bool = False, limit: Limit = 50, offset: Offset = 0
) -> schemas.FilePage:
    """List the watched files; with `left_out` those that cannot be indexed."""
    limit = scope.page_limit(limit)
    page = await scope.read(
        lambda db: indexed_files.page(db, prefix, limit, offset, left_out=left_out)
    )
    return schemas.FilePage(*page)


@Operation("GET", "/api/files/chunks")
async def chunks(scope: Scope, path: AbsolutePath) -> schemas.ChunkList:
    """List the chunks of a watched file, by their lines."""
    known, results = await scope.read(
        lambda db: (indexed_files.identity_of(db, path), indexed_files.chunks_of(db, path))
    )
    if known is None:
        raise NotFound(f"'{path}' is not a watched file", field="path")
    return schemas.ChunkList(path, results)


@Operation("GET", "/api/files/stats")
async def stats(scope: Scope) -> schemas.FilesStats:
    """Show how much is indexed, what is watched, and whether the index is current."""
    async with scope.store() as store:
        totals = await store.read(indexed_files.totals)
        if store.exists:
            watched_index = scope.daemon.indexes.of(store)
            state, paths = watched_index.state, watched_index.paths()
        else:
            state, paths = IndexState(), []
    return schemas.FilesStats(
        files=totals.files,
        left_out=totals.left_out,
        chunks=totals.chunks,
        tokens=totals.chars // 4,
        index_bytes=totals.bytes,
        state=state,
        paths=paths,
    )


@Operation("POST", "/api/files/paths", role="write")
async def add(scope: Scope, path: AbsolutePath) -> schemas.PathAdded:
    """Watch a folder or file.

    Outside of the agent's workspace, and of the paths that the configuration grants the agent, only
    root and the daemon's own user may.
    """
    # Before it is looked at: a refusal must not say whether it exists.
    _check_place(scope, await asyncio.to_thread(os.path.realpath, path))
    path = await asyncio.to_thread(_real, path)
    async with scope.store(create=True) as store:
        added = await store.write(lambda tx: watched.add(tx, path))
        watched_index = scope.daemon.indexes.of(store)
        if added:
            watched_index.mark_dirty()
        in_step = await scope.daemon.indexes.in_step(store, _ADDING_SECONDS)
        state = watched_index.state
    return schemas.PathAdded(path, added, in_step, state.watched_files, state.to_read)


@Operation("DELETE", "/api/files/paths", role="write")
async def remove(scope: Scope, path: AbsolutePath) -> schemas.PathRemoved:
    """Stop watching a path that was added; its chunks are removed."""
    async with scope.store() as store:
        known = await store.read(watched.paths)
        # A path that was removed, or is a link now, is removed as it was added.
        path = path if path in known else await asyncio.to_thread(os.path.realpath, path)
        await store.write(lambda tx: watched.PATHS.delete(tx, path))
        scope.daemon.indexes.of(store).mark_dirty()
        await scope.daemon.indexes.in_step(store, _ADDING_SECONDS)
    return schemas.PathRemoved(path)


def chunk_view(hit: Hit) -> schemas.FoundChunk:
    """A chunk as answers show it."""
    return view_of(schemas.FoundChunk, hit.item, score=round(hit.relevance, 3))


async def catch_up(
    scope: Scope, store: AgentStore, filters: Filters, seconds: float
) -> bool | UnsetType:
    """Wait for an index that is older than the files.

    UNSET: it was current, or the filters leave no files to search. False: it is still older.
    """
    if not store.exists or CHUNKS.passes(filters, scope.now) is None:
        return UNSET
    indexes = scope.daemon.indexes
    if not scope.settings.index.on_search:
        return UNSET if indexes.of(store).in_step.is_set() else False
    synced = await indexes.catch_up(store, seconds)
    return UNSET if synced is None else synced


async def read_current(
    scope: Scope,
    store: AgentStore,
    filters: Filters,
    seconds: float,
    read: Callable[[], Awaitable[T]],
) -> tuple[T, bool | UnsetType]:
    """What is read, and the result of `catch_up` beside it: if files changed, it is read again.

    Usually none have, and looking takes as long as reading.
    """
    bringing = asyncio.create_task(catch_up(scope, store, filters, seconds))
    try:
        result = await read()
        synced = await bringing
    finally:
        bringing.cancel()
    return (await read() if synced is True else result), synced


def _real(name: str) -> str:
    path = Path(name)
    if not path.is_absolute():
        raise InvalidInput(f"give the whole path (got '{name}')", field="path")
    real = os.path.realpath(path)
    if not os.path.exists(real):  # noqa: PTH110 - a path that cannot be looked at is not there
        raise NotFound(f"'{name}' does not exist", field="path")
    is_folder = os.path.isdir(real)  # noqa: PTH112
    if not is_folder and not os.path.isfile(real):  # noqa: PTH113
        raise InvalidInput(f"cannot watch '{name}': neither a file nor a folder", field="path")
    if not os.access(real, os.R_OK | (os.X_OK if is_folder else 0)):
        hint = f"it runs as user {os.geteuid()}: let that user read it"
        raise Forbidden(f"the daemon may not read '{name}'", field="path", hint=hint)
    if real == "/":
        raise InvalidInput("cannot watch the whole file system: name a folder", field="path")
    if any(_is_below(real, top) for top in _OF_THE_SYSTEM):
        raise InvalidInput(f"cannot watch '{name}': the system makes what is in it", field="path")
    if not walker.is_plain(real[1:]):
        raise InvalidInput("cannot watch this path: it is too long or not UTF-8", field="path")
    return real


def _check_place(scope: Scope, path: str) -> None:
    state_dir = os.path.realpath(scope.daemon.identity.state_dir)
    if _is_below(path, state_dir):
        raise InvalidInput(f"cannot watch '{path}': it is part of the state folder", field="path")
    if scope.daemon.gate.is_own(scope.peer):
        return
    workspace = scope.daemon.agents.place(scope.agent).workspace
    allowed = [*map(str, scope.daemon.indexes.granted(scope.agent))]
    if workspace is not None:
        allowed.append(os.path.realpath(workspace))
    if not any(_is_below(path, folder) for folder in allowed):
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
