"""Status and health of the daemon, its configuration, and its agents."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import mmap
import os
import sqlite3
import time
from typing import Final

import msgspec

from ..config.editing import field_without_key, owners_keys
from ..config.settings import STATIC
from ..errors import ConfigInvalid, Conflict, Forbidden, InvalidInput, NotFound, ThermoclineError
from ..llm.encoder import Encoder
from ..maintenance import days
from ..memory.checks import check_agent
from ..memory.records import Memory
from ..schemas import status as schemas
from ..schemas.stats import EncoderTrial, EncodingEstimate
from ..store import kinds
from ..store.agent_store import AgentStore
from ..store.records import history, key_values
from ..store.records.selecting import Filters, newest
from ..store.records.tree_rows import total
from ..vectors.agent_vectors import background_seconds
from .history import everything, forget_everything
from .operation import Operation, Scope
from .views import view_of


@Operation("GET", "/api/status", agent=False)
async def status(scope: Scope) -> schemas.Status:
    """Show the daemon and its open agents."""
    daemon, who = scope.daemon, scope.daemon.identity
    agents: dict[str, schemas.AgentStatus] = {}
    for name, store in daemon.agents.open_stores().items():
        if scope.may_read(name):
            # An agent that was closed meanwhile, or cannot be read, must not hide the rest.
            with contextlib.suppress(ThermoclineError):
                agents[name] = await _agent_status(scope, store)
    return view_of(
        schemas.Status,
        who,
        pid=os.getpid(),
        uptime_seconds=round(time.monotonic() - who.started, 3),
        ready=daemon.ready.is_set(),
        connections=daemon.connections(),
        memory_bytes=resident_bytes(),
        llm=daemon.model.status(),
        problems=problems_of(scope),
        agents=agents,
        encoder=daemon.encoder.state(),
    )


@Operation("GET", "/api/health", agent=False, statuses=(200, 503))
async def health(scope: Scope) -> schemas.Health:
    """Check the daemon: 200, or 503 with the lasting problems."""
    lasting = [problem for problem in problems_of(scope) if problem.lasting]
    return schemas.Health("degraded", lasting) if lasting else schemas.Health("ok")


def problems_of(scope: Scope) -> list[schemas.Problem]:
    """The problems of the daemon, and of the agents that the caller may read."""
    return scope.daemon.problems.current(scope.may_read)


def resident_bytes() -> int:
    """The resident memory of the process in bytes."""
    return int(os.pread(_statm(), 256, 0).split()[1]) * mmap.PAGESIZE


@functools.cache
def _statm() -> int:
    """A descriptor kept open: status is most needed when no file can be opened any more."""
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


async def _agent_status(scope: Scope, store: AgentStore) -> schemas.AgentStatus:
    daemon, rules, agent = scope.daemon, store.rules, store.place.agent
    replication = daemon.replicas.status(agent)
    index = daemon.indexes.of(store).state
    size = await asyncio.to_thread(daemon.agents.size_bytes, agent)

    def read(db: sqlite3.Connection) -> schemas.AgentStatus:
        sizes, queued = days.sizes(db, scope.now, rules), _count(db, "outbox")
        return schemas.AgentStatus(
            memories=sizes.warm_count + sizes.cold_count,
            warm=sizes.warm_count,
            cold=sizes.cold_count,
            warm_bytes=sizes.warm_bytes,
            warm_max_bytes=rules.warm.max_bytes,
            hot_bytes=sizes.hot_bytes,
            hot_max_bytes=rules.hot.max_bytes,
            tree_nodes=sizes.tree_nodes,
            kv=_count(db, "rows WHERE kind = 'pair' AND live"),
            outbox=queued,
            conflicts=history.conflicts(db),
            size_bytes=size,
            state_files_pending=store.state_files_pending,
            sync=msgspec.structs.replace(replication, queued=queued),
            upkeep=daemon.upkeep.status(agent, db).brief,
            index=index,
            vectors=daemon.vectors.status(agent),
            unindexed=kinds.backlog_count(db),
        )

    return await store.read(read)


def _count(db: sqlite3.Connection, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608


# The configuration


@Operation("GET", "/api/config", role="admin", agent=False)
async def show_config(scope: Scope) -> schemas.ConfigPage:
    """Show every key with its value, origin, default, help and bounds."""
    require_all(scope)
    return await asyncio.to_thread(scope.daemon.config.page)


@Operation("PUT", "/api/config", role="admin", agent=False)
async def change_config(scope: Scope, body: schemas.ConfigChange) -> schemas.ConfigChanged:
    """Change keys of the user's layer, all of them or none, in force at once."""
    require_all(scope)
    keys = owners_keys(body)
    if keys and not scope.daemon.gate.is_own(scope.peer):
        raise Forbidden(
            f"cannot change_config {', '.join(keys)}: only root and the daemon's own user may",
            field=keys[0],
        )
    try:
        return await scope.daemon.config.edit(body, scope.daemon.problems)
    except ConfigInvalid as error:
        field = field_without_key(body)
        raise InvalidInput(error.message, field=field, hint=error.hint) from error


