"""An agent's numbers, now and by day; and what encoding its texts takes."""

from __future__ import annotations

from datetime import date

from msgspec import Struct

from .status import EncoderStatus


class HotStats(Struct):
    """The hot state against its cap."""

    size_bytes: int
    max_bytes: int
    pct_used: float


class CategoryCount(Struct):
    """The number of warm memories in a category."""

    category: str
    count: int


class WarmStats(Struct):
    """The warm memories against their cap."""

    count: int
    size_bytes: int
    max_kb: int
    top_categories: list[CategoryCount]


class ColdStats(Struct):
    """The archive, and where its replica is."""

    count: int
    backend: str


class TreeStats(Struct):
    """The tree against its cap; `nodes` counts the root."""

    nodes: int
    max_nodes: int
    depth: int


class ScoringStats(Struct):
    """The parameters that decide when a memory leaves the warm ones."""

    half_life_days: float
    eviction_threshold: float


class CounterStats(Struct):
    """Counters since the beginning, and the time of the last consolidation; 0: never."""

    last_consolidation: float
    total_stored: int
    total_evicted: int
    total_retrieved: int


class Stats(Struct):
    """An agent's memory in numbers, in the shape of EvoClaw's service."""

    hot: HotStats
    warm: WarmStats
    cold: ColdStats
    tree: TreeStats
    scoring: ScoringStats
    metrics: CounterStats


class Day(Struct, frozen=True, rename={"day": "date"}):
    """The last record of a day. Counters count since the beginning.

    The first names are those of EvoClaw's tracker.
    """

    day: date
    timestamp: float
    hot_bytes: int
    warm_count: int
    warm_bytes: int
    tree_nodes: int
    cold_count: int
    evicted: int
    stored: int
    retrieved: int
    consolidations: int
    context_tokens_saved: int


class LiveMetrics(Struct, frozen=True):
    """An agent's last two hours by minute, oldest first; the last minute is the current one.

    It is in memory alone: null if nothing was measured, such as before the start.

    Attributes:
        since: when the first minute began.
        stores, recalls: their number; a context block counts as a recall.
        recall_p50_ms, recall_p99_ms: the duration of recalls, to within 5 percent.
        outbox: rows that the replica does not have, at the end of the minute.
        sync_ms: the duration of the minute's last round of replication.
        memory_bytes: the daemon's resident memory, at the end of the minute.
    """

    since: float
    stores: list[int]
    recalls: list[int]
    recall_p50_ms: list[float | None]
    recall_p99_ms: list[float | None]
    outbox: list[int | None]
    sync_ms: list[float | None]
    memory_bytes: list[int | None]


class Compared(Struct, frozen=True):
    """A number over the last seven days, and over the seven before.

    Attributes:
        average: of the recorded days; of a counter, the increase per day.
        before: the same of the week before; None: nothing was recorded.
        delta: the difference.
    """

    average: float
    before: float | None
    delta: float | None


class Trend(Struct, frozen=True):
    """The last seven days against the seven before, by name; `days` of them were recorded."""

    until: str
    days: int
    numbers: dict[str, Compared]


class MetricsHistory(Struct):
    """The recorded days, oldest first, and the last seven against those before."""

    days: list[Day]
    trend: Trend | None


class EncodingEstimate(Struct, frozen=True):
    """The cost of encoding, by what was encoded since the daemon started.

    Attributes:
        texts: the number of these texts.
        seconds, tokens, cost: of 10,000 texts, without the pauses in the background; the cost in
            US dollars, null if the price is unknown.
        all_seconds: of all memories of the agent, with the pauses.
    """

    texts: int
    seconds: float
    tokens: int
    cost: float | None
    all_seconds: float


class EncoderTrial(Struct, frozen=True):
    """What encoding the newest memories showed.

    Attributes:
        memories: the number of all memories of the agent.
        estimate: null until texts were encoded.
        tried: how many memories; `seconds` for all of them.
        query_seconds: for a query alone.
    """

    encoder: EncoderStatus | None
    memories: int
    estimate: EncodingEstimate | None
    tried: int
    seconds: float
    query_seconds: float
