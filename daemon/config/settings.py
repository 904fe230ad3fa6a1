"""The typed tree of the configuration: every key with its type, bounds and default.

The daemon's parts take these structs. `config.json` has the same defaults, with help for each key.
Times are seconds and sizes bytes unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

from ..memory.hot.state import HotLimits
from ..memory.scoring import Scoring, WarmLimits
from ..memory.tree_nodes import TreeLimits
from ..schemas.recall import Preset

Json: TypeAlias = Any
KeyPath: TypeAlias = tuple[str, ...]
Role: TypeAlias = Literal["read", "write", "admin"]
Purpose: TypeAlias = Literal[
    "distil", "observe", "episode", "tree", "merge", "rebuild", "ingest", "compact", "embed"
]

Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Weight: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=10_000)]
Timeout: TypeAlias = Annotated[float, Meta(ge=0.1, le=3_600)]


def _text(pattern: str, description: str) -> Meta:
    return Meta(pattern=pattern, description=description)


# Paths with control characters or lone surrogates can be neither shown nor opened.
_SHOWN = r"[^\x00-\x1f\x7f\ud800-\udfff]"
_SEGMENT = r"[^/_\\\x00-\x1f\x7f\ud800-\udfff][^/\\\x00-\x1f\x7f\ud800-\udfff]{0,63}"
# No user, no query: a configuration must not contain secrets.
_ADDRESS = r"[^\x00-\x20@?#\x7f]{1,2000}"
_LOOPBACK = r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])"
_CRON = r"[0-9A-Za-z*,/#-]{1,128}"

FilePath: TypeAlias = Annotated[
    str, _text(rf"^(?:~(?=/|\Z)|/){_SHOWN}*\Z", "an absolute path, or a path that begins with ~/")
]
AgentId: TypeAlias = Annotated[
    str, _text(r"^[A-Za-z0-9_-]{1,64}\Z", "an agent id: 1 to 64 letters, digits, _ or -")
]
AgentChoice: TypeAlias = Annotated[
    str, _text(r"^(?:[A-Za-z0-9_-]{1,64}|\*)\Z", 'an agent id, or "*" for all')
]
AgentChoices: TypeAlias = Annotated[
    tuple[AgentChoice, ...], Meta(min_length=1, description='a list of agent ids, or ["*"]')
]
AccountName: TypeAlias = Annotated[
    str, _text(r"^[^\x00-\x20:\x7f\ud800-\udfff]{1,256}\Z", "a name or a numeric id")
]
FileMode: TypeAlias = Annotated[str, _text(r"^0?[0-7]{3}\Z", 'an octal file mode such as "0660"')]
ShortText: TypeAlias = Annotated[str, _text(rf"^{_SHOWN}{{1,64}}\Z", "1 to 64 characters")]
CategoryPath: TypeAlias = Annotated[
    str, _text(rf"^{_SEGMENT}(?:/{_SEGMENT}){{0,15}}\Z", "a category such as projects/boat")
]
Globs: TypeAlias = Annotated[
    tuple[Annotated[str, _text(rf"^{_SHOWN}{{1,500}}\Z", "a pattern")], ...],
    Meta(max_length=200, description='a list of patterns such as ["**/*.md"]'),
]
Cron: TypeAlias = Annotated[
    str,
    _text(
        rf"^\s*(?:{_CRON}\s+){{4}}{_CRON}\s*\Z",
        "a cron expression of five fields: minute hour day month weekday",
    ),
]
RemoteUrl: TypeAlias = Annotated[
    str,
    _text(
        rf"^(?!.*{{(?!agent}}))(?:(?:libsql|https)://{_ADDRESS}|http://{_LOOPBACK}(?:[:/]{_ADDRESS})?"
        rf"|file:/[^\x00-\x1f\x7f]{{1,4000}})\Z",
        "libsql://…, https://… or file:/… with an absolute path (http:// only on this device; no"
        " token; the only placeholder is {agent}, the agent's name)",
    ),
]
BaseUrl: TypeAlias = Annotated[
    str, _text(rf"^https?://{_ADDRESS}\Z", "http://… or https://… without a key in it")
]
HostName: TypeAlias = Annotated[
    str,
    _text(
        r"^[A-Za-z0-9._-]{1,253}(?::[0-9]{1,5})?\Z|^\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?\Z",
        "a host, with :port to allow that port alone",
    ),
]
HostNames: TypeAlias = Annotated[tuple[HostName, ...], Meta(description="a list of hosts")]
ModelName: TypeAlias = Annotated[
    str,
    _text(
        r"^[^\x00-\x20\x7f\ud800-\udfff]{1,200}\Z",
        'a model as litellm names it, such as "openai/gpt-4o-mini"',
    ),
]
ModelNames: TypeAlias = Annotated[
    tuple[ModelName, ...],
    Meta(description='a list of models as litellm names them, such as ["openai/gpt-4o-mini"]'),
]
Provider: TypeAlias = Annotated[
    str, _text(r"^[a-z0-9_.-]{1,64}\Z", "a provider as litellm names it")
]

ROLES: Final[tuple[Role, ...]] = get_args(Role)
# The purpose whose model encodes texts, and what the name of a model in a folder begins with.
EMBED: Final = "embed"
STATIC: Final = "static:"
EVERY_AGENT: Final = "*"
# Used once, at the start. All other keys are looked up whenever they are needed.
AT_START: Final = {
    "agent_id": None,
    "agents": None,
    "socket": ("path", "mode", "group", "max_connections", "max_body_bytes"),
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


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider charges for a replica, in US dollars; 0: unknown, or nothing."""

    billion_reads: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    million_writes: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    gigabyte: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0


