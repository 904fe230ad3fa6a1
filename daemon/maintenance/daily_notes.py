"""Reads the daily notes of an agent safely, and stores their facts as memories, each once.

The ingested facts of a note are recorded. A note is read again only if it has changed, and then
only new facts are stored: a fact that was forgotten does not come back, and a fact whose line was
removed from the note is kept. The id of a fact's memory is derived from the note and the words, so
that devices that share both do not store it twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from ..config.settings import Ingest
from ..errors import Conflict, InvalidInput, ModelUnavailable, TooLarge, reason_of
from ..language.extraction.notes import CATEGORIES, NoteFact, read_note
from ..language.secrets import clear, without_secrets
from ..language.standing import is_standing_statement
from ..memory import checks
from ..memory.records import DEFAULT_CATEGORY, EXTRACTED, NOTE, Memory
from ..memory.similarity import exact_key
from ..runtime import atomic
from ..schemas.upkeep import Ingested, NoteReport, TakenIn
from ..store.agent_store import AgentStore
from ..store.database import meta
from ..store.database.connection import batches
from ..store.database.transaction import Transaction
from ..store.records import similar
from ..store.records.memory_rows import index_new
from ..store.records.similar import is_known
from ..tasks.model_or_rules import AskOptions, ModelOrRules
from ..tasks.note_reading import read_by_model
from ..tasks.similar_memories import AskNearest

# EvoClaw's: `2026-02-11.md`, and also `2026-02-11-late.md`.
_NAME: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}).*\.md", re.DOTALL)


class Folder(msgspec.Struct, frozen=True):
    """A folder of notes; `label` identifies it even if it is moved."""

    label: str
    path: Path


class DailyNote(msgspec.Struct, frozen=True):
    """A note that was read."""

    key: str  # its folder and name, which identify the note
    name: str
    day: date  # the date at the beginning of its name
    text: str
    digest: str  # the digest of its bytes


class Unread(msgspec.Struct, frozen=True):
    """A note that cannot be read, and why."""

    name: str
    why: str


NoteResult: TypeAlias = DailyNote | Unread


def note_of(folders: Sequence[Folder], day: date, max_kb: int) -> tuple[str, str] | None:
    """The path and text of the note of a day, if any; `InvalidInput` if not readable. Blocking."""
    results = list(read_notes(folders, day, 1, max_kb))
    notes = [note for note in results if isinstance(note, DailyNote)]
    if notes:
        note = min(notes, key=lambda note: note.name != f"{day}.md")
        folder = next(folder for folder in folders if note.key.startswith(f"{folder.label}/"))
        return str(folder.path / note.name), note.text
    for unread in results:
        if isinstance(unread, Unread):
            raise InvalidInput(f"cannot read {unread.name}: {unread.why}", field="file")
    return None


def read_notes(
    folders: Sequence[Folder], today: date, days: int, max_kb: int
) -> Iterator[NoteResult]:
    """The notes of `days` days up to today, oldest first. Blocking; never raises.

    Links are not followed. A file that is not UTF-8 text, or larger than `max_kb` KB, is returned
    as `Unread`.
    """
    first = today - timedelta(days=min(days, today.toordinal()) - 1)
    for folder in folders:
        try:
            if folder.path.is_symlink():
                yield Unread(folder.path.name, "it is a link")
                continue
            names = sorted(path.name for path in folder.path.iterdir())
        except FileNotFoundError:
            continue
        except OSError as error:
            yield Unread(folder.path.name, reason_of(error))
            continue
        for name in names:
            day = _day_of(name)
            if day is not None and first <= day <= today:
                with suppress(FileNotFoundError):
                    yield _read_note(folder, name, day, max_kb)


def _day_of(name: str) -> date | None:
    match = _NAME.fullmatch(name)
    if match is not None and name.isprintable():
        with suppress(ValueError):
            return date.fromisoformat(match[1])
    return None


def _read_note(folder: Folder, name: str, day: date, max_kb: int) -> NoteResult:
    path = folder.path / name
    try:
        content, _ = atomic.read(path, max_kb * 1_024, below=folder.path)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except TooLarge:
        return Unread(name, f"it is larger than {max_kb} KB (ingest.max_note_kb)")
    except Conflict as error:
        return Unread(name, error.message.replace(f"cannot read {path}: '{name}'", "it"))
    except UnicodeDecodeError:
        return Unread(name, "it is not UTF-8 text")
    except OSError as error:
        return Unread(name, reason_of(error))
    if "\0" in text:
        return Unread(name, "it is not text")
    return DailyNote(f"{folder.label}/{name}", name, day, text, hashlib.sha256(content).hexdigest())


_KEY: Final = "note/"
# About ten milliseconds of the writer's time, which may delay a store.
_AT_ONCE: Final = 32


class _Known(msgspec.Struct, frozen=True):
    """The record of a note: its digest, and the keys of all facts that it ever had."""

    digest: str = ""
    keys: tuple[str, ...] = ()


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One run of upkeep for one agent."""

    store: AgentStore  # the agent's memory, open during the run
    mode: str  # the name of the run
    dry_run: bool
    folders: tuple[Folder, ...]  # those of the agent's daily notes
    notes: Ingest  # how to read these
    zone: tzinfo  # the device's time zone
    model: ModelOrRules | None = None  # a model; None: only the rules
    endpoint: str | None = None  # a server to ask instead of the configured models
    # Finds what is near in meaning to memories; None: nothing does.
    nearest: AskNearest | None = None
    # The results of the steps so far, by the field names of `Consolidated`.
    facts: dict[str, Any] = {}

    @property
    def options(self) -> AskOptions:
        return AskOptions(endpoint=self.endpoint)

    def model_for(self, purpose: str) -> ModelOrRules | None:
        """The model, if it can be asked for `ingest`, `merge` or `rebuild`."""
        model = self.model
        return model if model is not None and model.is_asked(purpose, self.options) else None


