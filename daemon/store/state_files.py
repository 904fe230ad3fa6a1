"""The state files: the memory in EvoClaw's shapes, for people and for other tools.

They are rendered from the database and never read back as truth. A file that somebody else has
changed is set aside under a name that says so, reported, and written again.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ..errors import (
    FEWER_FILES,
    NO_FILES,
    Conflict,
    InvalidInput,
    StoreDamaged,
    ThermoclineError,
    TooLarge,
    reason_of,
)
from ..runtime import atomic
from ..runtime.fingerprint import NOWHERE, Fingerprint, fingerprint_at, fingerprint_of
from ..runtime.problems import Problems
from .agent_paths import AgentPaths, StoreContext
from .database.transaction import StateFile, Transaction
from .readers import Readers
from .records import documents, memory_md
from .records.documents import FILES, MARKDOWN_FILE
from .writer import Writer

_STATE_FILE: Final[dict[str, StateFile]] = {
    **{name: state_file for state_file, name in FILES.items()},
    MARKDOWN_FILE: "hot",
}
_RETRY_SECONDS: Final = 5.0
# A few changes are shown at once; a steady load has its files written this often.
_AT_ONCE: Final = 3.0
_STEADY_SECONDS: Final = 10.0
# Several times what the caps allow. Whatever is larger was not written by a daemon.
_LARGEST: Final = 1_048_576


class StateFiles:
    """Keeps the state files of one agent in step with its database.

    `damaged` is called when the database turns out to be damaged.
    """

    def __init__(
        self,
        place: AgentPaths,
        context: StoreContext,
        writer: Writer,
        readers: Readers,
        damaged: Callable[[StoreDamaged], None],
    ) -> None:
        self._agent = place.agent
        self._context = context
        self._disk = _Disk(place, context.problems)
        self._writer = writer
        self._readers = readers
        self._damaged = damaged
        self._wanted: set[StateFile] = set()
        self._wake = asyncio.Event()
        self._busy = asyncio.Lock()
        self._flushing: set[asyncio.Task[bool]] = set()

    @property
    def pending(self) -> bool:
        """Whether a file is behind the database."""
        return bool(self._wanted) or self._busy.locked()

    def want(self, names: Iterable[StateFile]) -> None:
        """Have files written soon: a few changes after the delay, a steady load every 10 s."""
        self._wanted.update(names)
        self._wake.set()

    async def run(self, delay_seconds: Callable[[], float]) -> None:
        """Write what is wanted, until cancelled.

        `delay_seconds` gives how long changes may gather before they are written.
        """
        allowance, refilled = _AT_ONCE, time.monotonic()
        while True:
            await self._wake.wait()
            await asyncio.sleep(delay_seconds())
            self._wake.clear()
            if not self._wanted:
                continue
            allowance += (time.monotonic() - refilled) / _STEADY_SECONDS
            if allowance < 1.0:
                await asyncio.sleep((1.0 - allowance) * _STEADY_SECONDS)
                allowance = 1.0
            allowance, refilled = min(allowance, _AT_ONCE) - 1.0, time.monotonic()
            if not await self.flush():
                await asyncio.sleep(_RETRY_SECONDS)
                self._wake.set()

    async def flush(self) -> bool:
        """Bring every file up to date now. False: the disk refused, and it is tried again.

        A cancelled caller does not cancel the writing: a thread that went on writing alone could
        later put an old file over a newer one.
        """
        flushing = asyncio.create_task(self._flush(), name=f"state files of {self._agent}")
        self._flushing.add(flushing)
        flushing.add_done_callback(self._flushing.discard)
        return await asyncio.shield(flushing)

    async def finish(self) -> None:
        """Wait until nothing is being written."""
        await asyncio.gather(*self._flushing, return_exceptions=True)

    async def check_files(self) -> None:
        """Notice files that others changed or removed, and write them again."""
        async with self._busy:
            names = await asyncio.to_thread(self._disk.touched)
        if names:
            self._wanted.update(_STATE_FILE[name] for name in names)
            await self.flush()

    async def _flush(self) -> bool:
        async with self._busy:
            wanted, self._wanted = self._wanted, set()
            try:
                await self._write(wanted)
            except (OSError, ThermoclineError) as error:
                self._wanted |= wanted
                if isinstance(error, StoreDamaged):
                    self._damaged(error)
                why, hint = str(error), "free some space, or make the folder writable"
                if isinstance(error, OSError):
                    if error.errno in NO_FILES:
                        hint = FEWER_FILES
                    # The file tells one agent's problem from another's.
                    why = reason_of(error) + (f": {error.filename}" if error.filename else "")
                self._context.problems.report(
                    "state_files_behind",
                    self._agent,
                    f"cannot write the state files of '{self._agent}': {why}",
                    f"{hint}; nothing is lost meanwhile",
                )
                return False
            self._context.problems.clear("state_files_behind", self._agent)
            return True

    async def _write(self, wanted: set[StateFile]) -> None:
        if not wanted:
            return
        rules, now, known = self._context.rules(), self._context.now(), self._disk.known

        def read(db: sqlite3.Connection) -> tuple[dict[str, str], dict[str, str]]:
            return documents.render(db, wanted, now, rules), known or dict(
                db.execute("SELECT name, digest FROM state_files").fetchall()
            )

        rendered, self._disk.known = await self._readers.run(read)
        changes, failures = await asyncio.to_thread(self._disk.prepare, rendered)
        if changes:
            await self._replace(changes)
        for failure in failures:
            raise failure

    async def _replace(self, changes: list[_Change]) -> None:
        def note(tx: Transaction) -> None:
            for change in changes:
                _put(tx.db, change.name, change.digests)
            tx.aside += len(changes)

        try:
            # Not synced alone: the sync that makes the files durable includes the database's log,
            # so that after a power cut each file is known as this daemon's, the old or the new.
            await self._writer.submit(note, durable=False)
        except BaseException:
            await asyncio.to_thread(_discard, changes)
            raise
        missed = await asyncio.to_thread(
            self._disk.finish, changes, self._context.failed_syncs.note
        )
        self._wanted.update(_STATE_FILE[name] for name in missed)


class _Change(msgspec.Struct, frozen=True):
    """A file that is about to be replaced: what stood there, and what may stand there from now."""

    name: str
    before: Fingerprint
    digests: str
    new: atomic.Replacement
    page: str = ""  # of MEMORY.md: the section


class _Disk:
    """The files of one agent. Blocking."""

    def __init__(self, place: AgentPaths, problems: Problems) -> None:
        # By name, the digests of this daemon's contents that the file may have, separated by
        # blanks; the newest last.
        self.known: dict[str, str] = {}
        # The section of MEMORY.md as this process wrote or found it.
        self._page = ""
        self._agent = place.agent
        self._paths = {name: place.folder / name for name in FILES.values()}
        self._paths[MARKDOWN_FILE] = place.markdown
        self._problems = problems
        self._seen: dict[str, Fingerprint] = {}

    def touched(self) -> list[str]:
        """The files that do not stand as they were last seen."""
        return [
            name
            for name, path in self._paths.items()
            if name in self._seen and fingerprint_at(path) != self._seen[name]
        ]

    def prepare(self, rendered: Mapping[str, str]) -> tuple[list[_Change], list[Exception]]:
        """Write each file that differs beside its place; set aside what others wrote there.

        Returns the changes, and why other files cannot be written.
        """
        changes: list[_Change] = []
        failures: list[Exception] = []
        for name, text in rendered.items():
            prepare = self._prepare_section if name == MARKDOWN_FILE else self._prepare_json
            try:
                change = prepare(name, text)
            except (OSError, ThermoclineError) as error:
                failures.append(error)
                continue
            if change is not None:
                changes.append(change)
        return changes, failures

    def finish(self, changes: list[_Change], failed: Callable[[], None]) -> list[str]:
        """Sync once and replace the files; return those that were changed meanwhile by others.

        `failed` is called if the sync fails.
        """
        missed: list[str] = []
        pending = list(changes)
        try:
            try:
                atomic.sync(change.new for change in changes)
            except OSError:
                failed()
                raise
            while pending:
                change = pending[0]
                if fingerprint_at(change.new.path) != change.before:
                    change.new.discard()
                    missed.append(change.name)
                else:
                    self._seen[change.name] = fingerprint_of(change.new.finish())
                    self.known[change.name] = change.digests
                    self._page = change.page or self._page
                del pending[0]
        except BaseException:
            _discard(pending)
            raise
        return missed

    def _prepare_json(self, name: str, text: str) -> _Change | None:
        path, content, current = self._paths[name], text.encode(), ""
        before = NOWHERE
        try:
            present, status = atomic.read(path, max(_LARGEST, 2 * len(content)))
        except FileNotFoundError:
            pass
        except (Conflict, TooLarge, PermissionError) as error:
            self._set_aside(name, reason_of(error) if isinstance(error, OSError) else str(error))
        else:
            before, current = fingerprint_of(status), hashlib.sha256(present).hexdigest()
            if present == content:
                self._seen[name] = before
                return None
            if current not in self.known.get(name, "").split():
                self._set_aside(name, "somebody else wrote it")
                before, current = NOWHERE, ""
        digest = hashlib.sha256(content).hexdigest()
        return _Change(name, before, f"{current} {digest}", atomic.Replacement(path, content))

    def _prepare_section(self, name: str, page: str) -> _Change | None:
        path, owner = self._paths[name], None
        try:
            file, status = atomic.read(path, memory_md.LARGEST, alone=True)
            seen, mode = fingerprint_of(status), stat.S_IMODE(status.st_mode)
            owner = status.st_uid, status.st_gid
        except FileNotFoundError:
            file, seen, mode = b"", NOWHERE, 0o600
        except (Conflict, TooLarge, PermissionError) as error:
            self._leave(name, reason_of(error) if isinstance(error, OSError) else str(error))
            return None
        try:
            before = memory_md.page_in(file)
            content = memory_md.put(file, page) if page else memory_md.without(file)
        except InvalidInput as error:
            self._leave(name, error.message, error.hint)
            return None
        if memory_md.same(before or "", page):
            self._seen[name], self._page = seen, page
            self._problems.clear("memory_md_left", self._agent)
            return None
        current = "" if before is None else memory_md.digest(before)
        if before is not None and current not in self.known.get(name, "").split():
            aside = atomic.free_name(path, "changed")
            new_lines = memory_md.beyond(before, self._page)
            atomic.write(aside, new_lines.encode(errors="surrogateescape"), mode)
            message = f"the section of {path} was changed; what is new was kept as {aside.name}"
            self._report(MARKDOWN_FILE, message, aside)
        try:
            new = atomic.Replacement(path, content, mode, owner)
        except Conflict as error:
            self._leave(name, error.message)
            return None
        self._problems.clear("memory_md_left", self._agent)
        return _Change(name, seen, f"{current} {memory_md.digest(page)}", new, page)

    def _set_aside(self, name: str, why: str) -> None:
        path = self._paths[name]
        aside = atomic.set_aside(path, "changed")
        self._report(
            name,
            f"{path} is not as it was written ({why}); it was set aside as {aside.name}",
            aside,
        )

    def _report(self, name: str, message: str, aside: Path) -> None:
        self._problems.report(
            "state_file_set_aside",
            f"{self._agent}/{name}",
            message,
            f"take over what is new in it with `thermocline import {aside}`, then delete it",
            lasting=False,
            file=aside,
        )

    def _leave(self, name: str, why: str, hint: str | None = None) -> None:
        """Report that MEMORY.md cannot be used; nothing of it is touched."""
        path = self._paths[name]
        self._seen[name] = fingerprint_at(path)
        self._problems.report(
            "memory_md_left",
            self._agent,
            f"the section of {path} is not written: {why}",
            hint or "make it a file of its own that the daemon may write",
            lasting=False,
        )


def note_present(db: sqlite3.Connection, place: AgentPaths) -> None:
    """Note the files as they stand as this daemon's: all that is in them was taken over.

    Otherwise they would be set aside as changed by somebody else.
    """
    for name in FILES.values():
        try:
            content, _ = atomic.read(place.folder / name, _LARGEST)
        except (OSError, ThermoclineError):
            continue
        _put(db, name, hashlib.sha256(content).hexdigest())
    try:
        page = memory_md.page_in(atomic.read(place.markdown, memory_md.LARGEST)[0])
    except (OSError, ThermoclineError):
        return
    if page is not None:
        _put(db, MARKDOWN_FILE, memory_md.digest(page))


def _put(db: sqlite3.Connection, name: str, digest: str) -> None:
    db.execute("INSERT OR REPLACE INTO state_files VALUES (?, ?)", (name, digest))


def _discard(changes: Iterable[_Change]) -> None:
    for change in changes:
        change.new.discard()
