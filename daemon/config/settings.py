"""The typed tree of the configuration: every key, its type and its range.

The defaults live in `config.json` alone, the lowest layer, together with a line on each key
that says what it does; a test holds the two to the same keys. What stands here is what a
value may be. Times are seconds and sizes bytes unless the name says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = Any
KeyPath: TypeAlias = tuple[str, ...]

Role: TypeAlias = Literal["read", "write", "admin"]
Schedule: TypeAlias = Literal["hourly", "daily", "weekly", "monthly", "never"]

Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Weight: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
Days: TypeAlias = Annotated[float, Meta(ge=0, le=36_500)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=10_000)]
Quota: TypeAlias = Annotated[int, Meta(ge=0, le=10_000)]
Timeout: TypeAlias = Annotated[float, Meta(ge=0.1, le=3_600)]

# A path ends before control characters and lone surrogates: neither can be shown or opened.
FilePath: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(?:~(?=/|\Z)|/)[^\x00-\x1f\x7f\ud800-\udfff]*\Z",
        description="an absolute path, or one that begins with ~/",
    ),
]
AgentId: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_-]{1,64}\Z",
        description="an agent id: 1 to 64 letters, digits, _ or -",
    ),
]
AgentChoice: TypeAlias = Annotated[
    str,
    Meta(pattern=r"^(?:[A-Za-z0-9_-]{1,64}|\*)\Z", description='an agent id, or "*" for all'),
]
AccountName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x20:\x7f\ud800-\udfff]{1,256}\Z",
        description="a name or a numeric id",
    ),
]
FileMode: TypeAlias = Annotated[
    str, Meta(pattern=r"^0?[0-7]{3}\Z", description='an octal file mode such as "0660"')
]

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
    """The archive. Both keys are read and kept for the programs that share the file."""

    backend: Literal["turso", "file", "none"]
    retention_years: Annotated[float, Meta(ge=0, le=1_000)]


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
    """How texts are condensed. Read and kept for the programs that share the file."""

    aggression: Share
    max_distilled_bytes: Annotated[int, Meta(ge=16, le=65_536)]
    mode: Literal["rule", "llm"]


class Consolidation(msgspec.Struct, frozen=True, kw_only=True):
    """How often upkeep runs. Read and kept for the programs that share the file."""

    warm_eviction: Schedule
    tree_prune: Schedule
    tree_rebuild: Schedule


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
    """How agents are held open, and when their state files are written and looked at."""

    idle_close_seconds: Annotated[float, Meta(ge=1, le=604_800)]
    max_open_agents: Count
    readers_per_agent: Annotated[int, Meta(ge=1, le=64)]
    face_delay_seconds: Annotated[float, Meta(ge=0.01, le=60)]
    face_check_seconds: Annotated[float, Meta(ge=0.05, le=3_600)]
    cache_kb: Annotated[int, Meta(ge=64, le=1_048_576)]


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
    scoring: Scoring
    tree: Tree
    distillation: Distillation
    consolidation: Consolidation
    socket: Socket
    limits: Limits
    store: Store
    recall: Recall
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