async def ingest(work: Work, days: int, writer: str = "daemon") -> Ingested:
    """Ingest the notes of some days, today included, each in its own transactions.

    A dry run reports what would be stored. `writer` is the writer of the memories. After an error
    stored facts are kept, and the next call continues.
    """
    today = datetime.fromtimestamp(work.store.now, work.zone).date()
    reading = _Reading(work, work.model_for("ingest"), writer)
    notes = read_notes(work.folders, today, days, work.notes.max_note_kb)
    while (note := await asyncio.to_thread(next, notes, None)) is not None:
        await reading.take(note)
    return reading.result()


class _Reading(msgspec.Struct):
    """The state of one call of `ingest`."""

    work: Work
    model: ModelOrRules | None
    writer: str
    used_model: bool = False
    fallbacks: int = 0
    model_error: str | UnsetType = UNSET
    reported: set[str] = set()
    files: list[NoteReport] = []
    facts: list[TakenIn] = []

    async def take(self, note: DailyNote | Unread) -> None:
        """Store what is new in a note."""
        if isinstance(note, Unread):
            self.files.append(NoteReport(note.name, "refused", why=note.why))
            return
        key = _KEY + note.key
        before = await self.work.store.read(lambda db: meta.read(db, key, _Known)) or _Known()
        if before.digest == note.digest:
            number = len(before.keys)
            self.files.append(NoteReport(note.name, "unchanged", number))
            return
        facts = await self._read(note.text)
        new = [self._memory(note, fact) for fact in facts if fact.key not in before.keys]
        stored = await self._store([memory for memory in new if memory is not None])
        if not self.work.dry_run:
            keys = tuple(dict.fromkeys((*before.keys, *(fact.key for fact in facts))))
            after = _Known(note.digest, keys)
            await self.work.store.write(lambda tx: meta.write(tx, key, after))
        self.facts += stored
        self.files.append(NoteReport(note.name, "read", len(facts), len(stored)))

    def result(self) -> Ingested:
        facts = sum(file.found for file in self.files)
        return Ingested(
            files_scanned=len(self.files),
            mode="llm"
            if self.used_model or (self.model is not None and not self.files)
            else "rule",
            facts_found=facts,
            facts_stored=len(self.facts),
            facts_skipped=facts - len(self.facts),
            llm_fallbacks=self.fallbacks,
            facts=tuple(self.facts),
            files=tuple(self.files),
            dry_run=self.work.dry_run,
            model_error=self.model_error,
        )

    async def _read(self, text: str) -> Sequence[NoteFact]:
        work = self.work
        # Words of headings and their categories; those of the configuration come first.
        headings = work.notes.categories | {
            word: path for word, path in CATEGORIES.items() if word not in work.notes.categories
        }
        text = (await asyncio.to_thread(clear, text)).text
        options = work.options
        if self.model is not None:
            options = self.model.for_text(options, len(text))
        if self.model is not None and self.model.is_asked("ingest", options):
            self.used_model = True
            try:
                return await read_by_model(work.store, text, headings, self.model, options)
            except ModelUnavailable as error:
                self.fallbacks += 1
                self.model_error = error.in_full
        return await asyncio.to_thread(read_note, text, headings)

    async def _store(self, new: Sequence[Memory]) -> list[TakenIn]:
        stored: list[Memory] = []
        for group in batches(new, _AT_ONCE):
            if self.work.dry_run:
                stored += await self.work.store.read(partial(self._unknown, group=group))
            else:
                stored += await self.work.store.write(partial(_store, group=group))
        taken = [msgspec.convert(memory, TakenIn, from_attributes=True) for memory in stored]
        if self.work.dry_run:
            return [msgspec.structs.replace(taken_in, id=UNSET) for taken_in in taken]
        return taken

    def _unknown(self, db: sqlite3.Connection, group: Sequence[Memory]) -> list[Memory]:
        unknown = []
        for memory in group:
            key = exact_key(memory.text)
            if key not in self.reported and not is_known(db, memory):
                self.reported.add(key)
                unknown.append(memory)
        return unknown

    def _memory(self, note: DailyNote, fact: NoteFact) -> Memory | None:
        """The memory for a fact; None if it cannot be stored."""
        now = self.work.store.now
        try:
            text = checks.check_text(fact.text)
            metadata = checks.check_metadata(fact.metadata)
        except InvalidInput:
            return None
        digest = hashlib.sha256(f"{note.key}\0{fact.key}".encode()).hexdigest()
        noon = max(0.0, datetime.combine(note.day, time(12), self.work.zone).timestamp())
        memory = Memory(
            id=digest[:12],
            text=text,
            category=_category(fact.category, self.work.store.rules.tree.max_depth),
            importance=min(1.0, max(0.0, fact.importance)),
            standing=is_standing_statement(text),
            source=EXTRACTED,
            data={NOTE: note.name},
            metadata=metadata,
            created_at=min(now, noon),
            updated_at=now,
            writer=self.writer,
        )
        return without_secrets(memory)


def _category(category: str, max_depth: int) -> str:
    try:
        return checks.filed_category(category, max_depth)
    except InvalidInput:
        return DEFAULT_CATEGORY


def _store(tx: Transaction, group: Sequence[Memory]) -> list[Memory]:
    stored = []
    for memory in group:
        index_new(tx)
        if not is_known(tx.db, memory):
            stored.append(similar.insert(tx, memory).memory)
    return stored
