"""The typed tree of the configuration: every key with its type, bounds and default.

The daemon's parts take these structs themselves: nothing is copied. Those of the domain are defined
there. `config.json` has the same defaults, with a line of help for each key; a test compares the
two. Times are seconds and sizes bytes unless the name says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

import msgspec
from msgspec import Meta

from ..memory.hot.state import HotLimits
from ..memory.scoring import Scoring
from ..memory.tree_nodes import TreeLimits
from ..memory.warm import WarmLimits
from ..shapes.recall import Preset
from . import kinds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROLES: Final[tuple[kinds.Role, ...]] = get_args(kinds.Role)
EVERY_AGENT: Final = "*"
# Used once, at the start. All other keys are looked up whenever they are needed.
AT_START: Final = {
    "agent_id": None,
    "agents": None,
    "socket": ("path", "mode", "group", "max_connections", "max_body_bytes"),
    "store": ("readers_per_agent", "cache_kb"),
    "sync": ("device_name",),
}
# With these keys a caller could let the daemon read or write any file of its user, send keys and
# memories to another server, or grant access. Only root and the daemon's own user may change them.
OWNERS: Final = {
    "access": None,
    "agents": None,
    "socket": None,
    "sync": ("url", "token_file"),
    "llm": ("api_base", "api_bases", "key_file", "endpoint_hosts"),
}


class Cold(msgspec.Struct, frozen=True, kw_only=True):
    """The archive, and where its replica is."""

    backend: Literal["turso", "file", "none"] = "turso"
    retention_years: Annotated[float, Meta(ge=0, le=1_000)] = 10.0


class Sync(msgspec.Struct, frozen=True, kw_only=True):
    """The replica: its place, and when changes are sent and received."""

    url: kinds.RemoteUrl | None = None
    token_file: kinds.FilePath | None = None
    device_name: kinds.ShortText | None = None
    critical_seconds: Annotated[float, Meta(ge=0.05, le=3_600)] = 1.0
    change_seconds: Annotated[float, Meta(ge=0.05, le=86_400)] = 30.0
    poll_seconds: Annotated[float, Meta(ge=0.1, le=86_400)] = 30.0
    workspace: bool = True
    shutdown_seconds: Annotated[float, Meta(ge=0, le=60)] = 3.0
    verify_days: Annotated[float, Meta(ge=0, le=3_650)] = 7.0


class Distillation(msgspec.Struct, frozen=True, kw_only=True):
    """How texts are condensed."""

    aggression: kinds.Share = 0.7
    max_distilled_bytes: Annotated[int, Meta(ge=16, le=65_536)] = 100
    mode: Literal["rule", "llm"] = "rule"


class UpkeepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The schedules of upkeep."""

    quick: kinds.Cron | None = "0 */3 * * *"
    daily: kinds.Cron | None = "0 0 * * *"
    monthly: kinds.Cron | None = "0 0 1 * *"
    merging: kinds.Cron | None = "0 3 * * *"
    jitter_seconds: Annotated[float, Meta(ge=0, le=3_600)] = 120.0


class Ingest(msgspec.Struct, frozen=True, kw_only=True):
    """Which daily notes are read, and the categories of their facts, by a word of a heading."""

    days: Annotated[int, Meta(ge=1, le=366)] = 2
    max_note_kb: Annotated[int, Meta(ge=1, le=65_536)] = 1_024
    categories: dict[kinds.ShortText, kinds.CategoryPath] = {}


class Consolidation(msgspec.Struct, frozen=True, kw_only=True):
    """EvoClaw's schedules of three upkeep steps; None: that of the run to which a step belongs."""

    warm_eviction: kinds.Schedule | None = None
    tree_prune: kinds.Schedule | None = None
    tree_rebuild: kinds.Schedule | None = None


class Merging(msgspec.Struct, frozen=True, kw_only=True):
    """Whether upkeep merges memories, and which of them a model may combine."""

    enabled: bool = True
    similarity: Annotated[float, Meta(ge=0.1, le=1)] = 0.55
    max_cluster: Annotated[int, Meta(ge=2, le=50)] = 5