class Sync(msgspec.Struct, frozen=True, kw_only=True):
    """The replica: its place, and when changes are sent and received."""

    url: RemoteUrl | None = None
    token_file: FilePath | None = None
    seal: Literal["off", "on"] = "off"
    device_name: ShortText | None = None
    critical_seconds: Annotated[float, Meta(ge=0.05, le=3_600)] = 1.0
    change_seconds: Annotated[float, Meta(ge=0.05, le=86_400)] = 30.0
    poll_seconds: Annotated[float, Meta(ge=0.1, le=86_400)] = 30.0
    budget: Annotated[int, Meta(ge=0, le=1_000_000_000_000)] = 0
    prices: Prices = Prices()
    workspace: bool = True
    shutdown_seconds: Annotated[float, Meta(ge=0, le=60)] = 3.0
    verify_days: Annotated[float, Meta(ge=0, le=3_650)] = 7.0


class Distillation(msgspec.Struct, frozen=True, kw_only=True):
    """How texts are condensed."""

    aggression: Share = 0.7
    max_distilled_bytes: Annotated[int, Meta(ge=16, le=65_536)] = 100
    mode: Literal["rule", "llm"] = "rule"


class UpkeepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The schedules of upkeep."""

    quick: Cron | None = "0 */3 * * *"
    daily: Cron | None = "0 0 * * *"
    monthly: Cron | None = "0 0 1 * *"
    merging: Cron | None = "0 3 * * *"
    jitter_seconds: Annotated[float, Meta(ge=0, le=3_600)] = 120.0


class Ingest(msgspec.Struct, frozen=True, kw_only=True):
    """Which daily notes are read, and the categories of their facts, by a word of a heading."""

    days: Annotated[int, Meta(ge=1, le=366)] = 2
    max_note_kb: Annotated[int, Meta(ge=1, le=65_536)] = 1_024
    categories: dict[ShortText, CategoryPath] = {}


class Merging(msgspec.Struct, frozen=True, kw_only=True):
    """Whether upkeep merges memories, and which of them a model may combine."""

    enabled: bool = True
    similarity: Annotated[float, Meta(ge=0.1, le=1)] = 0.55
    max_cluster: Annotated[int, Meta(ge=2, le=50)] = 5


class Socket(msgspec.Struct, frozen=True, kw_only=True):
    """Where the daemon listens, and the limits of a connection."""

    path: FilePath | None = None
    mode: FileMode = "0660"
    group: AccountName | None = None
    max_connections: Count = 256
    max_body_bytes: Annotated[int, Meta(ge=1_024, le=67_108_864)] = 1_048_576
    header_timeout_seconds: Timeout = 10.0
    body_timeout_seconds: Timeout = 30.0
    idle_timeout_seconds: Timeout = 75.0
    drain_seconds: Annotated[float, Meta(ge=0, le=60)] = 4.0

    @property
    def permissions(self) -> int:
        return int(self.mode, 8)


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one call."""

    max_text_bytes: Annotated[int, Meta(ge=1, le=16_777_216)] = 65_536
    max_batch: Count = 500
    max_list: Count = 500
    query_seconds: Annotated[float, Meta(ge=0.001, le=3_600)] = 10.0


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """The quotas of each agent; 0: no limit."""

    memories: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0
    megabytes: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    requests_per_second: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How long agents stay open, when their files are written, and how much history is kept."""

    idle_close_seconds: Annotated[float, Meta(ge=1, le=604_800)] = 300.0
    max_open_agents: Count = 16
    state_file_delay_seconds: Annotated[float, Meta(ge=0.01, le=60)] = 0.25
    state_file_check_seconds: Annotated[float, Meta(ge=0.05, le=3_600)] = 2.0
    history_mb: Annotated[float, Meta(ge=0, le=100_000)] = 16.0

    @property
    def history_max_bytes(self) -> int:
        return int(self.history_mb * (1 << 20))


class Weights(msgspec.Struct, frozen=True):
    """The relative weights of the parts of the relevance."""

    match: Weight = 1.0
    recency: Weight = 0.0
    importance: Weight = 0.0


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """How memories are found and ranked; section `recall`."""

    limit: Annotated[int, Meta(ge=1, le=100)] = 5
    preset: Preset | None = None
    decay_per_day: Share = 0.05
    weights: Weights = Weights()
    candidates: Count = 40
    common_word_share: Share = 0.02
    embed_deadline_ms: Annotated[int, Meta(ge=1, le=60_000)] = 150
    synonyms: dict[str, list[str]] = {}


class Observe(msgspec.Struct, frozen=True, kw_only=True):
    """When the turns of a conversation are read, and when a conversation is over."""

    debounce_seconds: Annotated[float, Meta(ge=0, le=3_600)] = 30.0
    episode_idle_minutes: Annotated[float, Meta(ge=0.01, le=10_080)] = 30.0


class ModelTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that one answer of a model may take, by purpose."""

    distil: Timeout = 15.0
    observe: Timeout = 30.0
    episode: Timeout = 15.0
    tree: Timeout = 15.0
    merge: Timeout = 30.0
    rebuild: Timeout = 60.0
    ingest: Timeout = 30.0
    compact: Timeout = 30.0
    embed: Timeout = 60.0


