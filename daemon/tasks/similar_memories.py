"""Merges similar memories into one with a model."""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import re
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import msgspec

from ..language.comparison import comparable, contradicts, find_clusters
from ..llm.model import Part
from ..llm.replies import one_line, share_of, short_list
from ..memory.checks import TAGS
from ..memory.metadata import extract, merge
from ..memory.records import CONSOLIDATED, Memory, Metadata
from ..memory.vectors import nearer_than_rest
from ..recall.sources import MEMORIES
from ..store.agent_store import AgentStore
from ..store.database import meta
from ..store.database.transaction import Transaction
from ..store.records import memories, merging
from ..store.records.memory_rows import fetch, require
from ..store.records.selecting import living_after
from .model_or_rules import AskOptions, ModelOrRules

# The maximum number of groups in one run; the next run continues.
_MOST_CLUSTERS: Final = 20
_LOOKED_AT: Final = 5_000
_READ_AT_ONCE: Final = 500
# The newest memories whose meaning is compared, and how near two must be to be asked about.
_COMPARED: Final = 500
_NEAR: Final = 0.8
# The key of the groups that a model left apart, and their maximum number.
_KEY: Final = "left_apart"
_MOST_LEFT_APART: Final = 1_000
_LONGEST_TEXT: Final = 4_000
_SUBJECT_CHARS: Final = 200
_TAG_CHARS: Final = 60
_NUMBER: Final = re.compile(r"\d[\d.,:/-]*\d|\d")


class MemoryReply(msgspec.Struct, frozen=True):
    """A model's merged memory; an empty text means that the memories should stay apart."""

    text: str
    subject: str = ""
    tags: tuple[str, ...] = ()
    importance: float | None = None


# The cosines of the items that are nearest to some items, by their keys; empty without vectors.
AskNearest: TypeAlias = Callable[
    [AgentStore, Sequence[int]], Awaitable[Mapping[int, Mapping[int, float]]]
]


async def join_similar(
    store: AgentStore, model: ModelOrRules, options: AskOptions, nearest: AskNearest | None = None
) -> int:
    """Merge each group of similar memories; return how many were retired.

    Groups share most of their words, or are near in meaning by `nearest`. The model decides.

    The new memory has their content, and the highest of their importances and the model's. The old
    memories point to it and are not searched any more; forgetting the new memory restores them. A
    group that a model leaves apart is not asked about again.

    Raises:
        ModelUnavailable: no model answers usefully; what was merged before stays.
        InvalidInput: the endpoint is not an address.
        ThermoclineError: the memory cannot be read or written.
    """
    retired = 0
    left_apart = await store.read(_left_apart)
    clusters = await _clusters(store, nearest)
    new = [memories for memories in clusters if _digest(memories) not in left_apart]
    for cluster in new[:_MOST_CLUSTERS]:
        merged = await combine(cluster, model, options, store.now)
        if merged is None:
            await store.write(partial(_leave_apart, digest=_digest(cluster)))
        else:
            retired += await store.write(partial(_retire, cluster=cluster, merged=merged))
    return retired


async def combine(
    cluster: Sequence[Memory], model: ModelOrRules, options: AskOptions, now: float
) -> Memory | None:
    """The memory that can replace some others, if nothing is lost. Errors as `Model.ask`."""
    ordered = sorted(cluster, key=lambda memory: memory.created_at)
    lines = []
    for memory in ordered:
        day = dt.datetime.fromtimestamp(memory.created_at, dt.UTC).date()
        subject = f"{memory.subject}: " if memory.subject else ""
        lines.append(f"- ({day}) {subject}{memory.text}")
    question = model.question("merge", Part("memories", "\n".join(lines)))
    reply = (await model.ask(question, MemoryReply, options)).value
    text = one_line(reply.text, _LONGEST_TEXT)
    if not text or _loses(text, ordered):
        return None
    return _merged(reply, text, ordered, now)


