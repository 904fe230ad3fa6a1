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
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import InvalidInput, ModelUnavailable
from ..language.notes import NoteFact, read_note
from ..language.secrets import clear, without_secrets
from ..memory import checks
from ..memory.records import DEFAULT_CATEGORY, EXTRACTED, NOTE, Memory
from ..memory.similarity import exact_key
from ..shapes.upkeep import Ingested, NoteReport, TakenIn
from ..store import memories, noted
from ..store.agent_store import AgentStore
from ..store.duplicates import is_known
from ..store.memory_table import index_new
from ..store.transaction import Transaction
from .advice import Advisor, asked
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


async def ingest(
    store: AgentStore,
    ingestion: Ingestion,
    *,
    days: int,
    zone: tzinfo,
    dry_run: bool = False,
    advisor: Advisor | None = None,
    endpoint: str | None = None,
    writer: str = "daemon",
) -> Ingested:
    """Ingest the notes of some days, each in its own transactions.

    Args:
        store: the agent's memory.
        ingestion: the folders of the notes.
        days: the number of days, including today.
        zone: the time zone of today.
        dry_run: store nothing, and report what would be stored.
        advisor: a model that reads the notes; None: the rules.
        endpoint: a server to ask instead of the configured models.
        writer: the writer of the memories.

    Raises:
        ThermoclineError: the memory cannot be read or written; stored facts are kept, and the
            next call continues.
    """
    today = datetime.fromtimestamp(store.now, zone).date()
    reading = _Reading(
        store=store,
        ingestion=ingestion,
        zone=zone,
        advisor=asked(advisor, "ingest", endpoint),
        endpoint=endpoint,
        writer=writer,
        dry_run=dry_run,
    )
    notes = read_notes(ingestion.folders, today, days, ingestion.max_bytes)
    while (found := await asyncio.to_thread(next, notes, None)) is not None:
        await reading.take(found)
    return reading.result()


class _Reading(msgspec.Struct, kw_only=True):
    """The state of one call of `ingest`."""

    store: AgentStore
    ingestion: Ingestion
    zone: tzinfo
    advisor: Advisor | None
    endpoint: str | None
    writer: str
    dry_run: bool
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
        before = await self.store.read(lambda db: noted.read(db, key, _Known)) or _Known()
        if before.digest == found.digest:
            number = len(before.keys)
            self.files.append(NoteReport(found.name, "unchanged", number))
            return
        facts = await self._read(found.text)
        new = [self._memory(found, fact) for fact in facts if fact.key not in before.keys]
        stored = await self._keep([memory for memory in new if memory is not None])
        if not self.dry_run:
            keys = tuple(dict.fromkeys((*before.keys, *(fact.key for fact in facts))))
            after = _Known(found.digest, keys)
            await self.store.write(lambda tx: noted.write(tx, key, after))
        self.facts += stored
        self.files.append(NoteReport(found.name, "read", len(facts), len(stored)))

    def result(self) -> Ingested:
        """The result for all notes."""
        found = sum(file.found for file in self.files)
        return Ingested(
            files_scanned=len(self.files),
            mode="rule" if self.advisor is None else "llm",
            facts_found=found,
            facts_stored=len(self.facts),
            facts_skipped=found - len(self.facts),
            llm_fallbacks=self.fallbacks,
            facts=tuple(self.facts),
            files=tuple(self.files),
            dry_run=self.dry_run,
            model_error=self.model_error,
        )

    async def _read(self, text: str) -> Sequence[NoteFact]:
        headings = self.ingestion.categories
        text = (await asyncio.to_thread(clear, text)).text
        if self.advisor is not None:
            try:
                return await self.advisor.read_note(self.store, text, headings, self.endpoint)
            except ModelUnavailable as error:
                self.fallbacks += 1
                self.model_error = error.in_full
        return await asyncio.to_thread(read_note, text, headings)

    async def _keep(self, new: Sequence[Memory]) -> list[TakenIn]:
        stored: list[Memory] = []
        for start in range(0, len(new), _AT_ONCE):
            group = new[start : start + _AT_ONCE]
            if self.dry_run:
                stored += await self.store.read(partial(self._unknown, group=group))
            else:
                stored += await self.store.write(partial(_store, group=group))
        return [
            TakenIn(
                memory.text,
                memory.category,
                memory.importance,
                memory.metadata,
                UNSET if self.dry_run else memory.id,
            )
            for memory in stored
        ]

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
        now = self.store.now
        try:
            text = checks.check_text(fact.text)
            metadata = checks.check_metadata(fact.metadata)
        except InvalidInput:
            return None
        digest = hashlib.sha256(f"{note.key}\0{fact.key}".encode()).hexdigest()
        memory = Memory(
            id=digest[:12],
            text=text,
            category=_category(fact.category, self.store.rules.tree.max_depth),
            importance=min(1.0, max(0.0, fact.importance)),
            source=EXTRACTED,
            data={NOTE: note.name},
            metadata=metadata,
            created_at=min(now, _noon(note.day, self.zone)),
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
            stored.append(memories.insert(tx, memory))
    return stored
