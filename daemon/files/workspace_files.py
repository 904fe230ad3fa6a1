"""Keeps the notes of a workspace and their rows equal, in both directions.

Other programs write into a workspace without a lock: a file that is being written is left for the
next run, and a file that has changed meanwhile is never replaced. Links are never followed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from ..errors import translate_os
from ..memory.agent_files import FOLDER, LARGEST, belongs
from ..runtime import line_file
from ..runtime.fingerprint import NOWHERE, Fingerprint, fingerprint_of
from ..runtime.problems import Problems, fault_of, first_names
from ..store.agent_store import AgentStore
from ..store.database import meta
from ..store.database.transaction import acting
from ..store.records import notes
from ..store.records.notes import ReadNote, WaitingNote
from . import walker
from .walker import Identity, Open, Skipped, folder_of

# The maximum amount of text in memory at once.
_LOOK_BYTES: Final = 4_194_304
# The year 2106, the latest that all file systems support.
_LATEST_SECONDS: Final = float(1 << 32)
_UNFINISHED: Final = ".thermocline-"
_CONTROL: Final = re.compile("[\x00-\x1f]")
# What is below the folder and was never meant as a note.
_NO_NOTES: Final = frozenset({walker.LINK, walker.SPECIAL, walker.OWN})
_IS_UNFINISHED: Final = re.compile(rf"(.*/)?{re.escape(_UNFINISHED)}[0-9a-f]{{16}}")
_NEW_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# A link, or something other than a file or a folder.
_IN_THE_WAY: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EEXIST})


class FolderChanges(msgspec.Struct):
    """The changes on a disk."""

    changed: list[ReadNote] = []  # new and changed files
    vanished: list[str] = []  # removed files
    left: list[Skipped] = []  # files that cannot be replicated
    unfinished: list[str] = []  # temporary files of a killed process
    more: bool = False  # whether there may be more changes, since the limit was reached


def compare(top: Path, known: Mapping[str, Fingerprint], never: Identity) -> FolderChanges:
    """Compare a workspace's files with their known fingerprints. Blocking.

    If the folder is missing, or all of several known files are, it is probably not mounted, and no
    file counts as removed. `top` is the folder `memory`; a link is not followed. `known` are the
    known fingerprints of files by path, `never` the device and inode of a folder that is skipped.
    """
    result = FolderChanges()
    if not top.is_dir():
        return result
    seen: set[str] = set()

    def wanted(path: str, status: os.stat_result) -> bool:
        if _IS_UNFINISHED.fullmatch(path):
            result.unfinished.append(path)
        if not belongs(path):
            if belongs(_CONTROL.sub("_", path)):
                result.left.append(Skipped(repr(path)[1:-1], "its name has a control character"))
            return False
        seen.add(path)
        return known.get(path) != fingerprint_of(status)

    with closing(walker.walk(top, FOLDER, never, wanted)) as files:
        skipped = _look_at(files, result)
    if not result.more:
        here = {path for path, fingerprint in known.items() if fingerprint != NOWHERE}
        barred = tuple(f"{path}/" for path in skipped)
        gone = {path for path in here - seen if not f"{path}/".startswith(barred)}
        # The folder may just not be mounted.
        result.vanished = [] if gone == here and len(here) > 1 else sorted(gone)
    return result


def _look_at(files: Generator[Open | Skipped, None, None], result: FolderChanges) -> list[str]:
    """Read changed files into `result`; return the paths that were skipped."""
    skipped: list[str] = []
    room = _LOOK_BYTES
    for file in files:
        if isinstance(file, Skipped):
            skipped.append(file.path)
            if file.path == FOLDER or (file.why not in _NO_NOTES and "/." not in file.path):
                result.left.append(file)
            continue
        before = fingerprint_of(os.fstat(file.handle))
        if before.size > LARGEST:
            why = f"it has {before.size // 1024} KB, the limit is {LARGEST // 1024} KB"
            result.left.append(Skipped(file.path, why))
            continue
        content = _read_whole(file.handle, before.size)
        if len(content) != before.size or fingerprint_of(os.fstat(file.handle)) != before:
            continue  # It is being written; the next call reads it.
        try:
            result.changed.append(ReadNote(file.path, before, content.decode()))
        except UnicodeDecodeError:
            result.left.append(Skipped(file.path, "it is not valid UTF-8"))
            continue
        room -= len(content)
        if room < 0:
            result.more = True
            break
    return skipped


def write_files(
    top: Path, files: Iterable[WaitingNote]
) -> tuple[list[tuple[WaitingNote, Fingerprint]], list[Skipped]]:
    """Write or remove files, durably, unless they have changed meanwhile. Blocking.

    `top` is the folder `memory`, which is created if it is missing. Returns the finished files with
    their new fingerprints, and the files that something other than a file or folder blocks.
    """
    done: list[tuple[WaitingNote, Fingerprint]] = []
    barred: list[Skipped] = []
    for file in files:
        try:
            if file.note is None:
                after = _remove(top, file.path, file.fingerprint)
            else:
                after = _write(top, file.path, file.note, file.fingerprint)
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
            barred.append(Skipped(file.path, "something else than a file or a folder is there"))
            continue
        if after is not None:
            done.append((file, after))
    return done, barred


def _write(top: Path, path: str, note: notes.Note, fingerprint: Fingerprint) -> Fingerprint | None:
    """Write a file; None if it has another fingerprint."""
    with folder_of(top, _below(path), make=True) as (folder, name):
        if _fingerprint(folder, name) != fingerprint:
            return None
        # A random name, since a predictable one could be a prepared link or pipe.
        unfinished = f"{_UNFINISHED}{secrets.token_hex(8)}"
        with os.fdopen(os.open(unfinished, _NEW_FLAGS, 0o600, dir_fd=folder), "wb") as out:
            try:
                with suppress(FileNotFoundError):
                    before = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    os.fchmod(out.fileno(), before.st_mode & 0o777)
                out.write(note.text.encode())
                out.flush()
                modified_at = int(max(0.0, min(note.modified_at, _LATEST_SECONDS)) * 1e9)
                os.utime(out.fileno(), ns=(modified_at, modified_at))
                os.fsync(out.fileno())
                if _fingerprint(folder, name) != fingerprint:
                    os.unlink(unfinished, dir_fd=folder)
                    return None
                os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
                after = fingerprint_of(os.fstat(out.fileno()))
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(unfinished, dir_fd=folder)
                raise
        os.fsync(folder)
        return after


def _remove(top: Path, path: str, fingerprint: Fingerprint | None) -> Fingerprint | None:
    """Remove a file; None if it has another fingerprint. Without one, unconditionally."""
    try:
        with folder_of(top, _below(path)) as (folder, name):
            if fingerprint is not None and _fingerprint(folder, name) != fingerprint:
                return None
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)
    except FileNotFoundError:
        pass
    return NOWHERE


def _fingerprint(folder: int, name: str) -> Fingerprint:
    """The fingerprint of the file with this name; `EEXIST`: something else has the name."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return NOWHERE
    if not stat.S_ISREG(status.st_mode):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    return fingerprint_of(status)