async def _clusters(store: AgentStore, nearest: AskNearest | None) -> list[list[Memory]]:
    current: list[tuple[int, Memory]] = []
    last, now, limits = 0, store.now, store.rules.merging
    while page := await store.read(partial(living_after, row=last, now=now, limit=_READ_AT_ONCE)):
        current += [item for item in page if item[1].superseded_by is None]
        del current[:-_LOOKED_AT]
        last = page[-1][0]
    apart = await store.read(merging.merge_exclusions)
    left = {
        row: memory
        for row, memory in current
        if not (memory.id in apart or memory.type == "episodic" or memory.is_outside)
    }
    memories = [*left.values()]
    clusters = await asyncio.to_thread(
        find_clusters, memories, limits.similarity, limits.max_cluster
    )
    if nearest is not None:
        alike = {memory.id for cluster in clusters for memory in cluster}
        others = {row: memory for row, memory in left.items() if memory.id not in alike}
        clusters += _pairs(others, await nearest(store, MEMORIES.keys([*others][-_COMPARED:])))
    agreeing = [_agreeing(cluster) for cluster in clusters]
    return [cluster for cluster in agreeing if len(cluster) > 1]


def _pairs(
    memories: Mapping[int, Memory], nearest: Mapping[int, Mapping[int, float]]
) -> list[list[Memory]]:
    """Pairs of memories that are far nearer to each other than to most, the newer first."""
    paired: dict[int, int] = {}
    for key, near in nearest.items():
        shares = nearer_than_rest(near)
        (row,), rows = MEMORIES.rows([key]), MEMORIES.rows(shares)
        for other in rows:
            is_near = other in memories and shares[MEMORIES.key(other)] >= _NEAR
            if is_near and not {row, other} & (paired.keys() | paired.values()):
                paired[max(row, other)] = min(row, other)
    pairs = ([memories[newer], memories[older]] for newer, older in paired.items())
    return [pair for pair in pairs if pair[0].type == pair[1].type]


def _agreeing(cluster: Sequence[Memory]) -> list[Memory]:
    """The memories that may be about the same as the first, and do not contradict it."""
    first, *others = cluster
    return [
        first,
        *(other for other in others if comparable(other, first) and not contradicts(other, first)),
    ]


def _loses(text: str, cluster: Sequence[Memory]) -> bool:
    numbers = {number for memory in cluster for number in _NUMBER.findall(memory.text)}
    if any(number not in text for number in numbers):
        return True
    metadata = [extract(memory.text) for memory in cluster]
    references = {*(u for f in metadata for u in f.urls), *(p for f in metadata for p in f.paths)}
    return any(reference not in text for reference in references)


def _merged(reply: MemoryReply, text: str, cluster: Sequence[Memory], now: float) -> Memory:
    newest = cluster[-1]
    tags = (*newest.tags, *reply.tags, *(tag for memory in cluster for tag in memory.tags))
    metadata = Metadata()
    for memory in reversed(cluster):
        metadata = merge(metadata, memory.metadata)
    return Memory(
        id=secrets.token_hex(8),
        text=text,
        type=newest.type,
        event=newest.event,
        subject=newest.subject or one_line(reply.subject, _SUBJECT_CHARS),
        outcome=newest.outcome,
        category=newest.category,
        tags=short_list(tags, TAGS, _TAG_CHARS),
        importance=max(share_of(reply.importance), *(memory.importance for memory in cluster)),
        source=CONSOLIDATED,
        actor=newest.actor,
        standing=any(memory.standing for memory in cluster),
        metadata=merge(metadata, extract(text)),
        created_at=newest.created_at,
        updated_at=now,
        writer="daemon",
    )


def _retire(tx: Transaction, cluster: Sequence[Memory], merged: Memory) -> int:
    current = [fetch(tx.db, memory.id) for memory in cluster]
    for before, now in zip(cluster, current, strict=True):
        if now is None or now.merged_into is not None or now.text != before.text:
            return 0
    stored = memories.insert(tx, msgspec.structs.replace(merged, updated_at=tx.now))
    for memory in current:
        assert memory is not None
        # The new memory already has the highest importance.
        merging.merge(tx, memory, require(tx, stored.id), share=0.0)
    return len(current)


def _digest(cluster: Sequence[Memory]) -> str:
    texts = sorted(f"{memory.id} {memory.text}" for memory in cluster)
    return hashlib.blake2b("\n".join(texts).encode(), digest_size=8).hexdigest()


def _left_apart(db: sqlite3.Connection) -> list[str]:
    return meta.read(db, _KEY, list[str]) or []


def _leave_apart(tx: Transaction, digest: str) -> None:
    meta.write(tx, _KEY, [*_left_apart(tx.db), digest][-_MOST_LEFT_APART:])
