"""An agent's own files on disk: creates them, reads changed ones, appends to them.

All writes hold a lock (`memory/.lock`, with `flock`), which agents that change a file in place can
take as well. Existing files are only replaced to add an entry to the index of skills, and to store
a skill again.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from ..errors import Conflict, DiskFull, ReadOnly, TooLarge, translate_os
from ..memory import agent_files
from ..memory.agent_files import EPISODES, FOLDER, KNOWLEDGE, REFLECTIONS, SEEDS, SKILLS
from ..runtime import atomic, line_file
from ..runtime.fingerprint import NOWHERE, Fingerprint, fingerprint_at, fingerprint_of
from ..runtime.problems import Problems
from ..store.agent_store import AgentStore
from ..store.records import agent_entries
from ..store.records.agent_entries import Item, OwnEntry, OwnPart
from ..store.records.notes import Note, WaitingNote
from .workspace_files import write_files

T = TypeVar("T")
_UNREADABLE: Final = "own_file_unread"
_LONG: Final = "knowledge_long"
_CORRECT: Final = "correct the file; it is read again at once"
# A larger log, of about 100,000 lines, is not read.
_LARGEST: Final = 16_777_216
_TRIES: Final = 5
_PARTS: Final = {
    "knowledge": KNOWLEDGE,
    "reflections": REFLECTIONS,
    "episodes": EPISODES,
    "skills": SKILLS,
}


class AgentFiles:
    """Reads and extends the files that an agent maintains itself."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    async def read(
        self,
        store: AgentStore,
        read: Callable[[sqlite3.Connection], T],
        *,
        seconds: float | None = None,
    ) -> T:
        """Run `read` on a snapshot of the database that reflects the current files.

        If the disk is full or read-only, the files may be those of an earlier read.
        """
        if not store.exists:
            return await store.read(read, seconds=seconds)
        workspace = _workspace(store)

        def current(db: sqlite3.Connection) -> tuple[T] | None:
            known = agent_entries.fingerprints(db)
            paths = (*_PARTS.values(), *known)
            stale = any(_is_changed(workspace, path, known) for path in paths)
            return None if stale else (read(db),)

        for _ in range(_TRIES):
            result = await store.read(current, seconds=seconds)
            if result is not None:
                return result[0]
            try:
                await self.catch_up(store)
            except (DiskFull, ReadOnly):
                break
        return await store.read(read, seconds=seconds)

    async def catch_up(self, store: AgentStore) -> None:
        """Read changed files into the database."""
        known = await store.read(agent_entries.fingerprints)
        read, left = await asyncio.to_thread(_load, _workspace(store), known, store.now)
        if not read:
            return
        await store.write(partial(agent_entries.take, read=read))
        self._report(store.place.agent, read, left)

    async def make_missing(self, store: AgentStore) -> None:
        """Create the files that are missing."""
        if not store.exists:
            return
        workspace = _workspace(store)
        if all(map(os.path.lexists, (workspace / path for path in SEEDS))):
            return
        now, folder = store.now, workspace / FOLDER
        missing = [WaitingNote(path, Note(text, now), NOWHERE) for path, text in SEEDS.items()]
        await asyncio.to_thread(_locked, workspace, lambda: write_files(folder, missing))

    async def add_line(self, store: AgentStore, path: str, item: Item) -> str:
        """Append a reflection or an episode to its log; return its line."""
        line = msgspec.json.encode(item).decode()
        workspace = _workspace(store)
        await self.make_missing(store)
        await asyncio.to_thread(line_file.append, workspace / path, line)
        await self.catch_up(store)
        return line

    async def remove(self, store: AgentStore, entries: AbstractSet[tuple[str, str]]) -> None:
        """Remove reflections and episodes, by the digests of their lines, and skills."""
        if not entries:
            return
        workspace, now = _workspace(store), store.now
        await asyncio.to_thread(_locked, workspace, lambda: _remove(workspace, entries, now))
        await self.catch_up(store)

    async def add_skill(
        self, store: AgentStore, skill: agent_files.Skill, *, replace: bool = False
    ) -> bool:
        """Write a skill's file and its entry in the index; return whether it is new.

        `Conflict`: it is there and not to be replaced, the index is no JSON object, or something
        else is in the way.
        """
        workspace, now = _workspace(store), store.now
        await self.make_missing(store)
        new = await asyncio.to_thread(
            _locked, workspace, lambda: _write_skill(workspace, skill, now, replace=replace)
        )
        await self.catch_up(store)
        return new

    def _report(
        self, agent: str, read: Sequence[OwnPart], left: Mapping[str, Sequence[str]]
    ) -> None:
        for item in read:
            why = f"of '{agent}': {'; '.join(left[item.name])}" if left[item.name] else None
            self._problems.set(_UNREADABLE, f"{agent}/{item.name}", why, _CORRECT, lasting=False)
            if item.name == "knowledge":
                is_long = item.lines > agent_files.KNOWLEDGE_LINES
                text = long_warning(item.lines) if is_long else None
                self._problems.set(_LONG, agent, text, lasting=False)


