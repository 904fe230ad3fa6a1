"""Erases the texts of forgotten memories: from what names them, and from an agent's files.

The rows go in the commit that forgets the memories; `Eraser` does the rest soon after it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from thermocline.sync import moment_of

from ..errors import ShuttingDown, ThermoclineError, translate_os
from ..memory.agent_files import EPISODES
from ..memory.similarity import text_digest, words
from ..memory.tree_nodes import ROOT, ancestors, title
from ..runtime import atomic, line_file
from .agent_paths import AgentPaths
from .database import full_text, meta, rows
from .database.connection import scalar, to_json
from .database.transaction import DeletedMemory, Transaction
from .records import agent_entries, history, hot_rows, memory_rows, notes, tree_rows
from .records.agent_entries import OwnEntry

# A shorter text may stand anywhere by chance.
_LEAST_WORDS: Final = 3
# Copies that the daemon makes of its own files in an agent's folder.
_COPIES: Final = (
    "*.changed-*",
    "before-takeover-*/*",
    "before-rebuild-*/*",
    "takeover-report.json",
)
_DATABASE_COPIES: Final = ("memory.db.v[0-9]*", "memory.db.corrupt-*")
_PART: Final = 1_048_576
# Not within a longer word; a line break in JSON ends with a letter.
_ALONE: Final = rb"(?:(?<!\w)|(?<=\\[nrt]))%b(?!\w)"


class Traces:
    """The texts of forgotten memories."""

    def __init__(self, forgotten: Iterable[DeletedMemory]) -> None:
        self.texts = sorted(
            {
                text
                for deleted_memory in forgotten
                if (text := deleted_memory.text.strip().rstrip(".!"))
                and len(words(text)) >= _LEAST_WORDS
            },
            key=len,
            reverse=True,
        )
        # Versions of a log have most of their lines in common.
        self._lines: dict[str, str | None] = {}

    def __bool__(self) -> bool:
        return bool(self.texts)

    def removed(self, text: str) -> str:
        """`text` without the forgotten ones."""
        for item in self.texts:
            if item in text:
                text = re.sub(rf"(?<!\w){re.escape(item)}(?!\w)[.!]?\s*", "", text)
        return text

    def removed_from(self, value: Any) -> Any:
        """A value of the hot state without the texts; None if nothing else is left of it."""
        if isinstance(value, str):
            rest = self.removed(value)
            return value if rest == value else rest.strip() or None
        if isinstance(value, list):
            left = [item for item in map(self.removed_from, value) if item is not None]
            return left or (None if value else value)
        if isinstance(value, dict):
            items = {name: self.removed_from(inner) for name, inner in value.items()}
            is_gone = items.get("text") is None and value.get("text") is not None
            return None if is_gone else items
        return value

    def removed_from_log(self, content: str) -> str:
        """The lines of a log of episodes without the texts and their tags; empty lines go."""
        lines = content.split("\n")
        for line in lines:
            if line not in self._lines:
                self._lines[line] = self._removed_from_line(line)
        return "\n".join(rest for line in lines if (rest := self._lines[line]) is not None)

    def _removed_from_line(self, line: str) -> str | None:
        try:
            episode = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError):
            return line
        summary = episode.get("summary")
        if not isinstance(summary, str) or (rest := self.removed(summary)) == summary:
            return line
        tags, gone = episode.get("tags"), "\n".join(self.texts).casefold()
        if isinstance(tags, list):
            left = rest.casefold()
            episode["tags"] = [tag for tag in tags if _has(left, tag) or not _has(gone, tag)]
        episode["summary"] = rest.strip()
        return to_json(episode) if rest.strip() else None

    def needles(self) -> list[bytes]:
        """The texts as they stand in files: plain, and within JSON in either way to write it."""
        forms = {
            form
            for text in self.texts
            for form in (
                text.encode(errors="surrogateescape"),
                msgspec.json.encode(text)[1:-1],
                _ascii_json(text),
            )
        }
        return sorted(forms, key=len, reverse=True)


def erase(tx: Transaction) -> None:
    """Erase the traces of the transaction's forgotten memories from the database."""
    # What another memory still says is not forgotten.
    still = "SELECT 1 FROM memories WHERE digest = ? LIMIT 1"
    tx.forgotten = [
        deleted
        for deleted in tx.forgotten
        if scalar(tx.db, still, text_digest(deleted.text)) is None
    ]
    for category in {item.category for item in tx.forgotten}:
        _remove_unused(tx, category)
    traces = Traces(tx.forgotten)
    if not traces:
        return
    _erase_log(tx, traces)
    _erase_hot(tx, traces)
    _erase_versions(tx, traces)
    _erase_turns(tx, traces)


