"""Consolidation: the steps that maintain a memory, and runs of several steps.

A step consists of its own transactions and is idempotent. An interrupted run loses nothing: the
next run starts again. A failed step does not prevent the others.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from functools import partial
from typing import Any, Final, TypeAlias, get_args

import msgspec
from msgspec import UNSET

from ..config.settings import Rules
from ..errors import ModelUnavailable
from ..memory import tree as trees
from ..memory.hot import document_size
from ..memory.hot.state import HOT_MEMORIES
from ..memory.scoring import AGED_FLOOR, DAY, GRACE_DAYS, score_of, tier_of
from ..runtime import atomic
from ..schemas.upkeep import Consolidated, ConsolidationMode, Scores, Step
from ..store import limits
from ..store.database import meta
from ..store.database.transaction import Event, Transaction
from ..store.records import documents, hot_rows, tree_rows
from ..tasks.similar_memories import join_similar
from ..tasks.tree_tasks import propose
from . import days, rebuilding
from .daily_notes import Work, ingest
from .schedule import words_of
from .tidying import clean, tidy

# The results of a step, by the field names of `Consolidated`.
Facts: TypeAlias = dict[str, Any]
# In the order of execution: ingested facts go through all other steps, and the hot state and the
# report are written last.
STEPS: Final[tuple[Step, ...]] = get_args(Step)
# Each includes the one before.
MODES: Final[tuple[ConsolidationMode, ...]] = get_args(ConsolidationMode)
_QUICK: Final[tuple[Step, ...]] = ("evict", "hot")
_DAILY: Final[tuple[Step, ...]] = (*_QUICK, "ingest", "prune", "merge")
_MONTHLY: Final[tuple[Step, ...]] = (*_DAILY, "rebuild", "clean")
_OF_MODE: Final[dict[ConsolidationMode, tuple[Step, ...]]] = {
    "quick": _QUICK,
    "daily": _DAILY,
    "monthly": _MONTHLY,
    "full": (*_MONTHLY, "report"),
}
_DAYS_AT_MOST: Final = 366
_NOTES_READ: Final = "notes_read"


def steps_of(mode: ConsolidationMode) -> tuple[Step, ...]:
    """The steps of a mode, in order."""
    return tuple(step for step in STEPS if step in _OF_MODE[mode])


def covered_by(mode: ConsolidationMode) -> tuple[str, ...]:
    """The jobs that a run of `mode` includes."""
    smaller = MODES[: MODES.index(mode)]
    return (*smaller, "merging") if "merge" in steps_of(mode) else smaller


async def consolidate(
    work: Work, steps: Iterable[Step], emit: Callable[[Event], None]
) -> Consolidated:
    """Run some steps, in order. A failed step raises once the others are done.

    `emit` receives the events `upkeep.started`, `upkeep.progress` and `upkeep.finished`.
    """
    started, at, wanted = time.perf_counter(), work.store.now, tuple(steps)
    emit(_event("started", work, steps=wanted))
    try:
        await _run_steps(work, wanted, emit)
        if not work.dry_run:
            await work.store.write(_count)
            # In a second transaction, since counters are added at commit.
            await work.store.write(partial(_record, zone=work.zone))
    except BaseException as error:
        why = words_of(error) if isinstance(error, Exception) else "interrupted"
        emit(_event("finished", work, error=why))
        raise
    facts = work.facts
    facts["pruned"] = facts.get("evicted_warm", 0) + facts.get("forgotten", 0)
    emit(_event("finished", work, **_in_short(facts)))
    fixed = {
        "mode": work.mode,
        "agent_id": work.store.place.agent,
        "timestamp": datetime.fromtimestamp(at, work.zone).isoformat(timespec="seconds"),
        "dry_run": work.dry_run,
        "steps": wanted,
        "took_ms": round((time.perf_counter() - started) * 1000, 1),
    }
    return msgspec.convert(facts | fixed, Consolidated)


async def _run_steps(work: Work, steps: Sequence[Step], emit: Callable[[Event], None]) -> None:
    failed: Exception | None = None
    for step in steps:
        try:
            facts = await RUN_STEP[step](work)
        except Exception as error:  # noqa: BLE001 - raised below, after the other steps
            failed = failed or error
            continue
        work.facts.update(facts)
        emit(_event("progress", work, step=step, **_in_short(facts)))
    if failed is not None:
        raise failed


def _count(tx: Transaction) -> None:
    tx.count("consolidation_count")
    tx.note_time("last_consolidation")


def _record(tx: Transaction, zone: tzinfo) -> None:
    days.record(tx, zone)
    meta.move_counts(tx)


def _event(what: str, work: Work, **data: Any) -> Event:
    return Event(f"upkeep.{what}", {"mode": work.mode, "dry_run": work.dry_run, **data})


def _in_short(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if isinstance(value, int | str)}


# The steps, which change nothing in a dry run.


async def _ingest(work: Work) -> Facts:
    # All days since the notes were last read.
    last = await work.store.read(lambda db: meta.read(db, _NOTES_READ, float))
    missed = 0.0 if last is None else (work.store.now - last) / DAY
    days_missed = min(_DAYS_AT_MOST, math.ceil(missed) + 1)
    done = await ingest(work, max(work.notes.days, days_missed))
    if not work.dry_run:
        await work.store.write(lambda tx: meta.write(tx, _NOTES_READ, tx.now))
    facts: Facts = {
        "ingested_facts": done.facts_stored,
        "ingest_skipped": done.facts_skipped,
        "notes_read": done.files_scanned,
    }
    if done.unread:
        facts["ingest_error"] = done.unread
    if done.model_error is not UNSET:
        facts["model_error"] = done.model_error
    return facts


async def _evict(work: Work) -> Facts:
    store, rules, now = work.store, work.store.rules, work.store.now
    outlived = await store.read(partial(_outlived, now=now))
    if work.dry_run:
        archived = len(await store.read(partial(limits.faded, now=now, rules=rules)))
    else:
        archived = await store.write(limits.enforce_all_limits)
        while await store.write(limits.forget_expired):
            pass
    return {"evicted_warm": archived, "archived_cold": archived, **outlived}


def _outlived(db: sqlite3.Connection, now: float) -> Facts:
    """The expired memories, and those that Tiny Claw's preset ranks below their importance."""
    expired, decayed = db.execute(
        "SELECT count(*) FILTER (WHERE expires_at <= ?1), count(*) FILTER (WHERE"
        " merged_into IS NULL AND coalesce(expires_at > ?1, 1) AND importance > ?2"
        " AND max(created_at, coalesce(last_accessed_at, 0)) < ?3) FROM memories",
        (now, AGED_FLOOR, now - GRACE_DAYS * DAY),
    ).fetchone()
    return {"expired": 0 if meta.clock_has_jumped(db, now) else expired, "decayed": decayed}