class Socket(msgspec.Struct, frozen=True, kw_only=True):
    """Where the daemon listens, and the limits of a connection.

    Attributes:
        path: None: the place that the environment gives.
        mode: octal; `permissions` is the number.
        group: the name or numeric id of the group that owns the socket; None: the daemon's.
    """

    path: kinds.FilePath | None = None
    mode: kinds.FileMode = "0660"
    group: kinds.AccountName | None = None
    max_connections: kinds.Count = 256
    max_body_bytes: Annotated[int, Meta(ge=1_024, le=67_108_864)] = 1_048_576
    header_timeout_seconds: kinds.Timeout = 10.0
    body_timeout_seconds: kinds.Timeout = 30.0
    idle_timeout_seconds: kinds.Timeout = 75.0
    drain_seconds: Annotated[float, Meta(ge=0, le=60)] = 4.0

    @property
    def permissions(self) -> int:
        """`mode` as a number, for chmod."""
        return int(self.mode, 8)


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one call."""

    max_text_bytes: Annotated[int, Meta(ge=1, le=16_777_216)] = 65_536
    max_batch: kinds.Count = 500
    max_list: kinds.Count = 500
    query_seconds: Annotated[float, Meta(ge=0.001, le=3_600)] = 10.0


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """The quotas of each agent; 0: no limit."""

    memories: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0
    megabytes: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    requests_per_second: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How long agents stay open, when their files are written, and how much history is kept."""

    idle_close_seconds: Annotated[float, Meta(ge=1, le=604_800)] = 300.0
    max_open_agents: kinds.Count = 16
    readers_per_agent: Annotated[int, Meta(ge=1, le=64)] = 2
    face_delay_seconds: Annotated[float, Meta(ge=0.01, le=60)] = 0.25
    face_check_seconds: Annotated[float, Meta(ge=0.05, le=3_600)] = 2.0
    cache_kb: Annotated[int, Meta(ge=64, le=1_048_576)] = 256
    history_mb: Annotated[float, Meta(ge=0, le=100_000)] = 16.0

    @property
    def history_max_bytes(self) -> int:
        """`history_mb` in bytes."""
        return int(self.history_mb * (1 << 20))


class Weights(msgspec.Struct, frozen=True):
    """The relative weights of the parts of the relevance."""

    match: kinds.Weight = 1.0
    recency: kinds.Weight = 0.0
    importance: kinds.Weight = 0.0


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """How memories are found and ranked; section `recall`."""

    limit: Annotated[int, Meta(ge=1, le=100)] = 5
    preset: Preset | None = None
    decay_per_day: kinds.Share = 0.05
    weights: Weights = Weights()
    candidates: kinds.Count = 50
    common_word_share: kinds.Share = 0.02
    hybrid_deadline_ms: Annotated[int, Meta(ge=1, le=60_000)] = 1_500
    synonyms: dict[str, list[str]] = {}


class Observe(msgspec.Struct, frozen=True, kw_only=True):
    """When the turns of a conversation are read, and when a conversation is over."""

    debounce_seconds: Annotated[float, Meta(ge=0, le=3_600)] = 30.0
    episode_idle_minutes: Annotated[float, Meta(ge=0.01, le=10_080)] = 30.0


class ModelTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that one answer of a model may take, by purpose."""

    distil: kinds.Timeout = 15.0
    observe: kinds.Timeout = 30.0
    episode: kinds.Timeout = 15.0
    tree: kinds.Timeout = 15.0
    merge: kinds.Timeout = 30.0
    rebuild: kinds.Timeout = 60.0
    ingest: kinds.Timeout = 30.0
    compact: kinds.Timeout = 30.0


class Llm(msgspec.Struct, frozen=True, kw_only=True):
    """The models and their budget. Their keys are not part of the configuration."""

    model: kinds.ModelName | None = None
    models: dict[kinds.Purpose, kinds.ModelNames] = {}
    api_base: kinds.BaseUrl | None = None
    api_bases: dict[kinds.Provider, kinds.BaseUrl] = {}
    key_file: kinds.FilePath | None = None
    endpoint_hosts: kinds.HostNames = ()
    daily_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000_000)] = 1_000_000
    daily_cost: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    min_chars: Annotated[int, Meta(ge=0, le=1_000_000)] = 200
    idle_seconds: Annotated[float, Meta(ge=1, le=604_800)] = 120.0
    timeouts: ModelTimeouts = ModelTimeouts()
    cache_entries: Annotated[int, Meta(ge=0, le=10_000)] = 256

    @property
    def main(self) -> str | None:
        """The model to which a single key and `api_base` belong."""
        return self.model or next((name for names in self.models.values() for name in names), None)

    def models_for(self, purpose: str) -> tuple[str, ...]:
        """The models to ask, in order; without any, the rules are used."""
        alone = (self.model,) if self.model is not None else ()
        return next((names for one, names in self.models.items() if one == purpose), alone)


class Grant(msgspec.Struct, frozen=True):
    """What one user or group may do, and with which agents.

    In a file, a role alone means that role with every agent. A later layer replaces a grant as a
    whole, so that no agents of an earlier one remain under a higher role.
    """

    role: kinds.Role
    agents: kinds.AgentChoices

    def covers(self, agent: str) -> bool:
        """Whether the grant applies to `agent`."""
        return EVERY_AGENT in self.agents or agent in self.agents


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may use the socket besides root and the daemon's own user.

    The keys are names or numeric ids, not looked up here: an account may be created later.
    """

    users: dict[kinds.AccountName, Grant] = {}
    groups: dict[kinds.AccountName, Grant] = {}


