"""Ingests daily notes: their facts become memories, each once.

The ingested facts of a note are recorded. A note is read again only if it has changed, and then
only new facts are stored: a fact that was forgotten does not come back, and a fact whose line was
removed from the note is kept. The id of a fact's memory is derived from the note and the words, so
that devices that share both do not store it twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, tzinfo
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import InvalidInput, ModelUnavailable
from ..language.notes import NoteFact, read_note
from ..language.secrets import clear, without_secrets
from ..language.standing import is_standing_statement
from ..memory import checks
from ..memory.records import DEFAULT_CATEGORY, EXTRACTED, NOTE, Memory
from ..memory.similarity import exact_key
from ..shapes.upkeep import Ingested, NoteReport, TakenIn
from ..store import noted, supersession
from ..store.agent_store import AgentStore
from ..store.duplicates import is_known
from ..store.memory_table import index_new
from ..store.transaction import Transaction
from ..thinking.model_or_rules import AskOptions, ModelOrRules
from ..thinking.note_reading import read_by_model
from .notes import DailyNote, Folder, Unread, read_notes

_KEY: Final = "note/"
# About ten milliseconds of the writer's time, which may delay a store.
_AT_ONCE: Final = 32


class Ingestion(msgspec.Struct, frozen=True):
    """The folders of an agent's notes, and how to read them.

    Attributes:
        categories: words of headings and their categories.
        days: the number of days whose notes are read, including today.
        max_bytes: the maximum size of a note.
    """

    folders: tuple[Folder, ...]
    categories: Mapping[str, str]
    days: int
    max_bytes: int


class _Known(msgspec.Struct, frozen=True):
    """The record of a note: its digest, and the keys of all facts that it ever had."""

    digest: str = ""
    keys: tuple[str, ...] = ()


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One run of upkeep for one agent.

    Attributes:
        store: the agent's memory, open during the run.
        mode: the name of the run.
        dry_run: change nothing.
        ingestion: the daily notes.
        zone: the device's time zone.
        model: a model; None: only the rules.
        endpoint: a server to ask instead of the configured models.
        facts: the results of the steps so far, by the field names of `Consolidated`.
    """

    store: AgentStore
    mode: str
    dry_run: bool
    ingestion: Ingestion
    zone: tzinfo
    model: ModelOrRules | None = None
    endpoint: str | None = None
    facts: dict[str, Any] = {}

    @property
    def options(self) -> AskOptions:
        """How to ask the model."""
        return AskOptions(endpoint=self.endpoint)

    def model_for(self, purpose: str) -> ModelOrRules | None:
        """The model, if it can be asked for `ingest`, `merge` or `rebuild`."""
        model = self.model
        return model if model is not None and model.is_asked(purpose, self.options) else None


async def ingest(work: Work, days: int, writer: str = "daemon") -> Ingested:
    """Ingest the notes of some days, today included, each in its own transactions.

    A dry run reports what would be stored. `writer` is the writer of the memories.

    Raises:
        ThermoclineError: the memory cannot be read or written; stored facts are kept, and the
            next call continues.
    """
    today = datetime.fromtimestamp(work.store.now, work.zone).date()
    reading = _Reading(work, work.model_for("ingest"), writer)
    notes = read_notes(work.ingestion.folders, today, days, work.ingestion.max_bytes)
    while (found := await asyncio.to_thread(next, notes, None)) is not None:
        await reading.take(found)
    return reading.result()


