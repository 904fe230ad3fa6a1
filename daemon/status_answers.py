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


class Problem(TypedDict):
    """Something that needs attention."""

    code: str
    message: str
    hint: NotRequired[str | None]
    since: NotRequired[float]


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
    database_bytes: int
    faces_pending: bool


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
    problems: list[Problem]
    agents: dict[str, AgentStatus]


class Health(TypedDict):
    """`ok`, or `degraded` with the problems."""

    status: Literal["ok", "degraded"]
    problems: NotRequired[list[Problem]]