class AgentFolder(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's own settings; paths are absolute once loaded.

    Attributes:
        workspace: the folder with its notes; None: the one in the state folder.
        paths: folders and files that are indexed beside the workspace.
        synonyms: added to those of `recall`.
    """

    workspace: kinds.FilePath | None = None
    paths: tuple[kinds.FilePath, ...] = ()
    synonyms: dict[str, list[str]] = {}


class IndexSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which files are indexed, how they are split, and when."""

    watch: bool = True
    on_search: bool = True
    on_session_start: bool = True
    debounce_ms: Annotated[int, Meta(ge=0, le=60_000)] = 1_000
    interval_minutes: Annotated[float, Meta(ge=0, le=44_640)] = 60.0
    chunk_chars: Annotated[int, Meta(ge=200, le=100_000)] = 1_500
    overlap_chars: Annotated[int, Meta(ge=0, le=50_000)] = 200
    split_on_headings: bool = True
    max_results: Annotated[int, Meta(ge=1, le=100)] = 6
    min_score: kinds.Share = 0.0
    search_wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 2_000
    include: kinds.Globs = ("**/*.md", "**/*.mdx", "**/*.txt")
    exclude: kinds.Globs = ("node_modules/**", "dist/**", ".git/**")
    gitignore: bool = False
    max_file_kb: Annotated[int, Meta(ge=1, le=65_536)] = 1_024


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What is logged, and in which form."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Reloading(msgspec.Struct, frozen=True, kw_only=True):
    """How the configuration's files are watched."""

    check_seconds: kinds.Timeout = 5.0


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The sections that control how a memory is kept and searched."""

    hot: HotLimits = HotLimits()
    warm: WarmLimits = WarmLimits()
    cold: Cold = Cold()
    scoring: Scoring = Scoring()
    tree: TreeLimits = TreeLimits()
    ingest: Ingest = Ingest()
    merging: Merging = Merging()
    recall: Tuning = Tuning()
    store: StoreSettings = StoreSettings()


class Settings(Rules, frozen=True, kw_only=True):
    """The whole configuration, complete and valid."""

    agent_id: kinds.AgentId = "default"
    sync: Sync = Sync()
    distillation: Distillation = Distillation()
    upkeep: UpkeepTimes = UpkeepTimes()
    consolidation: Consolidation = Consolidation()
    observe: Observe = Observe()
    index: IndexSettings = IndexSettings()
    llm: Llm = Llm()
    socket: Socket = Socket()
    limits: CallLimits = CallLimits()
    quotas: Quotas = Quotas()
    access: Access = Access()
    agents: dict[kinds.AgentId, AgentFolder] = {}
    log: Log = Log()
    config: Reloading = Reloading()

    @property
    def replicates(self) -> bool:
        """Whether a replica may be used at all."""
        return self.cold.backend != "none"

    def for_agent(self, agent: str) -> Settings:
        """These settings with the synonyms of an agent beside those of all."""
        own = self.agents.get(agent)
        if own is None or not own.synonyms:
            return self
        synonyms = dict(self.recall.synonyms)
        for text, others in own.synonyms.items():
            synonyms[text] = [*synonyms.get(text, ()), *others]
        tuning = msgspec.structs.replace(self.recall, synonyms=synonyms)
        return msgspec.structs.replace(self, recall=tuning)


def at_start(path: kinds.KeyPath) -> bool:
    """Whether a change of a key takes effect only when the daemon starts."""
    return _among(path, AT_START)


def for_owners(path: kinds.KeyPath) -> bool:
    """Whether only root and the daemon's own user may change a key, or a section."""
    return _among(path, OWNERS)


def _among(path: kinds.KeyPath, keys: Mapping[str, tuple[str, ...] | None]) -> bool:
    names = keys.get(path[0], ())
    return names is None or (bool(names) and (len(path) == 1 or path[1] in names))


def leaves(
    node: kinds.Json, path: kinds.KeyPath = ()
) -> Iterator[tuple[kinds.KeyPath, kinds.Json]]:
    """Every value of a tree of structs and dicts with its path, in order.

    A grant is one value; so is an empty dict, so that it can be shown.
    """
    if isinstance(node, msgspec.Struct) and not isinstance(node, Grant):
        node = {name: getattr(node, name) for name in node.__struct_fields__}
    if isinstance(node, dict) and node:
        for name, value in node.items():
            yield from leaves(value, (*path, name))
    elif path:
        yield path, node