def _read_whole(handle: int, size: int) -> bytes:
    """The whole file, and one more byte if it has grown."""
    pieces = []
    left = size + 1
    while left and (piece := os.read(handle, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def remove_unfinished(top: Path, paths: Sequence[str]) -> None:
    """Remove the temporary files of a killed process. The lock keeps out running writers."""
    with line_file.locked(top):
        for path in paths:
            _remove(top, path, None)


def place_locked(
    top: Path, files: Sequence[WaitingNote]
) -> tuple[list[tuple[WaitingNote, Fingerprint]], list[Skipped]]:
    """`write_files`, with the lock of the folder, which is created if it is missing."""
    try:
        with line_file.locked(top):
            return write_files(top, files)
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise
        return [], [Skipped(file.path, f"{top} is not a folder, or a link") for file in files]


def _below(path: str) -> str:
    return path.partition("/")[2]


_LEFT_OUT: Final = "files_not_replicated"
_TROUBLE: Final = "workspace_trouble"
_NAMED: Final = 3
_PLACED_AT_ONCE: Final = 16


class Workspaces:
    """Copies changes of a workspace into the memory, and changes of the memory into files.

    `state_dir` is skipped if a workspace contains it; `wanted` says whether workspaces are
    replicated.
    """

    def __init__(self, state_dir: Path, wanted: Callable[[], bool], problems: Problems) -> None:
        self._state_dir = state_dir
        self._wanted = wanted
        self._problems = problems
        # Two agents may share a folder.
        self._one_at_a_time = asyncio.Lock()

    async def synchronise(self, store: AgentStore) -> None:
        """Synchronise one agent's workspace and memory. After an error the next call continues."""
        agent = store.place.agent
        if not self._wanted():
            self._problems.clear(_LEFT_OUT, agent)
            return
        top = (store.place.workspace or store.place.folder) / FOLDER
        async with self._one_at_a_time:
            try:
                left = await self._take_in(store, top)
                barred = await _put_out(store, top)
            except OSError as error:
                raise translate_os(error, top) from error
        if not await store.read(meta.has_replica):
            left = []
        self._report(agent, top, [*left, *barred])

    async def keep_all(self, stores: Iterable[AgentStore]) -> None:
        """Synchronise several; a failure of one is reported, and the others continue."""
        for store in stores:
            agent = store.place.agent
            try:
                await self.synchronise(store)
            except Exception as error:  # noqa: BLE001 - of one agent alone
                kind, _ = fault_of(error)
                message = f"cannot replicate the notes of '{agent}': {kind}"
                self._problems.report(_TROUBLE, agent, message, lasting=False)
            else:
                self._problems.clear(_TROUBLE, agent)

    async def _take_in(self, store: AgentStore, top: Path) -> list[Skipped]:
        never = walker.identity(self._state_dir)
        while True:
            known = await store.read(notes.known)
            seen = await asyncio.to_thread(compare, top, known, never)
            if seen.changed or seen.vanished:
                news = partial(notes.take, files=seen.changed, vanished=seen.vanished)
                # Whoever asks for it, the changes are those of who edited the files.
                asking = acting.set("")
                try:
                    await store.write(news)
                finally:
                    acting.reset(asking)
            if not seen.more:
                break
        if seen.unfinished:
            await asyncio.to_thread(remove_unfinished, top, seen.unfinished)
        return seen.left

    def _report(self, agent: str, top: Path, left: Sequence[Skipped]) -> None:
        named = first_names([f"{item.path} ({item.why})" for item in left], _NAMED, "; ")
        self._problems.set(
            _LEFT_OUT,
            agent,
            f"not every file in {top} is replicated: {named}" if left else None,
            "save them smaller, as UTF-8, by other names; `thermocline backup` has most of them",
            lasting=False,
        )


async def _put_out(store: AgentStore, top: Path) -> list[Skipped]:
    """Write changed rows to the disk; return the paths that are blocked."""
    barred: list[Skipped] = []
    after = ""
    while group := await store.read(partial(notes.waiting, after=after, limit=_PLACED_AT_ONCE)):
        after = group[-1].path
        written, cannot = await asyncio.to_thread(place_locked, top, group)
        barred += cannot
        if written:
            await store.write(partial(notes.placed, written=written))
    return barred
