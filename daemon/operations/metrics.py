"""The numbers of an agent: now, by minute, by day, and for OpenMetrics."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ..config.settings import Rules
from ..errors import ThermoclineError
from ..maintenance import days as recorded
from ..maintenance.minutes import MinuteSeries
from ..memory import tree_nodes
from ..recall.tree_search import described
from ..schemas import stats as schemas
from ..schemas.status import Metrics, ModelStatus
from ..schemas.sync import CloudUsage
from ..store import outbox
from ..store.agent_store import AgentStore
from ..store.agents import Agents
from ..store.records import documents, tree_rows
from .operation import Operation, Scope
from .status import problems_of, resident_bytes

OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0"
_COUNTERS: Final = {
    "retrieval_count": "retrievals",
    "consolidation_count": "consolidations",
    "total_stored": "memories_stored",
    "total_evicted": "memories_archived",
    "total_retrieved": "memories_retrieved",
}
_TOP: Final = 5
# Two weeks, the day before them, and a reserve for days that were not recorded.
_TREND_DAYS: Final = 21


async def open_metrics(scope: Scope) -> str:
    """The same as `metrics` in the text format of OpenMetrics 1.0, closed by `# EOF`."""
    numbers = msgspec.structs.asdict(await metrics(scope))
    agent, daemon = numbers.pop("agent_id"), numbers.pop("daemon")
    lines: list[str] = []
    label = f'{{agent="{agent}"}}'
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if name in _COUNTERS:
            family = f"thermocline_{_COUNTERS[name]}"
            lines += [f"# TYPE {family} counter", f"{family}_total{label} {value}"]
        else:
            lines += [f"# TYPE thermocline_{name} gauge", f"thermocline_{name}{label} {value}"]
    for name, value in daemon.items():
        lines.append(f"# TYPE thermocline_daemon_{name} gauge")
        lines.append(f"thermocline_daemon_{name} {value}")
    return "\n".join([*lines, "# EOF", ""])


@Operation("GET", "/api/metrics", others={OPENMETRICS: open_metrics})
async def metrics(scope: Scope) -> Metrics:
    """Counters of an agent under EvoClaw's names, and the daemon's, as JSON or OpenMetrics."""
    numbers = await scope.read(lambda db: _metrics(db, scope.now, scope.settings))
    local = datetime.fromtimestamp(scope.now).astimezone()
    vectors = scope.daemon.vectors.status(scope.agent)
    return Metrics(
        **numbers,
        timestamp=local.isoformat(timespec="seconds"),
        agent_id=scope.agent,
        daemon={
            "uptime_seconds": round(time.monotonic() - scope.daemon.identity.started, 3),
            "memory_bytes": resident_bytes(),
            "connections": scope.daemon.connections(),
            "problems": len(problems_of(scope)),
            "open_agents": len(scope.daemon.agents.open_stores()),
            **_of_models(scope.daemon.model.status()),
            **({} if vectors is None else {"encoded": vectors.encoded, "to_encode": vectors.left}),
            **_of_replica(scope.daemon.replicas.status(scope.agent).usage),
        },
    )


def _of_models(status: ModelStatus) -> dict[str, float]:
    purposes = status.purposes.values()
    return {
        "llm_calls": sum(usage.calls for usage in purposes),
        "llm_errors": sum(usage.errors for usage in purposes),
        "llm_cached": sum(usage.cached for usage in purposes),
        "llm_tokens": sum(usage.tokens_in + usage.tokens_out for usage in purposes),
        "llm_cost_dollars": round(sum(usage.cost for usage in purposes), 6),
        "llm_slowest_p95_seconds": max((usage.p95_seconds for usage in purposes), default=0.0),
        "llm_tokens_today": status.today.tokens,
        "llm_cost_today_dollars": round(status.today.cost, 6),
    }


def _of_replica(usage: CloudUsage | None) -> dict[str, float]:
    if usage is None:
        return {}
    spans = {"today": usage.today, "month": usage.month}
    return {
        f"replica_{name}_{span}": value
        for span, totals in spans.items()
        for name, value in msgspec.structs.asdict(totals).items()
    }


def _metrics(db: sqlite3.Connection, now: float, rules: Rules) -> dict[str, Any]:
    numbers = documents.metrics_document(db, now)
    del numbers["_schema_version"]
    sizes = recorded.sizes(db, now, rules)
    numbers["tree_index_size_bytes"] = tree_nodes.size(described(db), rules.tree)
    numbers["tree_node_count"] = sizes.tree_nodes
    numbers["hot_memory_size_bytes"] = sizes.hot_bytes
    numbers["warm_memory_count"] = sizes.warm_count
    numbers["warm_memory_size_kb"] = round(sizes.warm_bytes / 1024, 1)
    numbers["cold_memory_count"] = sizes.cold_count
    return numbers


@Operation("GET", "/api/memory/stats")
async def stats(scope: Scope) -> schemas.Stats:
    """Show an agent's memory in numbers, as EvoClaw's service gives them."""
    return await scope.read(lambda db: _stats(db, scope.now, scope.settings))


@Operation("GET", "/api/metrics/history")
async def by_day(
    scope: Scope, days: Annotated[int, Meta(ge=1, le=731)] = 14
) -> schemas.MetricsHistory:
    """Show sizes and counters of the last recorded `days`, and the trend of seven days."""

    def read(db: sqlite3.Connection) -> schemas.MetricsHistory:
        trend = recorded.trend(recorded.load(db, _TREND_DAYS))
        return schemas.MetricsHistory(recorded.load(db, days), trend)

    return await scope.read(read)


def _stats(db: sqlite3.Connection, now: float, rules: Rules) -> schemas.Stats:
    nodes = tree_rows.load(db)
    sizes, most = recorded.sizes(db, now, rules), rules.hot.max_bytes
    counters: dict[str, Any] = documents.metrics_document(db, now)
    top = sorted(nodes, key=lambda path: (-nodes[path].warm_count, path))[:_TOP]
    fullest = [(path, nodes[path].warm_count) for path in top if nodes[path].warm_count]
    return schemas.Stats(
        schemas.HotStats(sizes.hot_bytes, most, round(100 * sizes.hot_bytes / most, 1)),
        schemas.WarmStats(
            sizes.warm_count,
            sizes.warm_bytes,
            rules.warm.max_kb,
            [schemas.CategoryCount(*category) for category in fullest],
        ),
        schemas.ColdStats(sizes.cold_count, rules.cold.backend),
        schemas.TreeStats(sizes.tree_nodes, rules.tree.max_nodes, tree_nodes.depth(nodes)),
        schemas.ScoringStats(rules.scoring.half_life_days, rules.warm.eviction_threshold),
        schemas.CounterStats(*(counters[name] for name in schemas.CounterStats.__struct_fields__)),
    )


@Operation("GET", "/api/metrics/live")
async def live(scope: Scope) -> schemas.LiveMetrics:
    """Show an agent's last two hours by minute: stores, recalls and their times, replication."""
    minutes, agent = scope.daemon.minutes, scope.agent
    minutes.note_memory(resident_bytes())
    if (store := scope.daemon.agents.open_stores().get(agent)) is not None:
        await _note_outbox(minutes, agent, store)
    return schemas.LiveMetrics(
        since=minutes.first(),
        stores=[int(count or 0) for count in minutes.of(agent, "stores")],
        recalls=[int(count or 0) for count in minutes.of(agent, "recalls")],
        recall_p50_ms=[*minutes.of(agent, "p50_ms")],
        recall_p99_ms=[*minutes.of(agent, "p99_ms")],
        outbox=_whole(minutes.of(agent, "outbox")),
        sync_ms=[*minutes.of(agent, "sync_ms")],
        memory_bytes=_whole(minutes.memory()),
    )


async def sample(minutes: MinuteSeries, agents: Agents) -> None:
    """Record measured values: the outboxes of open agents, and the memory of the process."""
    minutes.note_memory(resident_bytes())
    for agent, store in list(agents.open_stores().items()):
        await _note_outbox(minutes, agent, store)
    minutes.forget_idle()


async def _note_outbox(minutes: MinuteSeries, agent: str, store: AgentStore) -> None:
    # A store that is being closed is skipped.
    with contextlib.suppress(ThermoclineError):
        queued = await store.read(outbox.queued)
        minutes.note(agent, "outbox", sum(queued.values()))


def _whole(values: Sequence[float | None]) -> list[int | None]:
    return [None if value is None else int(value) for value in values]
