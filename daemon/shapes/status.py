"""The daemon at a glance, and its events. Times are seconds since the epoch."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .files import IndexState
from .sync import ReplicationStatus
from .upkeep import UpkeepBrief

ModelState = Literal["off", "ready", "failing", "spent", "missing"]


class Problem(Struct, frozen=True):
    """A notice for a person. `since` is in seconds since the epoch."""

    code: str
    message: str
    hint: str
    since: float
    lasting: bool


class WorkerState(Struct, frozen=True):
    """The model's process.

    Attributes:
        pid: None while it does not run.
        litellm: the version, once it is loaded.
        starts: since the daemon started.
        deaths: how often it ended unexpectedly.
    """

    pid: int | None
    litellm: str | None
    busy: bool
    starts: int
    deaths: int


class Spent(Struct):
    """The cost of one day.

    Attributes:
        unpriced: calls of models with unknown prices, not included in `cost`.
    """

    tokens: int = 0
    cost: float = 0.0
    calls: int = 0
    unpriced: int = 0


class DayLimits(Struct, frozen=True):
    """The limits of one day; 0 for no limit. The cost is in US dollars."""

    tokens: int = 0
    cost: float = 0.0


class CacheState(Struct, frozen=True):
    """The cache of answers: its size, and how often it had an answer."""

    entries: int
    hits: int
    misses: int


class PurposeUsage(Struct, frozen=True):
    """One purpose's numbers.

    Attributes:
        calls: questions, including those answered from the cache.
        errors: questions without a usable reply.
        repaired: replies that were only usable at the second attempt.
        cost: in US dollars, as far as prices are known.
        p50_seconds, p95_seconds: of the latest replies that were not cached; 0 without one.
        last_error: why the last question without a reply failed, in a word.
    """

    calls: int
    errors: int
    cached: int
    repaired: int
    tokens_in: int
    tokens_out: int
    cost: float
    p50_seconds: float
    p95_seconds: float
    last_error: str | None


class ModelStatus(Struct, frozen=True):
    """The state of the models.

    Attributes:
        state: `off` if none is configured, `spent` if the day's budget is, `missing` if litellm is
            not installed, `failing` if the latest call failed.
        models: those configured, by purpose.
        resting: those not used for a while after a failure, and why.
        day: the day of `today` and `limits`.
        cleared: the number of secrets of each kind removed from questions since the start.
    """

    state: ModelState
    worker: WorkerState
    models: dict[str, tuple[str, ...]]
    resting: dict[str, str]
    day: str
    today: Spent
    limits: DayLimits
    cache: CacheState
    purposes: dict[str, PurposeUsage]
    cleared: dict[str, int]


class AgentStatus(Struct):
    """One open agent. Sizes are bytes of compact JSON, except the database's."""

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
    index: IndexState


class Status(Struct):
    """The daemon, and those of its open agents that the caller may read.

    `ready` turns true when the default agent is open, taken over or rebuilt if necessary.
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


class Health(Struct, omit_defaults=True):
    """`ok`, or `degraded` with the lasting problems."""

    status: Literal["ok", "degraded"]
    problems: list[Problem] = []

    @property
    def ok(self) -> bool:
        """Whether there is no lasting problem."""
        return self.status == "ok"


class Metrics(Struct, kw_only=True):
    """An agent's counters and sizes under EvoClaw's names, and under `daemon` the daemon's."""

    retrieval_count: float
    evictions_today: float
    reinforcements_today: float
    consolidation_count: float
    last_consolidation: float
    context_tokens_saved: float
    total_stored: float
    total_evicted: float
    total_retrieved: float
    tree_index_size_bytes: int
    tree_node_count: int
    hot_memory_size_bytes: int
    warm_memory_count: int
    warm_memory_size_kb: float
    cold_memory_count: int
    timestamp: str
    agent_id: str
    daemon: dict[str, float]


class EventsQuery(Struct, forbid_unknown_fields=True):
    """The types to receive: full names, or a prefix such as `memory`. Default: all."""

    types: tuple[str, ...] = ()
