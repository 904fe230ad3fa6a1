"""The declaration of operations, use cases without HTTP, and the scope that each of them gets."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, tzinfo
from inspect import getdoc, signature
from types import NoneType, UnionType
from typing import Any, Final, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ..cloud.other import OtherDatabases
from ..cloud.replicas import Replicas
from ..cloud.verify import Verifier
from ..config.live import LiveSettings
from ..config.settings import Role, Settings
from ..errors import InvalidInput, ThermoclineError
from ..files.agent_files import AgentFiles
from ..files.indexes import Indexes
from ..files.workspace_files import Workspaces
from ..language.dates import find_dates, seconds_of
from ..llm.client import ModelClient
from ..llm.encoder import Encoder
from ..maintenance.minutes import MinuteSeries
from ..maintenance.upkeep import Upkeep
from ..memory import checks
from ..runtime.problems import Problems
from ..schemas.common import Input
from ..store.agent_store import AgentStore
from ..store.agents import Agents, require_room
from ..store.database.transaction import Transaction
from ..tasks.conversation_worker import Thinking
from ..vectors.vectors import Vectors
from .access import Gate, Peer

JSON: Final = "application/json"
# `(scope, path parts by name, query, body) -> answer`
Run: TypeAlias = Callable[..., Awaitable[Any]]
F = TypeVar("F", bound=Run)


class Stream(msgspec.Struct, frozen=True):
    """An answer that is sent piece by piece; with a `name` as a file.

    `give_up` is called when the caller has left, before the pieces are closed.
    """

    pieces: AsyncGenerator[bytes, None]
    name: str = ""
    give_up: Callable[[], None] = lambda: None


class Operation(msgspec.Struct):
    """One operation. HTTP, OpenAPI and tools for models are loops over these.

    It is the decorator of the function that does it, `run`, whose annotations are its input and
    output: the variable parts of the path, the structs `query` and `body` (`| None`: it may be left
    out), and the fields of the request that it takes one by one. Those are the query of a GET or
    DELETE, or beside a `body`; else the body.

    Attributes:
        path: with `{name}` for a variable part; `parts` are those names and their types.
        role: the required role of the caller.
        type: the media type of the answer.
        others: functions that answer in another media type, for callers who ask for it.
        statuses: the HTTP status of an answer, and of an answer whose `ok` is false.
        agent: whether it concerns one agent's memory.
        tool: its name as a tool for models.
        also_get: GET does the same, with the fields of the body as the query.
        by_hand: `run` takes the edge's call instead of the scope, and sends the answer itself.
        summary, details: the first line of the function's docstring, and the rest.
        query, body: the structs of the request; None: it has none.
        spread: `query` or `body` if `run` takes the fields of that one by one.
        needs_body: whether the body is required.
        answers: the possible structs of the answer.
    """

    method: str
    path: str
    role: Role = "read"
    type: str = JSON
    others: Mapping[str, Run] = {}
    statuses: tuple[int, ...] = (200,)
    agent: bool = True
    tool: str | None = None
    also_get: bool = False
    by_hand: bool = False
    run: Any = None
    summary: str = ""
    details: str = ""
    parts: Mapping[str, Any] = {}
    query: Any = None
    body: Any = None
    spread: str = ""
    needs_body: bool = False
    answers: tuple[Any, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        return (self.method, "GET") if self.also_get else (self.method,)

    def __call__(self, run: F) -> F:
        """Add it to the list of all operations."""
        OPERATIONS.append(self.done_by(run))
        return run

    def done_by(self, run: Run) -> Operation:
        """It, with its function, but not in the list."""
        hints = get_type_hints(run, include_extras=True)
        summary, _, details = (getdoc(run) or "").partition("\n")
        self.run, self.summary, self.details = run, summary.removesuffix("."), details.strip()
        self.parts = {name: hints.get(name, str) for name in re.findall(r"\{(\w+)\}", self.path)}
        self.query = hints["query"] if _is_struct(hints.get("query")) else None
        bodies = _alternatives(hints.get("body"))
        self.body = next((body for body in bodies if body is not NoneType), None)
        self.needs_body = "body" in hints and NoneType not in bodies
        self.answers = _alternatives(hints.get("return"))
        _, *parameters = signature(run).parameters.values()
        fields = [
            (each.name, hints[each.name], *(() if each.default is each.empty else (each.default,)))
            for each in parameters
            if each.name not in {*self.parts, "body"} and not _is_struct(hints[each.name])
        ]
        if fields:
            self._take(fields)
        return self

    def _take(self, fields: list[tuple[Any, ...]]) -> None:
        """Take these fields as the query or the body."""
        _, *words = re.findall("[a-z]+", re.sub(r"{\w+}", "", self.path))
        name = "".join(map(str.capitalize, words)) + "Body"
        struct = msgspec.defstruct(name, fields, bases=(Input,), namespace={"__doc__": ""})
        if self.method in ("GET", "DELETE") or self.body is not None:
            self.spread, self.query = "query", struct
        else:
            self.spread, self.body = "body", struct
            self.needs_body = any(len(field) == 2 for field in fields)


OPERATIONS: Final[list[Operation]] = []


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


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

        With `create` something is added, to a new agent if it does not exist; `exists` requires one
        even for an operation that only reads; of a `trial` nothing is stored.
        """
        or_empty, quotas = trial or (self.reads and not exists), self.settings.quotas
        async with self.daemon.agents.use(self.agent, create=create, or_empty=or_empty) as store:
            if create and (quotas.memories or quotas.megabytes):
                await store.read(lambda db: require_room(db, self.agent, quotas))
            yield store

    async def make_own_files(self, store: AgentStore) -> None:
        """Create the agent's own files that are missing, which its program may look for."""
        if self.leaves_traces:
            # On a disk that refuses writes the call is answered all the same.
            with suppress(ThermoclineError):
                await self.daemon.agent_files.make_missing(store)

    async def read(self, work: Callable[[sqlite3.Connection], T], *, timed: bool = False) -> T:
        """Read the agent's memory; `timed`: for at most `limits.query_seconds`."""
        seconds = self.settings.limits.query_seconds if timed else None
        async with self.store() as store:
            return await store.read(work, seconds=seconds)

    async def write(
        self, work: Callable[[Transaction], T], *, create: bool = False, trial: bool = False
    ) -> T:
        """Change the agent's memory in one transaction; `create` as for `store`.

        With `trial` the change of an agent that does not exist is tried on an empty memory first: a
        change that is refused creates no agent.
        """
        if trial:
            async with self.store(trial=True) as store:
                if not store.exists:
                    await store.write(work)
        async with self.store(create=create) as store:
            return await store.write(work)

    @property
    def zone(self) -> tzinfo:
        zone = datetime.fromtimestamp(self.now).astimezone().tzinfo
        assert zone is not None
        return zone

    def moment(self, value: str | float, field: str) -> float:
        """A time, a duration before now ("2h"), or where days begin ("yesterday", "last week").

        With `until` as the field days end there. `InvalidInput`: the text is not a time.
        """
        try:
            return checks.parse_since(value, self.now, field=field)
        except InvalidInput:
            days = find_dates(str(value), self.now, self.zone)
            if len(days) != 1 or not days[0].periods or days[0].text != str(value).strip():
                raise
        periods = [seconds_of(period, self.zone) for period in days[0].periods]
        past = [period for period in periods if period[0] <= self.now]
        return (past or periods)[0][field == "until"]

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
