"""Keeping an agent's state files in step with its database, in both directions."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

from ..errors import InvalidInput, NotFound, ThermoclineError
from ..problems import Problems
from . import atomic, edits, faces
from .face_files import FaceFiles
from .faces import FILES, Rendered
from .readers import Readers
from .transaction import Face, Rules, Transaction
from .writer import Writer

_log = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 5.0
# One cycle rewrites at most so many files of the archive; the rest follows in the next.
_SEGMENTS_AT_ONCE: Final = 64
_WATCHED: Final = (*FILES.values(), faces.MARKDOWN_FILE)
_FACE_OF: Final = {**{name: face for face, name in FILES.items()}, faces.MARKDOWN_FILE: "hot"}


class FaceWriter:
    """Writes the state files soon after each commit, and merges what others wrote into them.

    Args:
        agent: whose files they are, for messages.
        files: the files on the disk.
        writer, readers: the database.
        rules: gives the limits in force.
        problems: where a file that was set aside, or a full disk, is told.
        delay_seconds: how long changes may gather before they are written.
    """

    def __init__(
        self,
        agent: str,
        files: FaceFiles,
        *,
        writer: Writer,
        readers: Readers,
        rules: Callable[[], Rules],
        now: Callable[[], float],
        problems: Problems,
        delay_seconds: Callable[[], float],
    ) -> None:
        self._agent = agent
        self._files = files
        self._writer = writer
        self._readers = readers
        self._rules = rules
        self._now = now
        self._problems = problems
        self._delay = delay_seconds
        self._wanted: set[Face] = set()
        self._wake = asyncio.Event()
        self._busy = asyncio.Lock()

    @property
    def pending(self) -> bool:
        """Whether a file is behind the database."""
        return bool(self._wanted) or self._busy.locked()

    def want(self, wanted: Iterable[Face]) -> None:
        """Have files written within the delay."""
        self._wanted.update(wanted)
        self._wake.set()

    async def run(self) -> None:
        """Write whenever something is wanted, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(self._delay())
            if not await self.flush():
                await asyncio.sleep(_RETRY_SECONDS)
                self._wake.set()

    async def flush(self) -> bool:
        """Bring every file up to date now. False: the disk refused, and it is to be tried again."""
        async with self._busy:
            wanted, self._wanted = self._wanted, set()
            try:
                await self._merge_foreign()
                wanted |= self._wanted
                self._wanted = set()
                more = await self._write(wanted)
            except (OSError, ThermoclineError) as error:
                self._wanted |= wanted
                self._problems.report(
                    "state_files_behind",
                    self._agent,
                    f"cannot write the state files of '{self._agent}': {error}",
                    "free some space, or make the folder writable; nothing is lost meanwhile",
                )
                return False
            self._problems.clear("state_files_behind", self._agent)
            if more:
                self._wake.set()
            return True

    async def look(self) -> None:
        """Notice what others wrote, or took away, and bring the files back in step."""
        names = await asyncio.to_thread(self._files.missing, _WATCHED)
        for name in names:
            self._files.forget(name)
            self._wanted.add(_FACE_OF[name])
        foreign = await asyncio.to_thread(self._files.foreign, _WATCHED)
        if foreign or names:
            await self.flush()

    async def _write(self, wanted: set[Face]) -> bool:
        """Render and write; then note in the database what the files now show."""
        rules, now = self._rules(), self._now()
        local = datetime.now().astimezone().tzinfo
        assert local is not None

        def render(db: sqlite3.Connection) -> tuple[list[Rendered], int, dict[int, int]]:
            files = faces.render(db, wanted, now, rules, local)
            stale = dict(
                db.execute(
                    "SELECT segment, clock FROM stale_segments LIMIT ?", (_SEGMENTS_AT_ONCE,)
                )
            )
            files += [faces.render_segment(db, segment) for segment in stale]
            return files, faces.version(db), stale

        files, clock, stale = await self._readers.run(render)
        digests = await asyncio.to_thread(self._files.write, files)
        if digests or stale:
            await self._writer.submit(lambda tx: _note(tx, digests, clock, stale))
        return len(stale) == _SEGMENTS_AT_ONCE

    async def _merge_foreign(self) -> None:
        """Merge each file that somebody else wrote; set aside what cannot be merged."""
        foreign = await asyncio.to_thread(self._files.foreign, _WATCHED)
        for name, content in foreign.items():
            if name in edits.MERGED:
                await self._merge(name, content)
            else:
                await self._set_aside(name, "edited", f"{name} is written anew from the memory")
            self._files.forget(name)
            self._wanted.add(_FACE_OF[name])

    async def _merge(self, name: str, content: bytes) -> None:
        def merge(tx: Transaction) -> int:
            row = tx.db.execute("SELECT clock FROM faces WHERE name = ?", (name,)).fetchone()
            return edits.merge(tx, name, content, row[0] if row else 0)

        before = await self._readers.run(lambda db: self._shown(db, name))
        try:
            changes = await self._writer.submit(merge)
        except (InvalidInput, NotFound) as error:
            await self._set_aside(name, "corrupt", str(error))
            return
        if changes:
            await self._keep_before(name, before)
            _log.info("merged a hand edit", extra={"action": "face_merged", "changes": changes})

    def _shown(self, db: sqlite3.Connection, name: str) -> bytes:
        local = datetime.now().astimezone().tzinfo
        assert local is not None
        face: Any = _FACE_OF[name]
        rendered = faces.render(db, {face}, self._now(), self._rules(), local)
        return rendered[0].content or b""

    async def _keep_before(self, name: str, content: bytes) -> None:
        """An edit is obeyed, and what it changed can be looked up."""
        path = self._files.path(name)
        kept = path.with_name(f"{name}.before-{_stamp()}")
        await asyncio.to_thread(atomic.write, kept, content)
        self._problems.report(
            "state_file_edited",
            f"{self._agent}/{name}",
            f"{path} was edited and the changes merged; what it said before is in {kept.name}",
            lasting=False,
        )

    async def _set_aside(self, name: str, word: str, why: str) -> None:
        path = self._files.path(name)
        aside = await asyncio.to_thread(atomic.set_aside, path, word, _stamp())
        self._problems.report(
            "state_file_set_aside",
            f"{self._agent}/{name}",
            f"{path} was not used ({why}); it was set aside as {aside.name}",
            "the file was written anew; take from the old one what you miss",
            lasting=False,
        )


def _note(tx: Transaction, digests: dict[str, str], clock: int, stale: dict[int, int]) -> None:
    for name, digest in digests.items():
        if not name.startswith(faces.COLD_FOLDER):
            tx.db.execute("INSERT OR REPLACE INTO faces VALUES (?, ?, ?)", (name, digest, clock))
    for segment, seen in stale.items():
        tx.db.execute(
            "DELETE FROM stale_segments WHERE segment = ? AND clock <= ?", (segment, seen)
        )


def _stamp() -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime())
