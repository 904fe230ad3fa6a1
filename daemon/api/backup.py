"""`/api/backup`: all of an agent's memory as one archive, made while it is sent."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..errors import ThermoclineError
from ..store import snapshot
from ..store.opening import Place
from ..store.snapshot import Snapshot
from .calls import Answer, Call, Route
from .streaming import in_thread, streamed

_TYPE: Final = "application/gzip"


async def download(call: Call) -> Answer:
    """Send the archive of the agent."""
    day = time.strftime("%Y-%m-%d", time.localtime(call.now))
    name = f"{call.agent}-{day}.tar.gz"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    stopped = threading.Event()
    pieces = _archive(call, stopped)
    return await streamed(call, _TYPE, pieces, headers=headers, give_up=stopped.set)


async def _archive(call: Call, stopped: threading.Event) -> AsyncGenerator[bytes, None]:
    state_dir = Path(call.services.identity.state_dir)
    folder = await in_thread(snapshot.make_folder, state_dir)
    try:
        place, copied = await _snapshot(call, folder, stopped)
        release = call.services.identity.version
        pieces = await in_thread(_begun, place, copied, release, state_dir)
        try:
            while (piece := await in_thread(next, pieces, None)) is not None:
                yield piece
        finally:
            await in_thread(pieces.close)
    finally:
        await in_thread(shutil.rmtree, folder, ignore_errors=True)


def _begun(
    place: Place, copied: Snapshot, release: str, state_dir: Path
) -> Generator[bytes, None, None]:
    # Loaded by the first backup alone: it takes memory that most daemons never need.
    from ..store.archiving import stream  # noqa: PLC0415

    return stream(place, copied, release, state_dir)


async def _snapshot(call: Call, folder: Path, stopped: threading.Event) -> tuple[Place, Snapshot]:
    """A copy of the database, with the hand edits in it that nobody has merged yet."""
    async with call.store() as store:
        # Where the disk takes no writes there is nothing to bring in step.
        with suppress(ThermoclineError):
            await store.flush_faces()
        made_at = store.now
        path = await store.read(lambda db: snapshot.copy(db, folder, stopped.is_set))
        found = await in_thread(snapshot.complete, path, store.rules, made_at, stopped.is_set)
        return store.place, found


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/backup",
        handler=download,
        summary="All of an agent's memory as one archive, a .tar.gz",
        role="admin",
        types=(_TYPE,),
    ),
)
