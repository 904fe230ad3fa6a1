"""The daemon at a glance, its configuration, its agents and its events.

Times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ..memory.records import IndexState
from .common import Json
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


class PurposeUsage(Struct):
    """One purpose's numbers.

    Attributes:
        calls: questions, including those answered from the cache.
        errors: questions without a usable reply.
        repaired: replies that were only usable at the second attempt.
        cost: in US dollars, as far as prices are known.
        p50_seconds, p95_seconds: of the latest replies that were not cached; 0 without one.
        last_error: why the last question without a reply failed, in a word.
    """

    calls: int = 0
    errors: int = 0
    cached: int = 0
    repaired: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    p50_seconds: float = 0.0
    p95_seconds: float = 0.0
    last_error: str | None = None


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


class EncoderStatus(Struct, frozen=True):
    """The model that encodes texts as vectors.

    Attributes:
        state: `missing` if its extra is not installed, `failing` if the latest call failed; with
            `why`.
        dimensions: of its vectors; None before the first.
        goes_to: where texts are sent; "" if they stay on the device.
        pid, memory_bytes: of the process of a static model.
        queries: the cache of encoded queries.
    """

    state: ModelState
    model: str
    why: str
    dimensions: int | None
    goes_to: str
    pid: int | None
    memory_bytes: int
    queries: CacheState


class VectorStatus(Struct, frozen=True):
    """How far the texts of an agent are encoded.

    Attributes:
        model: the configured encoder.
        encoded, left: the texts with a vector of it, and those without, as far as is known.
        answers: the encoder whose vectors answer until none is left; "" if it is the same.
    """

    model: str
    encoded: int
    left: int
    answers: str = ""


class AgentStatus(Struct):
    """One open agent. Sizes are bytes of compact JSON, except the database's.

    `vectors` is null while no encoder is configured. `unindexed` are restored memories that words
    do not find yet; they are indexed in the background, the newest first.
    """

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
    size_bytes: int
    state_files_pending: bool
    sync: ReplicationStatus
    upkeep: UpkeepBrief
    index: IndexState
    vectors: VectorStatus | None = None
    unindexed: int = 0


class Status(Struct):
    """The daemon, and those of its open agents that the caller may read.

    `ready` turns true when the default agent is open, taken over or rebuilt if necessary. `encoder`
    is null if none is configured.
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
    encoder: EncoderStatus | None = None


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


# The configuration


class ConfigKey(Struct, frozen=True):
    """One key: its value, and the values that it accepts.

    Attributes:
        key: dotted, as `--set` takes it.
        origin: the file that gives the value, `default` or `--set`.
        default: the value if no layer gives one; also null for an entry of a map.
        expected: the allowed values in words;
        needs_restart: whether a change takes effect only when the daemon starts.
    """

    key: str
    value: Json
    origin: str
    default: Json
    help: str
    expected: str
    needs_restart: bool


class ConfigPage(Struct, frozen=True):
    """Every key, the files that were read (lowest layer first), and the file that changes go to."""

    results: list[ConfigKey]
    files: list[str]
    writes: str | None


class ConfigChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of the user's layer. `null` is a value; `unset` removes a key.

    Attributes:
        `set`: values by dotted key; the value of a section is an object of the keys to set in it.
        `unset`: dotted keys to remove from the layer, so that lower layers apply again.
    """

    set: dict[str, Json] = {}
    unset: tuple[str, ...] = ()


class ConfigChanged(Struct, frozen=True):
    """The file that was written, and the keys that changed, by when they take effect."""

    file: str
    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]


# The agents


AgentId = Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9_-]{1,64}$"})]


class AgentView(Struct):
    """An agent; `memories` is null while it is closed."""

    id: str
    open: bool
    memories: int | None
    size_bytes: int


class AgentList(Struct):
    """Every agent that the caller may read."""

    results: list[AgentView]


class AgentForgotten(Struct):
    """What the agent had.

    `replica`: `synced` if the agent is forgotten on its replica too, `none` if it has none,
    `behind` with the reason `why` if not: then its folder stays, with the deletions to be sent.
    `workspace` is a folder elsewhere, which is not removed.
    """

    id: str
    memories: int
    key_values: int
    size_bytes: int
    forgotten: bool
    replica: Literal["none", "synced", "behind"] = "none"
    why: str = ""
    workspace: str | None = None
