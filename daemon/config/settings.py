"""The typed tree of the configuration: every key, its type and its range.

The defaults live in `config.json` alone, the lowest layer, together with a line on each key
that says what it does; a test holds the two to the same keys. What stands here is what a
value may be. Times are seconds and sizes bytes unless the name says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

import msgspec
from msgspec import Meta

from .kinds import (
    AccountName,
    AgentChoice,
    AgentId,
    BaseUrl,
    CategoryPath,
    Count,
    Cron,
    Days,
    DeviceName,
    FileMode,
    FilePath,
    HeadingWord,
    HostNames,
    Json,
    KeyPath,
    ModelName,
    ModelNames,
    Provider,
    Purpose,
    Quota,
    RemoteUrl,
    Role,
    Schedule,
    Share,
    Timeout,
    Weight,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROLES: Final[tuple[Role, ...]] = get_args(Role)
EVERY_AGENT: Final = "*"


class Hot(msgspec.Struct, frozen=True, kw_only=True):
    """The caps of the hot state."""

    max_bytes: Annotated[int, Meta(ge=512, le=1_048_576)]
    max_lessons: Quota
    max_events: Quota
    max_tasks: Quota


class Warm(msgspec.Struct, frozen=True, kw_only=True):
    """The cap of the warm memories, and when one leaves them for the archive."""

    max_kb: Annotated[int, Meta(ge=1, le=102_400)]
    retention_days: Days
    eviction_threshold: Annotated[float, Meta(ge=0, le=10)]


class Cold(msgspec.Struct, frozen=True, kw_only=True):
    """The archive, and where its replica is."""

    backend: Literal["turso", "file", "none"]
    retention_years: Annotated[float, Meta(ge=0, le=1_000)]


class Sync(msgspec.Struct, frozen=True, kw_only=True):
    """The replica: its place, and when it is told and asked."""

    url: RemoteUrl | None
    token_file: FilePath | None
    device_name: DeviceName | None
    critical_seconds: Annotated[float, Meta(ge=0.05, le=3_600)]
    change_seconds: Annotated[float, Meta(ge=0.05, le=86_400)]
    poll_seconds: Annotated[float, Meta(ge=0.1, le=86_400)]
    workspace: bool
    recall_deadline_ms: Annotated[int, Meta(ge=1, le=60_000)]
    shutdown_seconds: Annotated[float, Meta(ge=0, le=60)]
    verify_days: Annotated[float, Meta(ge=0, le=3_650)]


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """The constants of the score."""

    half_life_days: Annotated[float, Meta(ge=0.001, le=36_500)]
    reinforcement_boost: Annotated[float, Meta(ge=0, le=10)]


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """The caps of the category tree, and when an unused branch is pruned."""

    max_nodes: Count
    max_depth: Annotated[int, Meta(ge=1, le=16)]
    max_size_bytes: Annotated[int, Meta(ge=256, le=1_048_576)]
    max_children: Count
    prune_idle_days: Days


class Distillation(msgspec.Struct, frozen=True, kw_only=True):
    """How texts are condensed."""

    aggression: Share
    max_distilled_bytes: Annotated[int, Meta(ge=16, le=65_536)]
    mode: Literal["rule", "llm"]


class Upkeep(msgspec.Struct, frozen=True, kw_only=True):
    """When what happens by itself is due."""

    quick: Cron | None
    daily: Cron | None
    monthly: Cron | None
    merging: Cron | None
    jitter_seconds: Annotated[float, Meta(ge=0, le=3_600)]

    @property
    def crons(self) -> dict[str, str | None]:
        """The expressions, by the run that they are for."""
        return {name: getattr(self, name) for name in ("quick", "daily", "monthly", "merging")}


class Ingest(msgspec.Struct, frozen=True, kw_only=True):
    """Which daily notes are taken in, and how what they say is filed.

    Attributes:
        categories: by a word that a heading has.
    """

    days: Annotated[int, Meta(ge=1, le=366)]
    max_note_kb: Annotated[int, Meta(ge=1, le=65_536)]
    categories: dict[HeadingWord, CategoryPath]


class Consolidation(msgspec.Struct, frozen=True, kw_only=True):
    """EvoClaw's rhythm of three steps of upkeep; None: that of the run which they belong to."""

    warm_eviction: Schedule | None
    tree_prune: Schedule | None
    tree_rebuild: Schedule | None