class _Reading(msgspec.Struct):
    """The state of one call of `ingest`."""

    work: Work
    model: ModelOrRules | None
    writer: str
    fallbacks: int = 0
    model_error: str | UnsetType = UNSET
    told: set[str] = set()
    files: list[NoteReport] = []
    facts: list[TakenIn] = []

    async def take(self, found: DailyNote | Unread) -> None:
        """Store what is new in a note."""
        if isinstance(found, Unread):
            self.files.append(NoteReport(found.name, "refused", why=found.why))
            return
        key = _KEY + found.key
        before = await self.work.store.read(lambda db: noted.read(db, key, _Known)) or _Known()
        if before.digest == found.digest:
            number = len(before.keys)
            self.files.append(NoteReport(found.name, "unchanged", number))
            return
        facts = await self._read(found.text)
        new = [self._memory(found, fact) for fact in facts if fact.key not in before.keys]
        stored = await self._keep([memory for memory in new if memory is not None])
        if not self.work.dry_run:
            keys = tuple(dict.fromkeys((*before.keys, *(fact.key for fact in facts))))
            after = _Known(found.digest, keys)
            await self.work.store.write(lambda tx: noted.write(tx, key, after))
        self.facts += stored
        self.files.append(NoteReport(found.name, "read", len(facts), len(stored)))

    def result(self) -> Ingested:
        """The result for all notes."""
        found = sum(file.found for file in self.files)
        return Ingested(
            files_scanned=len(self.files),
            mode="rule" if self.model is None else "llm",
            facts_found=found,
            facts_stored=len(self.facts),
            facts_skipped=found - len(self.facts),
            llm_fallbacks=self.fallbacks,
            facts=tuple(self.facts),
            files=tuple(self.files),
            dry_run=self.work.dry_run,
            model_error=self.model_error,
        )

    async def _read(self, text: str) -> Sequence[NoteFact]:
        work, headings = self.work, self.work.ingestion.categories
        text = (await asyncio.to_thread(clear, text)).text
        if self.model is not None:
            try:
                return await read_by_model(work.store, text, headings, self.model, work.options)
            except ModelUnavailable as error:
                self.fallbacks += 1
                self.model_error = error.in_full
        return await asyncio.to_thread(read_note, text, headings)

    async def _keep(self, new: Sequence[Memory]) -> list[TakenIn]:
        stored: list[Memory] = []
        for start in range(0, len(new), _AT_ONCE):
            group = new[start : start + _AT_ONCE]
            if self.work.dry_run:
                stored += await self.work.store.read(partial(self._unknown, group=group))
            else:
                stored += await self.work.store.write(partial(_store, group=group))
        taken = [msgspec.convert(memory, TakenIn, from_attributes=True) for memory in stored]
        if self.work.dry_run:
            return [msgspec.structs.replace(one, id=UNSET) for one in taken]
        return taken

    def _unknown(self, db: sqlite3.Connection, group: Sequence[Memory]) -> list[Memory]:
        found = []
        for memory in group:
            key = exact_key(memory.text)
            if key not in self.told and not is_known(db, memory):
                self.told.add(key)
                found.append(memory)
        return found

    def _memory(self, note: DailyNote, fact: NoteFact) -> Memory | None:
        """The memory for a fact; None if it cannot be stored."""
        now = self.work.store.now
        try:
            text = checks.check_text(fact.text)
            metadata = checks.check_metadata(fact.metadata)
        except InvalidInput:
            return None
        digest = hashlib.sha256(f"{note.key}\0{fact.key}".encode()).hexdigest()
        memory = Memory(
            id=digest[:12],
            text=text,
            category=_category(fact.category, self.work.store.rules.tree.max_depth),
            importance=min(1.0, max(0.0, fact.importance)),
            standing=is_standing_statement(text),
            source=EXTRACTED,
            data={NOTE: note.name},
            metadata=metadata,
            created_at=min(now, _noon(note.day, self.work.zone)),
            updated_at=now,
            writer=self.writer,
        )
        return without_secrets(memory)


def _noon(day: date, zone: tzinfo) -> float:
    return max(0.0, datetime.combine(day, time(12), zone).timestamp())


def _category(category: str, max_depth: int) -> str:
    """A valid category: cut at the tree's depth, or the default if it is not a path."""
    try:
        clean = checks.check_category(category, checks.CATEGORY_CHARS)
    except InvalidInput:
        return DEFAULT_CATEGORY
    return "/".join(clean.split("/")[:max_depth])


def _store(tx: Transaction, group: Sequence[Memory]) -> list[Memory]:
    stored = []
    for memory in group:
        index_new(tx)
        if not is_known(tx.db, memory):
            stored.append(supersession.insert(tx, memory).memory)
    return stored
