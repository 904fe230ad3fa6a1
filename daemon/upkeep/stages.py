"""The steps of upkeep, each by itself: what is interrupted is done by the next run.

Each gives what it found and did, under the names of `Outcome`, and changes nothing in a dry run.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET

from ..errors import ModelUnavailable
from ..memory import tree as trees
from ..memory.hot import document_size
from ..memory.hot.document import HOT_MEMORIES
from ..memory.scoring import DAY, score, tier_of
from ..memory.tree_rebuild import Operation
from ..store import faces, hot_rows, settling, tombstones, tree_rows
from ..store.transaction import Rules, Transaction
from . import ledger, rebuilding
from .advice import asked
from .cleaning import clean
from .ingesting import ingest
from .outcome import Scores
from .steps import Step
from .tidying import tidy
from .work import Facts, StepFunction, Work

_TOMBSTONE_SECONDS: Final = 365 * DAY
_DAYS_AT_MOST: Final = 366


async def take_in(work: Work) -> Facts:
    """Take in the daily notes."""
    done = await ingest(
        work.store,
        work.ingestion,
        days=await _days(work),
        zone=work.zone,
        dry_run=work.dry_run,
        advisor=work.advisor,
        endpoint=work.endpoint,
    )
    if not work.dry_run:
        await work.store.write(partial(ledger.change, ingested=work.store.now))
    facts: Facts = {
        "ingested_facts": done.facts_stored,
        "ingest_skipped": done.facts_skipped,
        "notes_read": done.files_scanned,
    }
    if done.unread:
        facts["ingest_error"] = f"did not read {done.unread}"
    if done.model_error is not UNSET:
        facts["model_error"] = done.model_error
    return facts


async def _days(work: Work) -> int:
    """Of how many days the notes are read: of the usual ones, and of all since the last time."""
    if work.days is not None:
        return work.days
    last = (await work.store.read(ledger.load)).ingested
    missed = 0.0 if last is None else (work.store.now - last) / DAY
    return max(work.ingestion.days, min(_DAYS_AT_MOST, math.ceil(missed) + 1))


async def evict(work: Work) -> Facts:
    """Score the warm memories anew, archive what has faded, forget what has expired."""
    store, rules, now = work.store, work.store.rules, work.store.now
    expired = await store.read(partial(settling.expired, now=now))
    if work.dry_run:
        archived = len(await store.read(partial(settling.faded, now=now, rules=rules)))
    else:
        archived = await store.write(_evict)
        while await store.write(settling.forget_expired):
            pass
    return {"evicted_warm": archived, "archived_cold": archived, "expired": expired}


def _evict(tx: Transaction) -> int:
    tx.settle_hot = tx.settle_warm = tx.settle_tree = True
    return settling.archive_faded(tx)


async def prune(work: Work) -> Facts:
    """Remove the categories that are empty and long unused."""
    if work.dry_run:
        tree = await work.store.read(tree_rows.load)
        idle_days = work.store.rules.prune_idle_days
        return {"pruned_nodes": len(trees.prune(tree, work.store.now, idle_days)[1])}
    return {"pruned_nodes": len(await work.store.write(tree_rows.prune))}


async def merge(work: Work) -> Facts:
    """Merge what repeats, mark what is contradicted, archive what has faded unused."""
    report = await tidy(work.store, dry_run=work.dry_run)
    facts: Facts = {
        "merged": report.merged,
        "superseded": report.superseded,
        "faded": report.archived,
    }
    advisor = asked(work.advisor, "merge", work.endpoint)
    if advisor is not None and not work.dry_run:
        try:
            facts["merged"] += await advisor.join_similar(work.store, work.endpoint)
        except ModelUnavailable as error:
            facts["model_error"] = error.in_full
    return facts


async def rebuild(work: Work) -> Facts:
    """Rebuild the tree, as a model says or else by the rules."""
    facts: Facts = {}
    way: rebuilding.Way = "rule"
    operations: Sequence[Operation] | None = None
    advisor = asked(work.advisor, "rebuild", work.endpoint)
    if advisor is not None:
        try:
            operations, way = await advisor.operations(work.store, work.endpoint), "llm"
        except ModelUnavailable as error:
            facts["model_error"] = error.in_full
    if operations is None:
        operations = await rebuilding.wanted_by_rule(work.store)
    if work.dry_run:
        rebuilt = await rebuilding.checked(work.store, operations)
    else:
        rebuilt = await rebuilding.rebuild(work.store, operations, way)
    facts["tree_rebuilt"] = way if rebuilt.done else "counts-only"
    facts["tree_changes"] = [rebuilding.told(operation) for operation in rebuilt.done]
    return facts


async def clean_up(work: Work) -> Facts:
    """Forget what has been frozen for longer than the archive keeps it."""
    if not work.retention_years:
        return {"forgotten": 0}
    return {"forgotten": await clean(work.store, work.retention_years, dry_run=work.dry_run)}


async def drop_tombstones(work: Work) -> Facts:
    """Drop old tombstones where no replica does it, which knows who has still to hear of them."""
    if work.followed:
        return {"tombstones": 0}
    before = work.store.now - _TOMBSTONE_SECONDS
    if work.dry_run:
        return {"tombstones": await work.store.read(partial(tombstones.older, before=before))}
    return {"tombstones": await work.store.write(partial(tombstones.forget, before=before))}


async def write_hot(work: Work) -> Facts:
    """Promote and demote by the scores, and write the hot state, MEMORY.md and the other files."""
    store, rules = work.store, work.store.rules
    if not work.dry_run:
        store.want_faces(faces.FILES)
        await store.flush_faces()
    now = store.now
    document = await store.read(lambda db: hot_rows.document(db, now, rules))
    scores = await store.read(lambda db: _scores(db, now, rules))
    return {
        "hot_size_bytes": document_size(document),
        "promoted": len(document.get(HOT_MEMORIES, ())),
        "scores": msgspec.to_builtins(scores),
    }


def _scores(db: sqlite3.Connection, now: float, rules: Rules) -> Scores:
    tiers = Counter(
        tier_of(score(entry.importance, entry.created_at, entry.access_count, now, rules.scoring))
        for entry in settling.warm_entries(db)
    )
    return Scores(tiers["hot"], tiers["warm"], tiers["cold"], tiers["frozen"])


Stages: TypeAlias = Mapping[Step, StepFunction]
STAGES: Final[dict[Step, StepFunction]] = {
    "ingest": take_in,
    "evict": evict,
    "prune": prune,
    "merge": merge,
    "rebuild": rebuild,
    "clean": clean_up,
    "tombstones": drop_tombstones,
    "hot": write_hot,
}
