"""Status, health and metrics of the daemon."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import sqlite3
import time
from datetime import datetime
from typing import Any, Final

import msgspec

from ..config.settings import Rules
from ..errors import ThermoclineError
from ..memory import hot
from ..memory import tree as trees
from ..shapes.files import IndexState
from ..shapes.status import AgentStatus, Health, Metrics, ModelStatus, Problem, Status
from ..shapes.sync import ReplicationStatus
from ..store import documents, history, hot_rows, tree_rows
from ..store.agent_store import AgentStore
from ..store.settling import warm_bytes
from ..upkeep.upkeep import Upkeep
from .files import state_view
from .openmetrics import OPENMETRICS, exposition
from .operation import operation
from .scope import Scope


async def status(scope: Scope) -> Status:
    """Show the daemon and its open agents."""
    daemon, who = scope.daemon, scope.daemon.identity
    agents: dict[str, AgentStatus] = {}
    for name, store in daemon.agents.open_stores().items():
        if scope.may_read(name):
            # An agent that was closed meanwhile, or cannot be read, must not hide the others.
            with contextlib.suppress(ThermoclineError):
                standing = daemon.replicas.status(name)
                index = state_view(daemon.indexes.of(store).state)
                agents[name] = await _agent_status(store, scope.now, standing, index, daemon.upkeep)
    return Status(
        version=who.version,
        pid=os.getpid(),
        uptime_seconds=round(time.monotonic() - who.started, 3),
        state_dir=who.state_dir,
        socket=who.socket,
        device=who.device,
        ready=daemon.ready.is_set(),
        connections=daemon.connections(),
        memory_bytes=resident_bytes(),
        llm=daemon.model.status(),
        problems=_problems(scope),
        agents=agents,
    )


async def health(scope: Scope) -> Health:
    """Check the daemon: 200, or 503 with the lasting problems."""
    lasting = [problem for problem in _problems(scope) if problem.lasting]
    return Health("degraded", lasting) if lasting else Health("ok")


async def metrics(scope: Scope) -> Metrics:
    """Counters of an agent under EvoClaw's names, and the daemon's, as JSON or OpenMetrics."""
    async with scope.store() as store:
        rules = store.rules
        found = await store.read(lambda db: _metrics(db, scope.now, rules))
    local = datetime.fromtimestamp(scope.now).astimezone()
    return Metrics(
        **found,
        timestamp=local.isoformat(timespec="seconds"),
        agent_id=scope.agent,
        daemon={
            "uptime_seconds": round(time.monotonic() - scope.daemon.identity.started, 3),
            "memory_bytes": resident_bytes(),
            "connections": scope.daemon.connections(),
            "problems": len(_problems(scope)),
            "open_agents": len(scope.daemon.agents.open_stores()),
            **_of_models(scope.daemon.model.status()),
        },
    )


async def open_metrics(scope: Scope) -> str:
    """The same in the text format of OpenMetrics 1.0."""
    found = msgspec.structs.asdict(await metrics(scope))
    agent, daemon = found.pop("agent_id"), found.pop("daemon")
    return exposition(agent, found, daemon)


def _problems(scope: Scope) -> list[Problem]:
    """Those of the daemon, and of the agents that the caller may read."""
    return scope.daemon.problems.standing(scope.may_read)


def _of_models(status: ModelStatus) -> dict[str, float]:
    """The models' calls since the start, for all purposes, and their cost today."""
    purposes = status.purposes.values()
    return {
        "llm_calls": sum(one.calls for one in purposes),
        "llm_errors": sum(one.errors for one in purposes),
        "llm_cached": sum(one.cached for one in purposes),
        "llm_tokens": sum(one.tokens_in + one.tokens_out for one in purposes),
        "llm_cost_dollars": round(sum(one.cost for one in purposes), 6),
        "llm_slowest_p95_seconds": max((one.p95_seconds for one in purposes), default=0.0),
        "llm_tokens_today": status.today.tokens,
        "llm_cost_today_dollars": round(status.today.cost, 6),
    }


def resident_bytes() -> int:
    """The memory that the process holds in RAM."""
    return int(os.pread(_statm(), 256, 0).split()[1]) * mmap.PAGESIZE


@functools.cache
def _statm() -> int:
    """A descriptor kept open: status is wanted most when no file can be opened any more."""
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


async def _agent_status(
    store: AgentStore,
    now: float,
    standing: ReplicationStatus,
    index: IndexState,
    upkeep: Upkeep,
) -> AgentStatus:
    rules = store.rules

    def read(db: sqlite3.Connection) -> AgentStatus:
        warm, cold = tree_rows.totals(db)
        queued = _count(db, "outbox")
        return AgentStatus(
            memories=warm + cold,
            warm=warm,
            cold=cold,
            warm_bytes=warm_bytes(db),
            warm_max_bytes=rules.warm.max_bytes,
            hot_bytes=hot.document_size(hot_rows.document(db, now, rules)),
            hot_max_bytes=rules.hot.max_bytes,
            tree_nodes=_count(db, "tree") + 1,
            kv=_count(db, "rows WHERE kind = 'pair' AND live"),
            outbox=queued,
            conflicts=history.conflicts(db),
            database_bytes=_pragma(db, "page_count") * _pragma(db, "page_size"),
            faces_pending=store.faces_pending,
            sync=msgspec.structs.replace(standing, queued=queued),
            upkeep=upkeep.standing(store.place.agent, db).brief,
            index=index,
        )

    return await store.read(read)


def _count(db: sqlite3.Connection, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608


def _metrics(db: sqlite3.Connection, now: float, rules: Rules) -> dict[str, Any]:
    found = documents.metrics_document(db, now)
    del found["_schema_version"]
    warm, cold = tree_rows.totals(db)
    tree = tree_rows.load(db)
    found["tree_index_size_bytes"] = trees.size(tree, rules.tree)
    found["tree_node_count"] = len(tree) + 1
    found["hot_memory_size_bytes"] = hot.document_size(hot_rows.document(db, now, rules))
    found["warm_memory_count"] = warm
    found["warm_memory_size_kb"] = round(warm_bytes(db) / 1024, 1)
    found["cold_memory_count"] = cold
    return found


OPERATIONS: Final = (
    operation("GET", "/api/status", status, agent=False),
    operation("GET", "/api/health", health, agent=False, statuses=(200, 503)),
    operation("GET", "/api/metrics", metrics, others={OPENMETRICS: open_metrics}),
)