def require_all(scope: Scope) -> None:
    """Require the role `admin` for every agent. Raises `Forbidden`: the caller lacks it."""
    # No list of agents has an empty name, so only a grant for every agent covers it.
    if scope.daemon.gate.role(scope.peer, "") != "admin":
        raise Forbidden(
            "the configuration is for admins of every agent",
            hint='grant the role for all agents: {"role": "admin", "agents": ["*"]}',
        )


# The agents


@Operation("GET", "/api/agents", agent=False)
async def list_agents(scope: Scope) -> schemas.AgentList:
    """List the agents, without opening any."""
    agents = scope.daemon.agents
    names = await asyncio.to_thread(agents.names)
    stores = agents.open_stores()
    results = []
    for name in filter(scope.may_read, names):
        count = None
        # An agent that was closed meanwhile, or cannot be read, must not hide the rest.
        with contextlib.suppress(ThermoclineError):
            count = await stores[name].read(total) if name in stores else None
        size = await asyncio.to_thread(agents.size_bytes, name)
        results.append(schemas.AgentView(name, name in stores, count, size))
    return schemas.AgentList(results)


@Operation("DELETE", "/api/agents/{id}", role="admin", agent=False)
async def forget_agent(
    scope: Scope, id: schemas.AgentId, dry_run: bool = False
) -> schemas.AgentForgotten:
    """Forget an agent: all its memories, and its folder once the replica knows."""
    agent = check_agent(id)
    scope.daemon.gate.require(scope.peer, agent, "admin")
    agents = scope.daemon.agents
    workspace = agents.place(agent).workspace
    answer = schemas.AgentForgotten(agent, 0, 0, 0, not dry_run)
    answer.workspace = None if workspace is None else str(workspace)
    answer.size_bytes = await asyncio.to_thread(agents.size_bytes, agent)
    async with agents.use(agent, create=False, quietly=True) as store:
        if dry_run:
            answer.memories = len(await store.read(everything))
            answer.key_values = await store.read(lambda db: key_values.page(db, "", 1, 0)[1])
            return answer
        answer.memories, answer.key_values = await forget_everything(store)
        try:
            await scope.daemon.replicas.sync(agent)
        except NotFound:
            answer.replica = "none"
        except ThermoclineError as error:
            # The deletions wait in its folder; without them the replica would bring it back.
            answer.replica, answer.why = "behind", error.message
            return answer
        else:
            answer.replica = "synced"
    await agents.forget(agent)
    scope.daemon.problems.forget(agent)
    return answer


_TRIED: Final = 10
_ESTIMATED: Final = 10_000


@Operation("POST", "/api/encoder/try", role="write")
async def try_encoder(scope: Scope) -> EncoderTrial:
    """Encode the agent's ten newest memories, and store nothing."""
    encoder = scope.daemon.encoder
    model = encoder.model
    if model is None:
        raise Conflict("no encoder is configured", hint="name a model in llm.models.embed")

    def read(db: sqlite3.Connection) -> tuple[int, list[Memory]]:
        return total(db), newest(db, Filters(), limit=_TRIED, now=scope.now)

    async with scope.store(trial=True) as store:
        count, memories = await store.read(read)
    encoder.end_pause()
    # Once to start the process or to load the model, which is not to count, and once to see what a
    # call takes by itself.
    await encoder.encode((), model=model)
    await encoder.encode((), model=model)
    began = time.monotonic()
    await encoder.encode([memory.text for memory in memories], model=model)
    seconds = time.monotonic() - began
    began = time.monotonic()
    query = memories[0].text if memories else model.removeprefix(STATIC)
    await encoder.encode((query,), model=model, role="query")
    return EncoderTrial(
        encoder.state(),
        count,
        _encoding_estimate(encoder, count),
        len(memories),
        round(seconds, 4),
        round(time.monotonic() - began, 4),
    )


def _encoding_estimate(encoder: Encoder, memories: int) -> EncodingEstimate | None:
    measured = encoder.measured()
    if measured is None or not measured.texts:
        return None
    return EncodingEstimate(
        measured.texts,
        round(measured.seconds_of(_ESTIMATED), 1),
        round(measured.tokens_in / measured.texts * _ESTIMATED),
        None if measured.dollars is None else measured.dollars / measured.texts * _ESTIMATED,
        round(background_seconds(memories, measured), 4),
    )