class Socket(msgspec.Struct, frozen=True, kw_only=True):
    """Where the daemon listens, and how long and how much it bears from one caller.

    Attributes:
        path: None for the place that the environment gives.
        mode: octal; `permissions` is the number.
        group: the name or numeric id of the group that owns the socket, None for the daemon's.
    """

    path: FilePath | None
    mode: FileMode
    group: AccountName | None
    max_connections: Count
    max_body_bytes: Annotated[int, Meta(ge=1_024, le=67_108_864)]
    header_timeout_seconds: Timeout
    body_timeout_seconds: Timeout
    idle_timeout_seconds: Timeout
    drain_seconds: Annotated[float, Meta(ge=0, le=60)]

    @property
    def permissions(self) -> int:
        """`mode` as a number, for chmod."""
        return int(self.mode, 8)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The most that one call may give or ask for."""

    max_text_bytes: Annotated[int, Meta(ge=1, le=16_777_216)]
    max_batch: Count
    max_list: Count


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """How agents are held open, when their files are written, and how much history is kept."""

    idle_close_seconds: Annotated[float, Meta(ge=1, le=604_800)]
    max_open_agents: Count
    readers_per_agent: Annotated[int, Meta(ge=1, le=64)]
    face_delay_seconds: Annotated[float, Meta(ge=0.01, le=60)]
    face_check_seconds: Annotated[float, Meta(ge=0.05, le=3_600)]
    cache_kb: Annotated[int, Meta(ge=64, le=1_048_576)]
    history_mb: Annotated[float, Meta(ge=0, le=100_000)]


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What counts in the ranking, relative to one another; at least one is above 0."""

    match: Weight
    recency: Weight
    importance: Weight


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """How memories are found and ranked."""

    weights: Weights
    candidates: Count
    common_word_share: Share
    hybrid_deadline_ms: Annotated[int, Meta(ge=1, le=60_000)]


class Observe(msgspec.Struct, frozen=True, kw_only=True):
    """When conversations are read for what is worth keeping, and when one counts as over."""

    debounce_seconds: Annotated[float, Meta(ge=0, le=3_600)]
    episode_idle_minutes: Annotated[float, Meta(ge=0.01, le=10_080)]


class Grant(msgspec.Struct, frozen=True):
    """What one user or group may do, and with which agents.

    In a file a role alone stands for that role with every agent. A later layer replaces a
    grant as a whole, so that no agents of an earlier one linger under a higher role.
    """

    role: Role
    agents: Annotated[
        tuple[AgentChoice, ...], Meta(min_length=1, description='a list of agent ids, or ["*"]')
    ]

    def covers(self, agent: str) -> bool:
        """Whether the grant speaks of `agent`."""
        return EVERY_AGENT in self.agents or agent in self.agents


class ModelTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that one answer of a model may take, by what it is for."""

    distil: Timeout
    observe: Timeout
    episode: Timeout
    tree: Timeout
    merge: Timeout
    rebuild: Timeout
    ingest: Timeout


class Llm(msgspec.Struct, frozen=True, kw_only=True):
    """The models, and what may be spent on them. Its keys are no part of the configuration."""

    model: ModelName | None
    models: dict[Purpose, ModelNames]
    api_base: BaseUrl | None
    api_bases: dict[Provider, BaseUrl]
    key_file: FilePath | None
    endpoint_hosts: HostNames
    daily_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000_000)]
    daily_cost: Annotated[float, Meta(ge=0, le=1_000_000)]
    idle_seconds: Annotated[float, Meta(ge=1, le=604_800)]
    timeouts: ModelTimeouts
    cache_entries: Quota


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may use the socket beside root and the daemon's own user.

    The keys are names or numeric ids, not looked up here: an account may come later.
    """

    users: dict[AccountName, Grant]
    groups: dict[AccountName, Grant]


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's own settings.

    Attributes:
        workspace: the folder of its notes, absolute once loaded.
    """

    workspace: FilePath


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What is logged."""

    level: Literal["debug", "info", "warning", "error"]


class Reloading(msgspec.Struct, frozen=True, kw_only=True):
    """How the configuration itself is watched."""

    check_seconds: Timeout


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The whole configuration, complete and valid."""

    agent_id: AgentId
    hot: Hot
    warm: Warm
    cold: Cold
    sync: Sync
    scoring: Scoring
    tree: Tree
    distillation: Distillation
    upkeep: Upkeep
    ingest: Ingest
    consolidation: Consolidation
    socket: Socket
    limits: Limits
    store: Store
    recall: Recall
    observe: Observe
    llm: Llm
    access: Access
    agents: dict[AgentId, Agent]
    log: Log
    config: Reloading


def leaves(node: Json, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Json]]:
    """Every value of a tree of structs and dicts with its path, in order.

    A grant is one value; an empty dict is one too, so that it can be shown.
    """
    if isinstance(node, msgspec.Struct) and not isinstance(node, Grant):
        node = {name: getattr(node, name) for name in node.__struct_fields__}
    if isinstance(node, dict) and node:
        for name, value in node.items():
            yield from leaves(value, (*path, name))
    elif path:
        yield path, node
