"""Status and health of the daemon."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import sqlite3
import time

import msgspec

from ..errors import ThermoclineError
from ..shapes.files import IndexState
from ..shapes.status import AgentStatus, Health, Problem, Status
from ..store import history
from ..store.agent_store import AgentStore
from ..upkeep import history as days
from .operation import Operation
from .scope import Scope
from .views import view_of


@Operation("GET", "/api/status", agent=False)
async def status(scope: Scope) -> Status:
    """Show the daemon and its open agents."""
    daemon, who = scope.daemon, scope.daemon.identity
    agents: dict[str, AgentStatus] = {}
    for name, store in daemon.agents.open_stores().items():
        if scope.may_read(name):
            # An agent that was closed meanwhile, or cannot be read, must not hide the rest.
            with contextlib.suppress(ThermoclineError):
                agents[name] = await _agent_status(scope, store)
    return view_of(
        Status,
        who,
        pid=os.getpid(),
        uptime_seconds=round(time.monotonic() - who.started, 3),
        ready=daemon.ready.is_set(),
        connections=daemon.connections(),
        memory_bytes=resident_bytes(),
        llm=daemon.model.status(),
        problems=problems_of(scope),
        agents=agents,
    )


@Operation("GET", "/api/health", agent=False, statuses=(200, 503))
async def health(scope: Scope) -> Health:
    """Check the daemon: 200, or 503 with the lasting problems."""
    lasting = [problem for problem in problems_of(scope) if problem.lasting]
    return Health("degraded", lasting) if lasting else Health("ok")


def problems_of(scope: Scope) -> list[Problem]:
    """The problems of the daemon, and of the agents that the caller may read."""
    return scope.daemon.problems.standing(scope.may_read)


def resident_bytes() -> int:
    """The resident memory of the process in bytes."""
    return int(os.pread(_statm(), 256, 0).split()[1]) * mmap.PAGESIZE


@functools.cache
def _statm() -> int:
    """A descriptor kept open: status is most needed when no file can be opened any more."""
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


async def _agent_status(scope: Scope, store: AgentStore) -> AgentStatus:
    daemon, rules, agent = scope.daemon, store.rules, store.place.agent
    standing = daemon.replicas.status(agent)
    index = view_of(IndexState, daemon.indexes.of(store).state)

    def read(db: sqlite3.Connection) -> AgentStatus:
        sizes, queued = days.sizes(db, scope.now, rules), _count(db, "outbox")
        return AgentStatus(
            memories=sizes.warm_count + sizes.cold_count,
            warm=sizes.warm_count,
            cold=sizes.cold_count,
            warm_bytes=sizes.warm_bytes,
            warm_max_bytes=rules.warm.max_bytes,
            hot_bytes=sizes.hot_bytes,
            hot_max_bytes=rules.hot.max_bytes,
            tree_nodes=sizes.tree_nodes,
            kv=_count(db, "rows WHERE kind = 'pair' AND live"),
            outbox=queued,
            conflicts=history.conflicts(db),
            database_bytes=_pragma(db, "page_count") * _pragma(db, "page_size"),
            faces_pending=store.faces_pending,
            sync=msgspec.structs.replace(standing, queued=queued),
            upkeep=daemon.upkeep.standing(agent, db).brief,
            index=index,
        )

    return await store.read(read)


def _count(db: sqlite3.Connection, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608
