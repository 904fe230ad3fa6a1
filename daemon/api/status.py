"""`/api/status`, `/api/health` and `/api/metrics`: watching the daemon."""

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

from ..errors import ThermoclineError
from ..llm.plan import ModelStatus
from ..memory import hot
from ..memory import tree as trees
from ..shapes.status import Problem
from ..shapes.sync import ReplicationStatus
from ..shapes.upkeep import UpkeepBrief
from ..store import documents, history, hot_rows, tree_rows
from ..store.agent_store import AgentStore
from ..store.settling import warm_bytes
from ..store.transaction import Rules
from ..upkeep.upkeep import Upkeep
from .calls import Call, Reply, Route
from .openmetrics import OPENMETRICS, exposition


class AgentStatus(msgspec.Struct):
    """One open agent. Sizes are bytes of compact JSON, but for the database's."""

    memories: int
    warm: int
    cold: int
    warm_bytes: int
    warm_max_bytes: int
    hot_bytes: int
    hot_max_bytes: int
    tree_nodes: int
    kv: int
    outbox: int
    conflicts: int
    database_bytes: int
    faces_pending: bool
    sync: ReplicationStatus
    upkeep: UpkeepBrief


class Status(msgspec.Struct):
    """The daemon, and those of its open agents that the caller may read.

    `ready` turns true when the default agent is open, taken over or rebuilt where need be.
    """

    version: str
    pid: int
    uptime_seconds: float
    state_dir: str
    socket: str
    device: str
    ready: bool
    connections: int
    memory_bytes: int
    llm: ModelStatus
    problems: list[Problem]
    agents: dict[str, AgentStatus]


class Health(msgspec.Struct, omit_defaults=True):
    """`ok`, or `degraded` with the lasting problems."""

    status: str
    problems: list[Problem] = []


async def status(call: Call) -> Reply:
    """Everything about the daemon at this moment."""
    services, who = call.services, call.services.identity
    agents: dict[str, AgentStatus] = {}
    for name, store in services.agents.open_stores().items():
        if call.may_read(name):
            # One that was closed meanwhile, or cannot be read, must not hide the others.
            with contextlib.suppress(ThermoclineError):
                standing = services.replicas.status(name)
                agents[name] = await _agent_status(store, call.now, standing, services.upkeep)
    return Reply(
        Status(
            version=who.version,
            pid=os.getpid(),
            uptime_seconds=round(time.monotonic() - who.started, 3),
            state_dir=who.state_dir,
            socket=who.socket,
            device=who.device,
            ready=services.ready.is_set(),
            connections=services.connections(),
            memory_bytes=resident_bytes(),
            llm=services.model.status(),
            problems=_problems(call),
            agents=agents,
        )
    )


async def health(call: Call) -> Reply:
    """Whether all is well: 200, or 503 with what is not."""
    lasting = [problem for problem in _problems(call) if problem.lasting]
    return Reply(Health("degraded", lasting), status=503) if lasting else Reply(Health("ok"))


async def metrics(call: Call) -> Reply:
    """The agent's numbers under EvoClaw's names, and the daemon's; or OpenMetrics, if asked."""
    async with call.store() as store:
        rules = store.rules
        found = await store.read(lambda db: _metrics(db, call.now, rules))
    found["timestamp"] = datetime.fromtimestamp(call.now).astimezone().isoformat(timespec="seconds")
    found["agent_id"] = call.agent
    daemon = {
        "uptime_seconds": round(time.monotonic() - call.services.identity.started, 3),
        "memory_bytes": resident_bytes(),
        "connections": call.services.connections(),
        "problems": len(_problems(call)),
        "open_agents": len(call.services.agents.open_stores()),
        **_of_models(call.services.model.status()),
    }
    if "openmetrics" in call.request.headers.get("Accept", ""):
        text = exposition(call.agent, found, daemon)
        return Reply(text, content_type=f"{OPENMETRICS}; version=1.0.0")
    return Reply(found | {"daemon": daemon})


def _problems(call: Call) -> list[Problem]:
    """Those of the daemon, and of the agents that the caller may read."""
    return call.services.problems.standing(call.may_read)


def _of_models(status: ModelStatus) -> dict[str, float]:
    """What models did since the start, all purposes together, and what they cost today."""
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
    store: AgentStore, now: float, standing: ReplicationStatus, upkeep: Upkeep
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
            warm_max_bytes=rules.warm_max_bytes,
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


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/status",
        handler=status,
        summary="The daemon and its open agents",
        answer=Status,
        agent=False,
    ),
    Route(
        method="GET",
        path="/api/health",
        handler=health,
        summary="Whether all is well: 200 or 503",
        answer=Health,
        agent=False,
    ),
    Route(
        method="GET",
        path="/api/metrics",
        handler=metrics,
        summary="Counters of an agent and the daemon, as JSON or OpenMetrics",
        answer=dict[str, Any],
        types=("application/json", OPENMETRICS),
    ),
)
