"""`/api/memory/stats` and `/api/metrics/history`: an agent's numbers, now and over the days."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ..memory import hot
from ..memory import tree as trees
from ..shapes.stats import Day, Trend
from ..store import documents, hot_rows, tree_rows
from ..store.settling import warm_bytes
from ..store.transaction import Rules
from ..upkeep import history
from .calls import Call, Reply, Route

_TOP: Final = 5
# A week and the one before it, with a day to count from, and more if days were left out.
_TREND_DAYS: Final = 21


class HotStats(msgspec.Struct):
    """The hot state against its cap."""

    size_bytes: int
    max_bytes: int
    pct_used: float


class CategoryCount(msgspec.Struct):
    """How many warm memories are filed in a category."""

    category: str
    count: int


class WarmStats(msgspec.Struct):
    """The warm memories against their cap."""

    count: int
    size_bytes: int
    max_kb: int
    top_categories: list[CategoryCount]


class ColdStats(msgspec.Struct):
    """The archive, and where its replica is."""

    count: int
    backend: str


class TreeStats(msgspec.Struct):
    """The tree against its cap; `nodes` counts the root."""

    nodes: int
    max_nodes: int
    depth: int


class ScoringStats(msgspec.Struct):
    """What decides when a memory leaves the warm ones."""

    half_life_days: float
    eviction_threshold: float


class CounterStats(msgspec.Struct):
    """Counters since the beginning, and when the last consolidation was; 0 for never."""

    last_consolidation: float
    total_stored: int
    total_evicted: int
    total_retrieved: int


class Stats(msgspec.Struct):
    """An agent's memory in numbers, in the shape of EvoClaw's service."""

    hot: HotStats
    warm: WarmStats
    cold: ColdStats
    tree: TreeStats
    scoring: ScoringStats
    metrics: CounterStats


class HistoryQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How many of the last recorded days."""

    days: Annotated[int, Meta(ge=1, le=731)] = 14


class History(msgspec.Struct):
    """The days that were recorded, the oldest first, and the last seven against those before."""

    days: list[Day]
    trend: Trend | None


async def stats(call: Call) -> Reply:
    """The numbers as they stand."""
    backend = call.settings.cold.backend
    async with call.store() as store:
        rules = store.rules
        found = await store.read(lambda db: _stats(db, call.now, rules, backend))
    return Reply(found)


async def show_history(call: Call) -> Reply:
    """The days, and how they compare."""
    wanted = call.query(HistoryQuery).days

    def read(db: sqlite3.Connection) -> History:
        return History(history.load(db, wanted), history.trend(history.load(db, _TREND_DAYS)))

    async with call.store() as store:
        return Reply(await store.read(read))


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
            rules.warm_max_bytes // 1024,
            [CategoryCount(path, nodes[path].warm_count) for path in top if nodes[path].warm_count],
        ),
        ColdStats(cold, backend),
        TreeStats(len(nodes) + 1, rules.tree.max_nodes, trees.depth(nodes)),
        ScoringStats(rules.scoring.half_life_days, rules.warm_eviction_threshold),
        CounterStats(
            counters["last_consolidation"],
            counters["total_stored"],
            counters["total_evicted"],
            counters["total_retrieved"],
        ),
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/memory/stats",
        handler=stats,
        summary="An agent's memory in numbers, as EvoClaw's service gives them",
        answer=Stats,
    ),
    Route(
        method="GET",
        path="/api/metrics/history",
        handler=show_history,
        summary="Sizes and counters day by day, and the trend of seven days",
        query=HistoryQuery,
        answer=History,
    ),
)