class Llm(msgspec.Struct, frozen=True, kw_only=True):
    """The models and their budget. Their keys are not part of the configuration."""

    model: ModelName | None = None
    models: dict[Purpose, ModelNames] = {}
    api_base: BaseUrl | None = None
    api_bases: dict[Provider, BaseUrl] = {}
    key_file: FilePath | None = None
    endpoint_hosts: HostNames = ()
    daily_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000_000)] = 1_000_000
    daily_cost: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    min_chars: Annotated[int, Meta(ge=0, le=1_000_000)] = 200
    idle_seconds: Annotated[float, Meta(ge=1, le=604_800)] = 120.0
    timeouts: ModelTimeouts = ModelTimeouts()

    @property
    def main(self) -> str | None:
        """The model to which a single key and `api_base` belong: an encoder only without others."""
        encoder = self.encoder
        is_remote = encoder is not None and not encoder.startswith(STATIC)
        return self.answering or (encoder if is_remote else None)

    @property
    def answering(self) -> str | None:
        """The first model that answers questions; None: the rules are used for all."""
        others = (names for purpose, names in self.models.items() if purpose != EMBED)
        return self.model or next((name for names in others for name in names), None)

    @property
    def encoder(self) -> str | None:
        """The model that encodes texts as vectors; None: texts are found by their words alone."""
        return next(iter(self.models_for(EMBED)), None)

    def models_for(self, purpose: str) -> tuple[str, ...]:
        """The models to ask, in order; without any, the rules are used."""
        alone = (self.model,) if self.model is not None and purpose != EMBED else ()
        return next((names for name, names in self.models.items() if name == purpose), alone)