def long_warning(lines: int) -> str:
    """The warning about a knowledge file that has become too long."""
    return (
        f"{KNOWLEDGE} has {lines} lines, more than the {agent_files.KNOWLEDGE_LINES} that a model"
        " should get every time"
    )


def _workspace(store: AgentStore) -> Path:
    return store.place.workspace or store.place.folder


def _is_changed(workspace: Path, path: str, known: Mapping[str, Fingerprint]) -> bool:
    return fingerprint_at(workspace / path) != known.get(path, NOWHERE)


def _load(
    workspace: Path, known: Mapping[str, Fingerprint], now: float
) -> tuple[list[OwnPart], dict[str, list[str]]]:
    """The parts that have changed, and by part what cannot be read of them. Blocking."""
    read: list[OwnPart] = []
    left: dict[str, list[str]] = {name: [] for name in _PARTS}
    for name, path in _PARTS.items():
        folder = f"{Path(path).parent}/" if name == "skills" else path
        paths = {path, *(item for item in known if item.startswith(folder))}
        if any(_is_changed(workspace, path, known) for path in paths):
            read.append(_part(name, path, workspace, left[name], now))
    return read, left


def _part(name: str, path: str, workspace: Path, left: list[str], now: float) -> OwnPart:
    fingerprint, text, changed_at = _content(workspace, path, left)
    if name == "knowledge":
        return OwnPart(name, {path: fingerprint}, changed_at, agent_files.line_count(text), text)
    if name == "skills":
        return _skills(workspace, path, fingerprint, text, left)
    parse = agent_files.reflection_of if name == "reflections" else agent_files.episode_of
    lines = [line for line in enumerate(text.split("\n"), 1) if line[1].strip()]
    # A last line without an end may still be written.
    ended = text.count("\n")
    entries, broken, why = [], [], ""
    for position, (number, line) in enumerate(lines):
        if (item := parse(line)) is not None:
            at = agent_files.moment_of(item.ts, changed_at or now)
            entries.append(OwnEntry(agent_files.digest(line), position, at, item))
        elif number <= ended:
            broken.append(number)
    if broken:
        left.append(why := agent_files.broken_lines(name, broken))
    return OwnPart(name, {path: fingerprint}, changed_at, len(lines), why, tuple(entries))


def _skills(
    workspace: Path, path: str, fingerprint: Fingerprint, text: str, left: list[str]
) -> OwnPart:
    index = agent_files.skill_index(text)
    if index is None:
        left.append(f"{path} is not a JSON object")
    fingerprints, entries = {path: fingerprint}, []
    for position, (skill_id, description) in enumerate((index or {}).items()):
        at = agent_files.skill_path(skill_id)
        fingerprints[at], body, changed_at = _content(workspace, at, left)
        item = agent_files.Skill(skill_id, description, body)
        entries.append(OwnEntry(skill_id, position, changed_at, item))
    changed_at = max((entry.created_at for entry in entries), default=0.0)
    return OwnPart("skills", fingerprints, changed_at, len(entries), entries=tuple(entries))


