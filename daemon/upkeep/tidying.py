"""Searches a whole memory for duplicates and contradictions.

The search uses readers and a thread; the writer gets only small groups of changes between other
writes. It can be interrupted and restarted at any time: each pair is judged again when it is
joined.
"""

from __future__ import annotations

import asyncio
import sqlite3
from array import array
from collections.abc import Collection, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, Literal

import msgspec

from ..language.pairing import RelatedPair, find_duplicates, judge_pair, key_of
from ..language.replacing import terms_to_look_up
from ..memory.records import Memory, outranks
from ..store import merging, settling, supersession
from ..store.agent_store import AgentStore
from ..store.selecting import living_after, living_at
from ..store.transaction import Transaction

_READ_AT_ONCE: Final = 500
_COMPARED_AT_ONCE: Final = 50
# About ten milliseconds of the writer's time, which may delay a store.
_PAIRS_AT_ONCE: Final = 16
# The number of short lists to sort, since sorting a long one would block other threads.
_SHELVES: Final = 64


class Finding(msgspec.Struct, frozen=True):
    """Two memories that were joined, or would be, and the reasons."""

    older: Memory
    newer: Memory
    relation: Literal["duplicate", "contradiction"]
    reasons: tuple[str, ...]


class TidyReport(msgspec.Struct, frozen=True):
    """The result: duplicates first, each kind in order of time."""

    merged: int
    superseded: int
    archived: int
    examined: int
    findings: tuple[Finding, ...]


class Survey:
    """The keys of all memories, as numbers without texts.

    Attributes:
        examined: the number of memories.
        replacing: the rows of memories that may replace others.
    """

    def __init__(self) -> None:
        self.replacing = array("q")
        self._shelves = [(array("q"), array("q")) for _ in range(_SHELVES)]
        self.examined = 0

    def add(self, page: Sequence[tuple[int, Memory]]) -> None:
        """Record some memories, each given with its row."""
        self.examined += len(page)
        for row, memory in page:
            if terms_to_look_up(memory.text)[0]:
                self.replacing.append(row)
            key = key_of(memory)
            if key is not None:
                keys, rows = self._shelves[key % _SHELVES]
                keys.append(key)
                rows.append(row)

    def suspects(self) -> list[int]:
        """The rows of memories that share a key with another."""
        found: set[int] = set()
        for keys, rows in self._shelves:
            shared = {one for one, other in pairwise(sorted(keys)) if one == other}
            found.update(row for key, row in zip(keys, rows, strict=True) if key in shared)
        return sorted(found)


async def tidy(store: AgentStore, *, dry_run: bool = False) -> TidyReport:
    """Merge duplicates, mark superseded memories, archive faded ones.

    Nothing is forgotten, and every merge can be undone. Idempotent.

    Args:
        store: the agent's memory.
        dry_run: change nothing, and report the changes.

    Raises:
        ThermoclineError: the database fails; earlier changes are kept.
    """
    survey = await _surveyed(store)
    pairs = await _duplicates(store, await asyncio.to_thread(survey.suspects))
    pairs += await _contradictions(store, survey.replacing, {pair.older.id for pair in pairs})
    if dry_run:
        findings = [_finding(pair, pair.newer) for pair in pairs]
        faded = await store.read(partial(settling.faded, now=store.now, rules=store.rules))
        archived = len(faded)
    else:
        findings = await _join(store, pairs)
        archived = await store.write(settling.archive_faded)
    merged = sum(finding.relation == "duplicate" for finding in findings)
    return TidyReport(merged, len(findings) - merged, archived, survey.examined, tuple(findings))


async def _surveyed(store: AgentStore) -> Survey:
    now = store.now
    survey = Survey()
    last = 0
    while page := await store.read(partial(living_after, row=last, now=now, limit=_READ_AT_ONCE)):
        await asyncio.to_thread(survey.add, page)
        last = page[-1][0]
    return survey


async def _duplicates(store: AgentStore, rows: Sequence[int]) -> list[RelatedPair]:
    now = store.now
    suspects: list[Memory] = []
    for start in range(0, len(rows), _READ_AT_ONCE):
        part = rows[start : start + _READ_AT_ONCE]
        suspects += await store.read(partial(living_at, rows=part, now=now))
    pairs = await asyncio.to_thread(find_duplicates, suspects)
    apart = await store.read(merging.kept_apart)
    return [pair for pair in pairs if pair.older.id not in apart]


async def _contradictions(
    store: AgentStore, rows: Sequence[int], retiring: Collection[str]
) -> list[RelatedPair]:
    """The memories that others replace, by their time; none that is about to be retired.

    What was inferred later gives way to what a user stated.
    """
    now = store.now

    def read(db: sqlite3.Connection, part: Sequence[int]) -> list[RelatedPair]:
        return [
            RelatedPair(older, newer, judge_pair(older, newer))
            for newer in living_at(db, rows=part, now=now)
            if newer.id not in retiring
            for older in supersession.contradicted_by(db, newer, retiring=retiring)
            if older.id not in retiring
        ]

    pairs: dict[str, RelatedPair] = {}
    for start in range(0, len(rows), _COMPARED_AT_ONCE):
        part = list(rows[start : start + _COMPARED_AT_ONCE])
        for pair in await store.read(partial(read, part=part)):
            if outranks(pair.older, pair.newer):
                if pair.newer.superseded_by is None:
                    pairs[pair.newer.id] = RelatedPair(pair.newer, pair.older, pair.judgement)
                continue
            known = pairs.get(pair.older.id)
            # The next that contradicts it.
            if known is None or pair.newer.created_at < known.newer.created_at:
                pairs[pair.older.id] = pair
    return sorted(pairs.values(), key=lambda pair: pair.older.created_at)


async def _join(store: AgentStore, pairs: Sequence[RelatedPair]) -> list[Finding]:
    findings: list[Finding] = []
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        group = pairs[start : start + _PAIRS_AT_ONCE]
        findings += await store.write(partial(_joined, pairs=group))
    return findings


def _joined(tx: Transaction, pairs: Sequence[RelatedPair]) -> list[Finding]:
    findings = []
    for pair in pairs:
        repeats = pair.judgement.relation == "duplicate"
        join = merging.merge_duplicate if repeats else merging.supersede
        newer = join(tx, pair.older.id, pair.newer.id)
        if newer is not None:
            findings.append(_finding(pair, newer))
    return findings


def _finding(pair: RelatedPair, newer: Memory) -> Finding:
    relation: Literal["duplicate", "contradiction"] = (
        "duplicate" if pair.judgement.relation == "duplicate" else "contradiction"
    )
    return Finding(pair.older, newer, relation, pair.judgement.reasons)