class Grant(msgspec.Struct, frozen=True):
    """What one user or group may do, and with which agents.

    In a file, a role alone means that role with every agent. A later layer replaces a grant as a
    whole, so that no agents of an earlier one remain under a higher role.
    """

    role: Role
    agents: AgentChoices

    def covers(self, agent: str) -> bool:
        return EVERY_AGENT in self.agents or agent in self.agents


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may use the socket besides root and the daemon's own user.

    The keys are names or numeric ids, not looked up here: an account may be created later.
    """

    users: dict[AccountName, Grant] = {}
    groups: dict[AccountName, Grant] = {}


class AgentFolder(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's own settings; paths are absolute once loaded."""

    workspace: FilePath | None = None
    paths: tuple[FilePath, ...] = ()
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
    min_score: Share = 0.0
    search_wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 2_000
    include: Globs = ("**/*.md", "**/*.mdx", "**/*.txt")
    exclude: Globs = ("node_modules/**", "dist/**", ".*/**")
    gitignore: bool = False
    max_file_kb: Annotated[int, Meta(ge=1, le=65_536)] = 1_024


class ExperienceRules(msgspec.Struct, frozen=True, kw_only=True):
    """How fast experiences fade."""

    half_life_days: Annotated[float, Meta(ge=1, le=365)] = 30.0


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What is logged, and in which form."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Reloading(msgspec.Struct, frozen=True, kw_only=True):
    """How the configuration's files are watched."""

    check_seconds: Timeout = 5.0


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The sections that control how a memory is kept and searched."""

    hot: HotLimits = HotLimits()
    warm: WarmLimits = WarmLimits()
    cold: Cold = Cold()
    scoring: Scoring = Scoring()
    tree: TreeLimits = TreeLimits()
    ingest: Ingest = Ingest()
    merging: Merging = Merging()
    experiences: ExperienceRules = ExperienceRules()
    recall: Tuning = Tuning()
    store: StoreSettings = StoreSettings()


class Settings(Rules, frozen=True, kw_only=True):
    """The whole configuration, complete and valid."""

    agent_id: AgentId = "default"
    sync: Sync = Sync()
    distillation: Distillation = Distillation()
    upkeep: UpkeepTimes = UpkeepTimes()
    observe: Observe = Observe()
    index: IndexSettings = IndexSettings()
    llm: Llm = Llm()
    socket: Socket = Socket()
    limits: CallLimits = CallLimits()
    quotas: Quotas = Quotas()
    access: Access = Access()
    agents: dict[AgentId, AgentFolder] = {}
    log: Log = Log()
    config: Reloading = Reloading()

    @property
    def replicates(self) -> bool:
        """Whether a replica may be used at all."""
        return self.cold.backend != "none"

    @property
    def key_to_replicate(self) -> str:
        """The key to set where an agent has no replica."""
        return "sync.url" if self.replicates else "cold.backend"

    @property
    def replicates_notes(self) -> bool:
        """Whether a replica gets the notes of the workspace too."""
        return self.sync.workspace and self.replicates

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


def at_start(path: KeyPath) -> bool:
    """Whether a change of a key takes effect only when the daemon starts."""
    return _among(path, AT_START)


def for_owners(path: KeyPath) -> bool:
    """Whether only root and the daemon's own user may change a key, or a section."""
    return _among(path, OWNERS)


def _among(path: KeyPath, keys: Mapping[str, tuple[str, ...] | None]) -> bool:
    names = keys.get(path[0], ())
    return names is None or (bool(names) and (len(path) == 1 or path[1] in names))


def leaves(node: Json, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Json]]:
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