async def _prune(work: Work) -> Facts:
    if work.dry_run:
        tree = await work.store.read(tree_rows.load)
        idle_days = work.store.rules.tree.prune_idle_days
        return {"pruned_nodes": len(trees.prune(tree, work.store.now, idle_days)[1])}
    return {"pruned_nodes": len(await work.store.write(tree_rows.prune))}


async def _merge(work: Work) -> Facts:
    """Merge duplicates and mark contradicted memories, unless `merging.enabled` is false."""
    if not work.store.rules.merging.enabled:
        return {"merged": 0, "superseded": 0}
    report = await tidy(work.store, dry_run=work.dry_run)
    facts: Facts = {"merged": report.merged, "superseded": report.superseded}
    if not work.dry_run and (model := work.model_for("merge")) is not None:
        try:
            facts["merged"] += await join_similar(work.store, model, work.options, work.nearest)
        except ModelUnavailable as error:
            facts["model_error"] = error.in_full
    return facts


async def _rebuild(work: Work) -> Facts:
    """Rebuild the tree as a model proposes; without one it stays, since all counts are current."""
    if (model := work.model_for("rebuild")) is None:
        return {"tree_rebuilt": "counts-only"}
    try:
        operations = await propose(work.store, model, work.options)
    except ModelUnavailable as error:
        return {"tree_rebuilt": "failed", "model_error": error.in_full}
    if work.dry_run:
        rules, now = work.store.rules.tree, work.store.now
        rebuilt = await work.store.read(lambda db: rebuilding.checked(db, operations, rules, now))
    else:
        rebuilt = await work.store.write(partial(rebuilding.rebuild, operations=operations))
    done = rebuilt.done
    return {
        "tree_rebuilt": "llm" if done else "counts-only",
        "tree_changes": [rebuilding.describe(operation) for operation in done],
    }


async def _clean(work: Work) -> Facts:
    years = work.store.rules.cold.retention_years
    return {"forgotten": await clean(work.store, years, dry_run=work.dry_run) if years else 0}


async def _hot(work: Work) -> Facts:
    store, rules = work.store, work.store.rules
    if not work.dry_run:
        store.request_state_files(documents.FILES)
        await store.flush_state_files()
    now = store.now
    document = await store.read(lambda db: hot_rows.document(db, now, rules))
    scores = await store.read(lambda db: _scores(db, now, rules))
    return {
        "hot_size_bytes": document_size(document),
        "promoted": len(document.get(HOT_MEMORIES, ())),
        "scores": msgspec.to_builtins(scores),
    }


async def _report(work: Work) -> Facts:
    store, rules, now = work.store, work.store.rules, work.store.now
    tree, totals = await store.read(lambda db: (tree_rows.load(db), tree_rows.totals(db)))
    findings = await asyncio.to_thread(rebuilding.analyse, tree, totals, rules.tree, now)
    if work.dry_run:
        return {"report": findings}
    at = datetime.fromtimestamp(now, work.zone).isoformat(timespec="minutes")
    done = [*work.facts.get("tree_changes", ())]
    text = rebuilding.markdown(store.place.agent, at, findings, done)
    path = store.place.folder / rebuilding.REPORT_FILE
    await asyncio.to_thread(atomic.write, path, text.encode())
    return {"report": findings, "report_file": str(path)}


def _scores(db: sqlite3.Connection, now: float, rules: Rules) -> Scores:
    tiers = Counter(
        tier_of(score_of(entry, now, rules.scoring)) for entry in limits.warm_entries(db)
    )
    return Scores(tiers["hot"], tiers["warm"], tiers["cold"], tiers["frozen"])


RUN_STEP: Final[dict[Step, Callable[[Work], Awaitable[Facts]]]] = {
    "ingest": _ingest,
    "evict": _evict,
    "prune": _prune,
    "merge": _merge,
    "rebuild": _rebuild,
    "clean": _clean,
    "hot": _hot,
    "report": _report,
}