def in_copies(db: sqlite3.Connection, traces: Traces) -> bool:
    """Whether a copy of the episodes, or of their file, has one of the texts."""
    row = rows.load(db, notes.KIND, EPISODES)
    for text in ("" if row is None else row.data.get("text", ""), notes.shown(db, EPISODES) or ""):
        if traces.removed_from_log(text) != text:
            return True
    return len(_entries_without(db, traces)) < agent_entries.count(db, "episodes")


def erase_copies(tx: Transaction, traces: Traces) -> None:
    """Remove the texts from the copies after the file has lost them, since it was read before."""
    _erase_log(tx, traces)
    agent_entries.keep_only(tx, "episodes", _entries_without(tx.db, traces))
    shown = notes.shown(tx.db, EPISODES)
    if shown is not None:
        notes.set_shown(tx, EPISODES, traces.removed_from_log(shown))


def _entries_without(db: sqlite3.Connection, traces: Traces) -> list[OwnEntry]:
    entries = agent_entries.every(db, "episodes")
    return [entry for entry in entries if traces.removed(entry.item.text) == entry.item.text]


def erase_from_files(place: AgentPaths, traces: Traces) -> None:
    """Erase the texts from the file of episodes and from the daemon's own copies. Blocking.

    A copy of the whole database in which a text is found is removed.
    """
    needles = traces.needles()
    for path in {*_copies(place)}:
        data = path.read_bytes()
        clean = data
        for needle in needles:
            # Of the same length, so that what is around it stays as it is.
            clean = re.sub(_ALONE % re.escape(needle), b" " * len(needle), clean)
        if clean != data:
            atomic.write(path, clean, path.stat().st_mode & 0o777)
    for pattern in _DATABASE_COPIES:
        for path in filter(_is_file, place.folder.glob(pattern)):
            if _holds(path, needles):
                path.unlink()
    log = (place.workspace or place.folder) / EPISODES
    rewrite(log, traces.removed_from_log)


