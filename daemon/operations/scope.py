"""The context of an operation: agent, caller, time, and the parts of the daemon."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, tzinfo
from typing import Final, TypeVar

import msgspec

from ..cloud.other import OtherDatabases
from ..cloud.replicas import Replicas
from ..cloud.verify import Verifier
from ..config.live import LiveSettings
from ..config.settings import Role, Settings
from ..errors import InvalidInput
from ..files.agent_files import AgentFiles
from ..files.indexes import Indexes
from ..files.workspace_files import Workspaces
from ..llm.client import ModelClient
from ..llm.encoder import Encoder
from ..maintenance.upkeep import Upkeep
from ..memory import checks
from ..runtime.minutes import MinuteSeries
from ..runtime.problems import Problems
from ..store.agent_store import AgentStore
from ..store.agents import Agents, require_room
from ..store.transaction import Transaction
from ..tasks.conversation_worker import Thinking
from ..vectors.vectors import Vectors
from .access import Gate, Peer

T = TypeVar("T")
# Tiny Claw's user where there is only one.
_DEFAULT_USER: Final = "default-user"


class Identity(msgspec.Struct, frozen=True):
    """What the daemon reports about itself."""

    version: str
    device: str
    state_dir: str
    socket: str
    started: float


class Daemon(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the daemon that operations use."""

    agents: Agents
    model: ModelClient
    encoder: Encoder
    thinking: Thinking
    replicas: Replicas
    verifier: Verifier
    workspaces: Workspaces
    indexes: Indexes
    vectors: Vectors
    agent_files: AgentFiles
    databases: OtherDatabases
    upkeep: Upkeep
    config: LiveSettings
    problems: Problems
    minutes: MinuteSeries
    gate: Gate
    identity: Identity
    connections: Callable[[], int]
    ready: asyncio.Event

    def settings(self) -> Settings:
        """The settings in force."""
        return self.config.settings


class Scope(msgspec.Struct, frozen=True):
    """One call of an operation.

    Attributes:
        peer: who asks.
        agent: whose memory it concerns.
        reads: whether the operation only reads; an agent that does not exist is then empty.
        now: seconds since the epoch.
    """

    daemon: Daemon
    peer: Peer
    agent: str
    reads: bool
    now: float
    settings: Settings

    @asynccontextmanager
    async def store(
        self, *, create: bool = False, exists: bool = False, trial: bool = False
    ) -> AsyncIterator[AgentStore]:
        """The memory of the agent, open while the block runs, if it exists and has room.

        With `create` something is added, to a new agent if there is none; `exists` requires one
        even for an operation that only reads; of a `trial` nothing is stored.
        """
        or_empty, quotas = trial or (self.reads and not exists), self.settings.quotas
        async with self.daemon.agents.use(self.agent, create=create, or_empty=or_empty) as store:
            if create and (quotas.memories or quotas.megabytes):
                await store.read(lambda db: require_room(db, self.agent, quotas))
            yield store

    async def read(self, work: Callable[[sqlite3.Connection], T], *, timed: bool = False) -> T:
        """Read the agent's memory; `timed`: for at most `limits.query_seconds`."""
        seconds = self.settings.limits.query_seconds if timed else None
        async with self.store() as store:
            return await store.read(work, seconds=seconds)

    async def write(self, work: Callable[[Transaction], T], *, create: bool = False) -> T:
        """Change the agent's memory in one transaction; `create` as for `store`."""
        async with self.store(create=create) as store:
            return await store.write(work)

    @property
    def zone(self) -> tzinfo:
        """The time zone of this device."""
        zone = datetime.fromtimestamp(self.now).astimezone().tzinfo
        assert zone is not None
        return zone

    def of_user(self, user: str | None) -> Scope:
        """This scope, or that of the agent that Tiny Claw's user names, if it is allowed."""
        if user is None or user == _DEFAULT_USER:
            return self
        agent = checks.check_agent(user, field="user")
        settings = self.daemon.settings().for_agent(agent)
        scope = msgspec.structs.replace(self, agent=agent, settings=settings)
        scope.require("read" if self.reads else "write")
        return scope

    def require(self, role: Role) -> None:
        """Check that the caller has this role with the agent; else raise `Forbidden`."""
        self.daemon.gate.require(self.peer, self.agent, role)

    def may_read(self, agent: str) -> bool:
        """Whether the caller has any role with `agent`."""
        return self.daemon.gate.role(self.peer, agent) is not None

    @property
    def leaves_traces(self) -> bool:
        """Whether reading counts as a use: not for a caller who may only read."""
        return self.daemon.gate.role(self.peer, self.agent) != "read"

    def category(self, path: str | None) -> str | None:
        """`path`, checked; a path that is too deep finds what was to be filed there."""
        return None if path is None else checks.check_category(path, checks.CATEGORY_CHARS)

    def page_limit(self, limit: int) -> int:
        """`limit`, or `InvalidInput` if it is beyond `limits.max_list`."""
        most = self.settings.limits.max_list
        if limit > most:
            raise InvalidInput(f"ask for at most {most} at once (got {limit})", field="limit")
        return limit
