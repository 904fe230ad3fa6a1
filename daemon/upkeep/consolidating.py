"""A run of upkeep: one step after the other, each noted when it is done.

A step is one or more transactions of its own, and harmless when it is done twice. So a run that
is broken off at any moment loses nothing: what is done is done, and the next run of its name goes
on with the step that was not through. One that fails keeps no other from being done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, tzinfo
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from ..errors import ThermoclineError
from ..memory.scoring import DAY
from ..store.database import translate_os
from ..store.transaction import Event, Transaction
from . import history, ledger
from .ledger import Progress, Run
from .outcome import Outcome, outcome_of
from .reporting import FOLDER, write_report
from .schedules import Due
from .stages import STAGES, Stages
from .steps import in_order
from .work import Facts, Work

# What was done longer ago is better done again.
_STALE_SECONDS: Final = DAY

Tell: TypeAlias = Callable[[Event], None]


async def consolidate(work: Work, due: Due, tell: Tell, stages: Stages = STAGES) -> Outcome:
    """Do what is due, in order, and say what came of it.

    Args:
        work: for whom, and with what.
        due: the steps, and the jobs that are done once they are through.
        tell: hears how far it is: `upkeep.started`, `upkeep.progress`, `upkeep.finished`.
        stages: how each step is done.

    Raises:
        ThermoclineError: a step could not be done. The others are done, but for the report,
            which tells of all of them, and the next run of this name goes on with what is left.
    """
    started, store = time.perf_counter(), work.store
    if work.dry_run:
        progress = Progress(due.mode, store.now, due.jobs, due.steps)
    else:
        progress = await store.write(partial(_begin, due=due))
    at = store.now
    tell(_event("started", work, steps=progress.left))
    try:
        facts = await _go_on(work, progress, tell, stages)
    except BaseException as error:
        why = words_of(error) if isinstance(error, Exception) else "interrupted"
        tell(_event("finished", work, error=why))
        if isinstance(error, Exception) and not work.dry_run:
            run = Run(at, _since(started), why)
            await store.write(partial(ledger.run_done, jobs=progress.jobs, run=run))
        raise
    if not work.dry_run:
        run = Run(at, _since(started))
        await store.write(partial(_end, jobs=progress.jobs, run=run, zone=work.zone))
    tell(_event("finished", work, **_in_short(facts)))
    fixed: dict[str, Any] = {"resumed": progress.done} if progress.done else {}
    return outcome_of(
        facts,
        **fixed,
        mode=due.mode,
        agent_id=store.place.agent,
        timestamp=datetime.fromtimestamp(at, work.zone).isoformat(timespec="seconds"),
        dry_run=work.dry_run,
        steps=progress.steps,
        took_ms=round(_since(started) * 1000, 1),
    )


async def _go_on(work: Work, progress: Progress, tell: Tell, stages: Stages) -> Facts:
    facts = dict(progress.facts)
    failed: Exception | None = None
    for step in progress.left:
        stage = stages.get(step)
        if stage is None and failed is not None:
            break
        try:
            found = await (_report(work, facts) if stage is None else stage(work))
            if not work.dry_run:
                await work.store.write(partial(ledger.step_done, step=step, facts=found))
        except Exception as error:  # noqa: BLE001 - raised below, when the others have had their turn
            failed = failed or error
            continue
        facts |= found
        tell(_event("progress", work, step=step, **_in_short(found)))
    if failed is not None:
        raise failed
    return facts


async def _report(work: Work, facts: Facts) -> Facts:
    """The one step that looks at what the others have done: write of it."""
    if work.dry_run:
        return {}
    last = (await work.store.read(ledger.load)).runs.get("full")
    since = None if last is None or last.error else last.at
    try:
        path = await write_report(work.store, facts, since, work.zone)
    except OSError as error:
        raise translate_os(error, work.store.place.folder / FOLDER) from error
    return {"report": str(path)}


def _begin(tx: Transaction, due: Due) -> Progress:
    """Note that a run begins, or goes on with one of its name that was broken off."""
    before = ledger.load(tx.db).progress
    progress = Progress(due.mode, tx.now, due.jobs, due.steps)
    if (
        before is not None
        and before.mode == due.mode
        and 0 <= tx.now - before.started < _STALE_SECONDS
    ):
        progress = msgspec.structs.replace(
            before,
            steps=in_order((*before.steps, *due.steps)),
            jobs=tuple(dict.fromkeys((*before.jobs, *due.jobs))),
        )
    ledger.change(tx, progress=progress)
    return progress


def _end(tx: Transaction, jobs: tuple[str, ...], run: Run, zone: tzinfo) -> None:
    tx.count("consolidation_count")
    tx.note_time("last_consolidation")
    ledger.run_done(tx, jobs, run)
    history.record(tx, zone)


def words_of(error: Exception) -> str:
    """What an error says, where that was written for people; others may quote a memory."""
    return error.message if isinstance(error, ThermoclineError) else type(error).__name__


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 4)


def _event(what: str, work: Work, **data: Any) -> Event:
    return Event(f"upkeep.{what}", {"mode": work.mode, "dry_run": work.dry_run, **data})


def _in_short(facts: Facts) -> Facts:
    """The numbers and short texts: listeners get no lists."""
    return {name: value for name, value in facts.items() if isinstance(value, int | str)}