def _content(workspace: Path, path: str, left: list[str]) -> tuple[Fingerprint, str, float]:
    """The fingerprint, text and time of a file; empty if it cannot be read."""
    # Before reading, so that a concurrent write changes the fingerprint.
    fingerprint = fingerprint_at(workspace / path)
    if fingerprint == NOWHERE:
        return NOWHERE, "", 0.0
    try:
        content, status = atomic.read(workspace / path, _LARGEST, below=workspace)
    except FileNotFoundError:
        return fingerprint, "", 0.0
    except (Conflict, TooLarge, OSError) as error:
        left.append(str(error))
        return fingerprint, "", 0.0
    return fingerprint, content.decode(errors="replace"), status.st_mtime


def _locked(workspace: Path, do: Callable[[], T]) -> T:
    try:
        with line_file.locked(workspace / FOLDER):
            return do()
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EEXIST}:
            raise Conflict(
                f"cannot write into {workspace / FOLDER}: it is not a folder, or a link",
                hint="move it away",
            ) from error
        raise translate_os(error, workspace / FOLDER) from error


def _remove(workspace: Path, entries: AbstractSet[tuple[str, str]], now: float) -> None:
    for kind, path in agent_files.PATHS.items():
        gone = {key for name, key in entries if name == kind}
        change = partial(_without_skills if kind == "skill" else _without_lines, gone=gone)
        if gone:
            _rewrite(workspace, path, change, now)


def _without_lines(text: str, gone: AbstractSet[str]) -> dict[str, str]:
    lines = text.split("\n")
    left = [line for line in lines if agent_files.digest(line) not in gone]
    return {} if left == lines else {"": "\n".join(left)}


def _without_skills(text: str, gone: AbstractSet[str]) -> dict[str, str]:
    index = agent_files.whole_index(text)
    if index is None or not gone & index.keys():
        return {}
    left = {key: path for key, path in index.items() if key not in gone}
    return {"": agent_files.index_text(left)}


def _write_skill(workspace: Path, skill: agent_files.Skill, now: float, *, replace: bool) -> bool:
    new = True

    def change(text: str) -> dict[str, str]:
        nonlocal new
        index = agent_files.whole_index(text)
        if index is None:
            raise Conflict(
                f"cannot add to {workspace / SKILLS}: it is not a JSON object",
                hint="correct it, or move it away",
            )
        new = skill.id not in index
        if not new and not replace:
            raise Conflict(
                f"cannot add the skill '{skill.id}': it exists",
                field="id",
                hint="give `force` (`--force`) to replace it",
            )
        body = {skill.path: skill.text} if skill.text or new else {}
        return body | {"": agent_files.index_text({**index, skill.id: skill.description})}

    _rewrite(workspace, SKILLS, change, now)
    return new


def _rewrite(
    workspace: Path, path: str, change: Callable[[str], Mapping[str, str]], now: float
) -> None:
    """Change a file whose lock is held, unless another program writes it meanwhile.

    `change` gets its text, and returns the new texts of files by path, "" for this file; none if
    nothing is to be written.
    """
    top = workspace / FOLDER
    for _ in range(_TRIES):
        try:
            content, status = atomic.read(workspace / path, _LARGEST, below=workspace)
            fingerprint, text = fingerprint_of(status), content.decode()
        except FileNotFoundError:
            fingerprint, text = NOWHERE, ""
        except UnicodeDecodeError as error:
            raise Conflict(f"cannot change {workspace / path}: it is not valid UTF-8") from error
        files = [
            WaitingNote(
                at or path, Note(new, now), fingerprint_at(workspace / at) if at else fingerprint
            )
            for at, new in change(text).items()
        ]
        done, barred = write_files(top, files)
        if barred:
            raise Conflict(f"cannot write {workspace / barred[0].path}: {barred[0].why}")
        if len(done) == len(files):
            return
        time.sleep(0.01)
    raise Conflict(f"cannot write {workspace / path}: something else keeps changing it")
