"""`/api/backup` and `/api/export`: all of an agent's memory, as an archive or as lines of JSON."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from ..store.database import translate_os
from .calls import Answer, Call, Route
from .streaming import in_thread, streamed

_ARCHIVE: Final = "application/gzip"
_LINES: Final = "application/x-ndjson"
_PIECE: Final = 262_144


async def download(call: Call) -> Answer:
    """Send the archive of the agent, made while it is sent."""
    day = time.strftime("%Y-%m-%d", time.localtime(call.now))
    name = f"{call.agent}-{day}.tar.gz"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    stopped = threading.Event()
    pieces = _archive(call, stopped)
    return await streamed(call, _ARCHIVE, pieces, headers=headers, give_up=stopped.set)


async def export(call: Call) -> Answer:
    """Send one JSON object a line: every row that was not deleted, all of one moment."""
    stopped = threading.Event()
    return await streamed(call, _LINES, _lines(call, stopped), give_up=stopped.set)


async def _archive(call: Call, stopped: threading.Event) -> AsyncGenerator[bytes, None]:
    # Loaded by the first backup: it takes memory that most daemons never need.
    from ..restore import archive  # noqa: PLC0415

    state_dir = Path(call.services.identity.state_dir)
    with await _spool_file(state_dir) as rows:
        async with call.store() as store:
            made_at, place = store.now, store.place
            counts = await store.read(partial(archive.spool, out=rows, stopped=stopped.is_set))
        manifest = archive.Manifest(
            format=archive.FORMAT,
            agent=place.agent,
            device=call.services.replicas.device.id,
            made_at=made_at,
            thermocline=call.services.identity.version,
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


async def _lines(call: Call, stopped: threading.Event) -> AsyncGenerator[bytes, None]:
    from ..restore import archive  # noqa: PLC0415 - likewise

    with await _spool_file(Path(call.services.identity.state_dir)) as rows:
        async with call.store() as store:
            spool = partial(archive.spool, out=rows, stopped=stopped.is_set, live_only=True)
            await store.read(spool)
        rows.seek(0)
        while piece := await in_thread(rows.read, _PIECE):
            yield piece


async def _spool_file(state_dir: Path) -> BinaryIO:
    """A file without a name: no transaction stays open while its content is sent."""
    try:
        return await in_thread(lambda: tempfile.TemporaryFile(dir=state_dir))
    except OSError as error:
        raise translate_os(error, state_dir) from error


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/backup",
        handler=download,
        summary="All of an agent's memory as one archive, a .tar.gz",
        role="admin",
        types=(_ARCHIVE,),
    ),
    Route(
        method="GET",
        path="/api/export",
        handler=export,
        summary="Everything that is remembered, one JSON object a line",
        types=(_LINES,),
    ),
)
