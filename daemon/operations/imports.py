"""Importing what other programs or people have written."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import msgspec

from thermocline.sync import Row

from ..errors import Forbidden, InvalidInput, NotFound
from ..importers import evoclaw_database, state_files, takeover
from ..importers.intake import ImportReport, Intake
from ..memory.records import Memory
from ..restore.staging import temporary_folder
from ..shapes.imports import ImportBody, Imported, OtherAgent, ReadPart
from ..store.agent_store import AgentStore
from ..store.transaction import Transaction
from .databases import account_of
from .operation import operation
from .scope import Scope

# What one commit takes: it holds up the callers of the same memory for a quarter of a second.
_AT_ONCE: Final = 1000
_GZIP: Final = b"\x1f\x8b"


class _DryRun(Exception):
    """Rolls back the transaction of a dry run."""


async def take_in(scope: Scope, body: ImportBody) -> Imported:
    """Import a state file, a folder, MEMORY.md, or a database that EvoClaw filled."""
    given = [value for value in (body.path, body.text, body.url) if value]
    if len(given) != 1:
        raise InvalidInput("give one of 'path', 'text' and 'url'", field="path")
    importing = _Import(scope, body)
    if body.text:
        await importing.text(body.text)
    elif body.path:
        if not scope.daemon.gate.is_own(scope.peer):
            raise Forbidden(
                f"user {scope.peer.uid} may not let the daemon read files",
                hint="send the content as 'text', or ask root or the daemon's user",
            )
        await importing.path(Path(body.path))
    else:
        await importing.database()
    return importing.answer()


class _Import:
    """One running import."""

    def __init__(self, scope: Scope, request: ImportBody) -> None:
        self._scope = scope
        self._request = request
        self._others: list[OtherAgent] = []
        self.done = ImportReport()

    def answer(self) -> Imported:
        """What was imported so far."""
        done = self.done
        return Imported(
            read=[ReadPart(**part) for part in done.read],
            stored=done.stored,
            skipped=done.skipped,
            left_out=done.left_out,
            others=self._others,
            dry_run=self._request.dry_run,
        )

    async def text(self, text: str) -> None:
        """Import a file whose content the request contains."""
        written_at = self._request.written_at
        at = self._scope.now if written_at is None else written_at
        content = text.encode(errors="surrogatepass")
        name = self._request.name or "text"
        writer: str | None = self._scope.peer.name
        if state_files.format_of(content, name, self._request.format) == "rows":
            # They say themselves who wrote them, and when.
            self._scope.require("admin")
            writer = None

        def take(intake: Intake) -> None:
            state_files.take(content, name, intake, self._request.format, written_at=at)

        await self._write([take], edited_at=at, writer=writer)

    async def path(self, path: Path) -> None:
        """Import a file or folder of this machine."""
        if not path.is_absolute():
            raise InvalidInput(f"give the whole path (got '{path}')", field="path")
        found = await asyncio.to_thread(_look, path)
        if found.what == "folder":
            agent = self._scope.agent
            roots = await asyncio.to_thread(takeover.roots_of, path, agent)
            others = await asyncio.to_thread(lambda: [*takeover.others(path, agent)])
            self._others = [OtherAgent(name, str(place)) for name, place in others]

            def take_all(intake: Intake) -> None:
                for root in roots:
                    takeover.take_folder(root, intake)

            await self._write([take_all], edited_at=None)
        elif found.what == "archive":
            await self._archive(path)
        elif found.what == "rows":
            await self._rows(path, str(path))
        else:

            def take(intake: Intake) -> None:
                if not state_files.read_file(path, intake, self._request.format):
                    why = "; ".join(intake.report.left_out) or "it is gone"
                    raise InvalidInput(f"cannot import {why}", field="path")

            await self._write([take], edited_at=found.written_at)

    async def database(self) -> None:
        """Import the agent from EvoClaw's tables in a database."""
        account = await account_of(self._scope, self._request)
        agent = self._scope.agent
        found = await self._scope.daemon.databases.evoclaw(account, agent)
        self._others = [OtherAgent(n, account.url) for n in found.agents if n != agent]
        memories = evoclaw_database.memories(found.memories, self._scope.now, self.done)
        parts: list[Callable[[Intake], None]] = []
        if (critical := found.critical) is not None:
            parts.append(lambda intake: evoclaw_database.take_critical(intake, critical))
        for start in range(0, len(memories), _AT_ONCE):
            some = memories[start : start + _AT_ONCE]

            def take(intake: Intake, some: list[Memory] = some) -> None:
                intake.memories(some)

            parts.append(take)
        await self._write(parts, edited_at=None)

    async def _archive(self, path: Path) -> None:
        from ..restore import archive  # noqa: PLC0415 - the daemon holds it only when it is used

        state_dir = Path(self._scope.daemon.identity.state_dir)
        folder = await asyncio.to_thread(temporary_folder, state_dir)
        try:
            room = shutil.disk_usage(state_dir).free // 2
            found = await asyncio.to_thread(archive.read, path, folder, room=room)
            await self._rows(folder / archive.ROWS, str(path))
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        prefix = f"{archive.WORKSPACE}/"
        if files := sum(entry.path.startswith(prefix) for entry in found.files):
            self.done.note(str(path), f"{files} files of its workspace")

    async def _rows(self, path: Path, name: str) -> None:
        """Import any number of lines of rows."""
        with await asyncio.to_thread(path.open, "rb") as lines:
            rows = state_files.rows_in(lines, name, self.done)
            entries = 0
            while some := await asyncio.to_thread(lambda: [*islice(rows, _AT_ONCE)]):
                entries += len(some)

                def take(intake: Intake, some: list[Row] = some) -> None:
                    intake.rows(some)

                await self._write([take], edited_at=None)
        self.done.read.append({"file": name, "format": "rows", "entries": entries})

    async def _write(
        self,
        parts: list[Callable[[Intake], None]],
        *,
        edited_at: float | None,
        writer: str | None = None,
    ) -> None:
        async with self._scope.store(create=not self._request.dry_run) as store:
            for part in parts:
                self.done.add(await self._commit(store, part, edited_at, writer))

    async def _commit(
        self,
        store: AgentStore,
        part: Callable[[Intake], None],
        edited_at: float | None,
        writer: str | None,
    ) -> ImportReport:
        report = ImportReport()

        def take(tx: Transaction) -> None:
            intake = Intake(tx, edited_at=edited_at, writer=writer)
            intake.report = report
            part(intake)
            if self._request.dry_run:
                tx.uses.clear()
                raise _DryRun

        with contextlib.suppress(_DryRun):
            await store.write(take)
        return report


class _Look(msgspec.Struct):
    what: Literal["folder", "archive", "rows", "file"]
    written_at: float


def _look(path: Path) -> _Look:
    """Detect what a path names. Blocking."""
    try:
        found = path.stat()
        if path.is_dir():
            return _Look("folder", 0.0)
        if not path.is_file():
            raise InvalidInput(f"{path} is neither a file nor a folder", field="path")
        with path.open("rb") as file:
            head = file.read(1 << 20)
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist", field="path") from None
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}", field="path") from error
    if head.startswith(_GZIP):
        return _Look("archive", found.st_mtime)
    is_rows = state_files.are_rows(head, whole=len(head) == found.st_size)
    return _Look("rows" if is_rows else "file", found.st_mtime)


OPERATIONS: Final = (operation("POST", "/api/import", take_in, role="write"),)
