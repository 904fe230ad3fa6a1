"""Keeping an agent's state files in step with its database, in both directions."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ..errors import Conflict, InvalidInput, NotFound, StoreDamaged, ThermoclineError
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
# Whatever stands in a file that anybody may write, the daemon goes on.
_UNFORESEEN: Final = (ValueError, TypeError, KeyError, ArithmeticError, RecursionError)
_FACE_OF: Final = {**{name: face for face, name in FILES.items()}, faces.MARKDOWN_FILE: "hot"}


class FaceWriter:
    """Writes the state files soon after each commit, and merges what others wrote into them.

    Args:
        agent: whose files they are, for messages.
        files: the files on the disk.
        writer, readers: the database.
        rules: gives the limits in force.
        problems: where a file that was set aside, or a full disk, is told.
        damaged: told when the database turns out to be damaged.
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
        damaged: Callable[[StoreDamaged], None],
    ) -> None:
        self._agent = agent
        self._files = files
        self._writer = writer
        self._readers = readers
        self._rules = rules
        self._now = now
        self._problems = problems
        self._damaged = damaged
        self._wanted: set[Face] = set()
        self._wake = asyncio.Event()
        self._busy = asyncio.Lock()
        self._flushing: set[asyncio.Task[bool]] = set()

    @property
    def pending(self) -> bool:
        """Whether a file is behind the database."""
        return bool(self._wanted) or self._busy.locked()

    def want(self, wanted: Iterable[Face]) -> None:
        """Have files written within the delay."""
        self._wanted.update(wanted)
        self._wake.set()

    async def run(self, delay_seconds: Callable[[], float]) -> None:
        """Write whenever something is wanted, until cancelled.

        Args:
            delay_seconds: how long changes may gather before they are written.
        """
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(delay_seconds())
            if not await self.flush():
                await asyncio.sleep(_RETRY_SECONDS)
                self._wake.set()

    async def flush(self) -> bool:
        """Bring every file up to date now. False: the disk refused, and it is to be tried again.

        A cancelled caller does not cancel the writing: a thread that went on writing alone could
        later put an old file over a newer one.
        """
        flushing = asyncio.create_task(self._flush(), name=f"writing for {self._agent}")
        self._flushing.add(flushing)
        flushing.add_done_callback(self._flushing.discard)
        return await asyncio.shield(flushing)

    async def finish(self) -> None:
        """Wait until nothing writes any more."""
        await asyncio.gather(*self._flushing, return_exceptions=True)

    async def _flush(self) -> bool:
        async with self._busy:
            wanted, self._wanted = self._wanted, set()
            try:
                await self._merge_foreign()
                wanted |= self._wanted
                self._wanted = set()
                more = await self._write(wanted)
            except (OSError, ThermoclineError) as error:
                self._wanted |= wanted
                if isinstance(error, StoreDamaged):
                    self._damaged(error)
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
        async with self._busy:
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
        await self._announce(files)
        written = await asyncio.to_thread(self._files.write, files)
        done = {
            segment: seen
            for segment, seen in stale.items()
            if faces.segment_name(segment) not in written.failures
        }
        if written.digests or done:
            await self._writer.submit(lambda tx: _note(tx, written.digests, clock, done))
        for error in written.failures.values():
            raise error
        return len(stale) == _SEGMENTS_AT_ONCE

    async def _announce(self, files: list[Rendered]) -> None:
        """Note what is about to be written, so that after a kill it is known for our own."""
        announced = await asyncio.to_thread(self._files.announcement, files)
        watched = {name: digests for name, digests in announced.items() if name in _WATCHED}
        if watched:
            text = json.dumps(watched)
            await self._writer.submit(
                lambda tx: tx.db.execute(
                    "INSERT OR REPLACE INTO meta VALUES ('writing', ?)", (text,)
                )
            )

    async def _merge_foreign(self) -> None:
        """Merge each file that somebody else wrote; set aside what cannot be merged."""
        foreign = await asyncio.to_thread(self._files.foreign, _WATCHED)
        for name, content in foreign.items():
            if name not in edits.MERGED:
                await self._set_aside(name, "edited", f"{name} is written anew from the memory")
            elif not await self._merge(name, content):
                self._files.leave(name)
                continue
            self._files.forget(name)
            self._wanted.add(_FACE_OF[name])

    async def _merge(self, name: str, content: bytes) -> bool:
        """Merge, or set aside. False: its writer may not be done, and the next look decides."""

        def merge(tx: Transaction) -> int:
            row = tx.db.execute("SELECT clock FROM faces WHERE name = ?", (name,)).fetchone()
            return edits.merge(tx, name, content, row[0] if row else 0)

        before = await self._readers.run(lambda db: self._shown(db, name))
        path = self._files.path(name)
        kept = atomic.free_name(path, "before", _stamp())
        await asyncio.to_thread(atomic.write, kept, before)
        changes = 0
        try:
            changes = await self._writer.submit(merge)
        except (InvalidInput, NotFound, Conflict, *_UNFORESEEN) as error:
            if self._files.is_young(name, time.time()):
                return False
            await self._set_aside(name, "corrupt", str(error))
        finally:
            if not changes:
                await asyncio.to_thread(atomic.remove, kept)
        if changes:
            self._tell_edited(name, changes, path, kept)
        return True

    def _shown(self, db: sqlite3.Connection, name: str) -> bytes:
        local = datetime.now().astimezone().tzinfo
        assert local is not None
        face: Any = _FACE_OF[name]
        rendered = faces.render(db, {face}, self._now(), self._rules(), local)
        return rendered[0].content or b""

    def _tell_edited(self, name: str, changes: int, path: Path, kept: Path) -> None:
        """An edit is obeyed, and what it changed can be looked up."""
        _log.info("merged a hand edit", extra={"action": "face_merged", "changes": changes})
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


def announced(db: sqlite3.Connection) -> dict[str, list[str]]:
    """The digests of the files that an earlier run was about to write when it ended."""
    row = db.execute("SELECT value FROM meta WHERE key = 'writing'").fetchone()
    found: dict[str, list[str]] = json.loads(row[0]) if row else {}
    return found


def _note(tx: Transaction, digests: dict[str, str], clock: int, stale: dict[int, int]) -> None:
    tx.db.execute("DELETE FROM meta WHERE key = 'writing'")
    for name, digest in digests.items():
        if not name.startswith(faces.COLD_FOLDER):
            tx.db.execute("INSERT OR REPLACE INTO faces VALUES (?, ?, ?)", (name, digest, clock))
    for segment, seen in stale.items():
        tx.db.execute(
            "DELETE FROM stale_segments WHERE segment = ? AND clock <= ?", (segment, seen)
        )


def _stamp() -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime())