def rewrite(path: Path, change: Callable[[str], str], *, dry_run: bool = False) -> bool:
    """Change the content of a log under its lock; whether it is changed. Blocking."""
    if not path.is_file():
        return False
    # A line added meanwhile must not be lost.
    with line_file.locked(path.parent):
        data = path.read_bytes()
        clean = change(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        if clean != data and not dry_run:
            atomic.write(path, clean, path.stat().st_mode & 0o777)
    return clean != data


def _remove_unused(tx: Transaction, category: str) -> None:
    """Remove categories that were made for forgotten memories and hold nothing any more."""
    for path in (category, *reversed([*ancestors(category)])):
        row = rows.load(tx.db, tree_rows.KIND, path)
        if path == ROOT or row is None or row.data["desc"] != title(path):
            return
        if moment_of(row.clocks.latest[0]) or tree_rows.is_used(tx.db, path):
            return
        tree_rows.remove_unused(tx, path)
        rows.erase(tx, tree_rows.KIND, path)
        if not meta.has_replica(tx.db):
            # No other device knows it: its name need not be kept either.
            for table in ("rows", "outbox"):
                tx.db.execute(f"DELETE FROM {table} WHERE kind = 'category' AND id = ?", (path,))


def _erase_hot(tx: Transaction, traces: Traces) -> None:
    """Erase the texts from the hot state, which takes wishes out of conversations."""
    for key, data in rows.live_rows(tx.db, hot_rows.KIND):
        entry = msgspec.json.decode(data, type=dict[str, Any])
        value = traces.removed_from(entry.get("value"))
        if value is None and entry.get("value") is not None:
            rows.write(tx, hot_rows.KIND, key, None)
        elif value != entry.get("value"):
            rows.write(tx, hot_rows.KIND, key, {**entry, "value": value}, why="forgotten")


def _erase_log(tx: Transaction, traces: Traces) -> None:
    """Rewrite the log of episodes and its versions."""
    row = rows.load(tx.db, notes.KIND, EPISODES)
    if row is not None and (text := traces.removed_from_log(row.data["text"])) != row.data["text"]:
        rows.write(tx, notes.KIND, EPISODES, {**row.data, "text": text}, why="forgotten")
    result = tx.db.execute(
        "SELECT number, data FROM history WHERE kind = 'note' AND id = ? AND data IS NOT NULL",
        (EPISODES,),
    )
    for number, data in result.fetchall():
        version = msgspec.json.decode(data, type=dict[str, Any])
        text = traces.removed_from_log(version["text"])
        if text != version["text"]:
            tx.db.execute(
                "UPDATE history SET data = ? WHERE number = ?",
                (to_json({**version, "text": text}), number),
            )


def _erase_versions(tx: Transaction, traces: Traces) -> None:
    """Delete versions of rows with the texts."""
    needles = [to_json(text)[1:-1] for text in traces.texts]
    result = tx.db.execute(
        "SELECT number, data FROM history WHERE kind NOT IN ('memory', 'pair', 'note')"
        " AND data IS NOT NULL"
    )
    for number, data in result.fetchall():
        if any(needle in data for needle in needles):
            tx.db.execute("DELETE FROM history WHERE number = ?", (number,))
            tx.db.execute("UPDATE outbox SET base = NULL WHERE base = ?", (number,))
    for key, data in rows.live_rows(tx.db, history.LOST):
        lost = msgspec.json.decode(data, type=dict[str, Any])
        has_text = any(item in str(lost["data"]) for item in needles)
        if has_text and lost["of"] != memory_rows.KIND.name:
            rows.write(tx, history.LOST, key, None)


def _erase_turns(tx: Transaction, traces: Traces) -> None:
    rows = tx.db.execute("SELECT conversation, position, text FROM turns").fetchall()
    for conversation, position, text in rows:
        if (rest := traces.removed(text)) != text:
            tx.db.execute(
                "UPDATE turns SET text = ? WHERE conversation = ? AND position = ?",
                (rest, conversation, position),
            )
    entries = tx.db.execute("SELECT id, entry FROM conversations WHERE entry IS NOT NULL")
    for key, entry in entries.fetchall():
        if (rest := traces.removed_from_log(entry)) != entry:
            tx.db.execute("UPDATE conversations SET entry = ? WHERE id = ?", (rest or None, key))


def _copies(place: AgentPaths) -> Iterator[Path]:
    named = [(place.folder, pattern) for pattern in _COPIES]
    for folder, pattern in (*named, (place.markdown.parent, f"{place.markdown.name}.changed-*")):
        yield from filter(_is_file, folder.glob(pattern))


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _holds(path: Path, needles: Sequence[bytes]) -> bool:
    longest = max(map(len, needles), default=1)
    end = b""
    with path.open("rb") as file:
        while part := file.read(_PART):
            if any(needle in end + part for needle in needles):
                return True
            end = part[-longest:]
    return False


def _ascii_json(text: str) -> bytes:
    return b"".join(
        char.encode() if char.isascii() else char.encode("unicode_escape") for char in text
    )


def _has(text: str, tag: object) -> bool:
    return isinstance(tag, str) and tag.casefold() in text


_log = logging.getLogger(__name__)
# Several deletions share a pass, which may rewrite the index.
_DELAY_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 40.0
# A reader that began before needs the log; it is tried again after this, at most.
_LONGEST_WAIT: Final = 1.0
_CLOSING_SECONDS: Final = 2.0


class Eraser:
    """Erases traces of forgotten memories, words of deleted texts, and the database's log.

    Deleted content is overwritten in the database by its commit. Its words stay in the full text
    until that is merged, and the log has copies of all pages until it is emptied. `truncate_log`
    returns False if a reader needs the log.
    """

    def __init__(
        self,
        place: AgentPaths,
        write: Callable[[Callable[[Transaction], None]], Awaitable[Any]],
        read: Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]],
        truncate_log: Callable[[], Awaitable[bool]],
    ) -> None:
        self._place = place
        self._write = write
        self._read = read
        self._truncate_log = truncate_log
        self._forgotten: list[DeletedMemory] = []
        self._erased_once: list[DeletedMemory] = []
        self._is_due = False
        self._last = -_PAUSE_SECONDS
        self._task: asyncio.Task[None] | None = None
        self._busy = asyncio.Lock()

    def note(self, committed: Transaction) -> None:
        """Erase what a commit has deleted, soon."""
        self._forgotten += committed.forgotten
        if committed.erased:
            self.request()

    def request(self) -> None:
        """Start a pass soon."""
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(
                self._run(), name=f"erasure of {self._place.agent}"
            )

    async def finish(self) -> None:
        """Erase what is due, before the database is closed, which removes the log."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._is_due:
            with suppress(ThermoclineError, TimeoutError):
                async with asyncio.timeout(_CLOSING_SECONDS):
                    await self.erase_traces(again=True)
                    await self.merge_words()

    async def erase_now(self) -> None:
        """Erase the texts of forgotten memories from the agent's files, as far as the disk allows.

        The rest follows with the pass that their deletion has requested.
        """
        try:
            await self.erase_traces()
        except ThermoclineError as error:
            # They are forgotten all the same: an error would say that they are still there.
            _log.info("erasing again later: %s", error, extra={"action": "erasure_delayed"})

    async def erase_traces(self, *, again: bool = False) -> None:
        """Erase the texts of forgotten memories from the agent's files.

        `again` does so once more with what was erased before: a line or a file that was read before
        that may have been written after it.
        """
        async with self._busy:
            forgotten = [*self._forgotten]
            repeated = [*self._erased_once] if again else []
            traces = Traces([*repeated, *forgotten])
            if traces:
                try:
                    await asyncio.to_thread(erase_from_files, self._place, traces)
                except OSError as error:
                    raise translate_os(error, self._place.folder) from error
                if await self._read(partial(in_copies, traces=traces)):
                    await self._write(partial(erase_copies, traces=traces))
            del self._forgotten[: len(forgotten)]
            self._erased_once = [*self._erased_once[len(repeated) :], *([] if again else forgotten)]

    async def merge_words(self) -> None:
        """Merge the full text, which removes the words of deleted texts."""
        # Bounded: under load every step finds new segments and deleted texts.
        for _ in range(await self._read(full_text.steps)):
            if not await self._read(full_text.to_merge):
                break
            await self._write(full_text.merge)

    async def _run(self) -> None:
        while self._is_due:
            wait = self._last + _PAUSE_SECONDS - time.monotonic()
            await asyncio.sleep(max(_DELAY_SECONDS, wait))
            self._last = time.monotonic()
            self._is_due = False
            try:
                await self.erase_traces(again=True)
                await self.merge_words()
                await self._empty_log()
            except ShuttingDown:
                self._is_due = True
                return
            except ThermoclineError as error:
                self._is_due = True
                _log.info("erasing again later: %s", error, extra={"action": "erasure_delayed"})
            except asyncio.CancelledError:
                self._is_due = True
                raise

    async def _empty_log(self) -> None:
        wait = 0.01
        while not await self._truncate_log():
            await asyncio.sleep(wait)
            wait = min(_LONGEST_WAIT, 2 * wait)
