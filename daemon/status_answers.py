"""The shapes of what the daemon answers about itself; for type checkers alone."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class Agent(TypedDict):
    """An agent; its memories are counted only while its folder is open."""

    id: str
    open: bool
    memories: int | None
    size_bytes: int


class Agents(TypedDict):
    """Every agent that the daemon keeps."""

    results: list[Agent]


class AgentForgotten(TypedDict):
    """What an agent had, and whether its replica was told; `why` it was not."""

    id: str
    memories: int
    key_values: int
    size_bytes: int
    forgotten: bool
    replica: Literal["none", "synced", "behind"]
    why: str
    workspace: str | None


class Problem(TypedDict):
    """Something that needs attention."""

    code: str
    message: str
    hint: NotRequired[str | None]
    since: NotRequired[float]


class Standing(TypedDict):
    """How an agent's replication stands.

    While it is `waiting`, it tries again at `next_try`; `stopped`, it waits for somebody to mend
    what `message` says, as `hint` tells. The counts are since the daemon started.
    """

    replica: Literal["turso", "file", "none", "unknown"]
    url: str
    configured_by: str
    phase: Literal["idle", "working", "waiting", "stopped"]
    error: str
    message: str
    hint: str
    since: float | None
    next_try: float | None
    last_success: float | None
    queued: int | None
    sent: int
    received: int
    refused: int
    outbox: dict[str, int]
    conflicts: int
    set_aside: int
    notes: list[str]
    away: list[str]


class Verification(TypedDict):
    """A restore into a temporary folder: `verified` if the replica gives all back as it is."""

    verified: bool
    rows: int
    missing: int
    different: int
    extra: int
    seconds: float
    at: float
    faults: list[str]


class DeviceName(TypedDict):
    """This device, as the others see it."""

    id: str
    name: str


class SyncStanding(Standing):
    """The same with what was lost in conflicts, and the last proof that a restore works."""

    device: DeviceName
    lost_values: int
    verification: Verification | None


class Device(TypedDict):
    """A device; `behind` counts the rows of others that it had not received at `last_at`."""

    id: str
    name: str
    first_at: int
    last_at: int
    retired_at: int | None
    this: bool
    behind: int | None


class Devices(TypedDict):
    """Every device that shares the replica, the latest contact first."""

    results: list[Device]


class DeviceRetired(TypedDict):
    """The device that is waited for no longer."""

    id: str
    name: str
    retired: bool


class DeviceRejoined(TypedDict):
    """This device is in use again; `rejoined` false: it was all along."""

    id: str
    rejoined: bool
    sent: int
    received: int


class UpkeepBrief(TypedDict):
    """What of an agent's upkeep ran last, and how that went, what runs now, and what is next."""

    running: str | None
    last: str | None
    last_at: float | None
    error: str
    next: str | None
    next_at: float | None


class AgentStatus(TypedDict):
    """An open agent's sizes against their caps."""

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
    sync: Standing
    upkeep: UpkeepBrief


class ModelUse(TypedDict):
    """What models were asked for one purpose since the start; `cost` is in US dollars."""

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


class Models(TypedDict):
    """Language models at a glance; without one, or when the day's budget is `spent`, by rules."""

    state: Literal["off", "ready", "failing", "spent", "missing"]
    worker: dict[str, int | str | bool | None]
    models: dict[str, list[str]]
    resting: dict[str, str]
    day: str
    today: dict[str, float]
    limits: dict[str, float]
    cache: dict[str, int]
    purposes: dict[str, ModelUse]
    cleared: dict[str, int]


class Status(TypedDict):
    """The daemon at a glance."""

    version: str
    pid: int
    uptime_seconds: float
    state_dir: str
    socket: str
    device: str
    ready: bool
    connections: int
    llm: Models
    problems: list[Problem]
    agents: dict[str, AgentStatus]


class Health(TypedDict):
    """`ok`, or `degraded` with the problems."""

    status: Literal["ok", "degraded"]
    problems: NotRequired[list[Problem]]
