"""All of an agent's memory, as an archive or as lines of JSON."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, ParamSpec, TypeVar

from ..store.database import translate_os
from .operation import Operation, Stream
from .scope import Scope

P = ParamSpec("P")
T = TypeVar("T")
_PIECE: Final = 262_144


@Operation("GET", "/api/backup", role="admin", type="application/gzip")
async def backup(scope: Scope) -> Stream:
    """Send all of an agent's memory as one archive, a .tar.gz, made while it is sent."""
    day = time.strftime("%Y-%m-%d", time.localtime(scope.now))
    stopped = threading.Event()
    return Stream(_archive(scope, stopped), f"{scope.agent}-{day}.tar.gz", stopped.set)


@Operation("GET", "/api/export", type="application/x-ndjson")
async def export(scope: Scope) -> Stream:
    """Send a snapshot of all rows, one JSON object per line."""
    stopped = threading.Event()
    return Stream(_lines(scope, stopped), give_up=stopped.set)


async def _archive(scope: Scope, stopped: threading.Event) -> AsyncGenerator[bytes, None]:
    # Loaded by the first backup: it takes memory that most daemons never need.
    from ..restore import archive  # noqa: PLC0415

    state_dir = Path(scope.daemon.identity.state_dir)
    with await _spool_file(state_dir) as rows:
        async with scope.store(exists=True) as store:
            made_at, place = store.now, store.place
            counts = await store.read(partial(archive.spool, out=rows, stopped=stopped.is_set))
        manifest = archive.Manifest(
            format=archive.FORMAT,
            agent=place.agent,
            device=scope.daemon.replicas.device.id,
            made_at=made_at,
            thermocline=scope.daemon.identity.version,
            counts=counts,
            workspace=None if place.workspace is None else str(place.workspace),
        )
        workspace = (place.workspace or place.folder) / "memory"
        pieces = archive.write(manifest, rows, workspace, state_dir)
        try:
            while (piece := await in_thread(next, pieces, None)) is not None:
                yield piece
        finally:
            await in_thread(pieces.close)


async def _lines(scope: Scope, stopped: threading.Event) -> AsyncGenerator[bytes, None]:
    from ..restore import archive  # noqa: PLC0415 - likewise

    with await _spool_file(Path(scope.daemon.identity.state_dir)) as rows:
        async with scope.store(exists=True) as store:
            spool = partial(archive.spool, out=rows, stopped=stopped.is_set, live_only=True)
            await store.read(spool)
        rows.seek(0)
        while piece := await in_thread(rows.read, _PIECE):
            yield piece


async def _spool_file(state_dir: Path) -> BinaryIO:
    """An unnamed file: no transaction stays open while its content is sent."""
    try:
        return await in_thread(lambda: tempfile.TemporaryFile(dir=state_dir))
    except OSError as error:
        raise translate_os(error, state_dir) from error


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` on a thread; a caller that is cancelled returns when the thread is done."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise
