"""An agent's sizes and counters, now and by day."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from ..config.settings import Rules
from ..memory import hot
from ..memory import tree as trees
from ..shapes.stats import (
    CategoryCount,
    ColdStats,
    CounterStats,
    DaysQuery,
    HotStats,
    MetricsHistory,
    ScoringStats,
    Stats,
    TreeStats,
    WarmStats,
)
from ..store import documents, hot_rows, tree_rows
from ..store.settling import warm_bytes
from ..upkeep import history as days
from .operation import operation
from .scope import Scope

_TOP: Final = 5
# A week and the one before it, with a day to count from, and more if days were left out.
_TREND_DAYS: Final = 21


async def stats(scope: Scope) -> Stats:
    """Show an agent's memory in numbers, as EvoClaw's service gives them."""
    backend = scope.settings.cold.backend
    async with scope.store() as store:
        rules = store.rules
        return await store.read(lambda db: _stats(db, scope.now, rules, backend))


async def show_history(scope: Scope, query: DaysQuery) -> MetricsHistory:
    """Show sizes and counters day by day, and the trend of seven days."""

    def read(db: sqlite3.Connection) -> MetricsHistory:
        trend = days.trend(days.load(db, _TREND_DAYS))
        return MetricsHistory(days.load(db, query.days), trend)

    async with scope.store() as store:
        return await store.read(read)


def _stats(db: sqlite3.Connection, now: float, rules: Rules, backend: str) -> Stats:
    nodes = tree_rows.load(db)
    warm, cold = tree_rows.totals(db)
    size = hot.document_size(hot_rows.document(db, now, rules))
    counters: dict[str, Any] = documents.metrics_document(db, now)
    top = sorted(nodes, key=lambda path: (-nodes[path].warm_count, path))[:_TOP]
    return Stats(
        HotStats(size, rules.hot.max_bytes, round(100 * size / rules.hot.max_bytes, 1)),
        WarmStats(
            warm,
            warm_bytes(db),
            rules.warm.max_kb,
            [CategoryCount(path, nodes[path].warm_count) for path in top if nodes[path].warm_count],
        ),
        ColdStats(cold, backend),
        TreeStats(len(nodes) + 1, rules.tree.max_nodes, trees.depth(nodes)),
        ScoringStats(rules.scoring.half_life_days, rules.warm.eviction_threshold),
        CounterStats(
            counters["last_consolidation"],
            counters["total_stored"],
            counters["total_evicted"],
            counters["total_retrieved"],
        ),
    )


OPERATIONS: Final = (
    operation("GET", "/api/memory/stats", stats),
    operation("GET", "/api/metrics/history", show_history),
)
