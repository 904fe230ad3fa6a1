"""The composition root: the daemon's parts are built here, by hand, and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import platform
import resource
import sqlite3
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from thermocline.sync import Device, Waiting

from .api.calls import Bus, Services
from .api.dispatch import Dispatcher
from .api.openapi import all_routes
from .api.server import Server
from .api.serving import Endless, Start, serve
from .cloud import staging as restored
from .cloud.account import Account, account_of
from .cloud.databases import Connect, connect
from .cloud.loop import AgentLocal
from .cloud.other import OtherDatabases
from .cloud.replicas import Replicas
from .cloud.sealing import Sealing
from .cloud.staging import remove_leftovers
from .cloud.usage import FILE as USAGE_FILE
from .cloud.usage import UsageLog
from .cloud.verify import Verifier
from .config import load
from .config.live import LiveSettings
from .errors import (
    AlreadyRunning,
    ConfigInvalid,
    NotFound,
    ReplicaAway,
    ThermoclineError,
    reason_of,
)
from .files.agent_files import AgentFiles
from .files.indexes import Indexes
from .files.workspace_files import Workspaces
from .importers.takeover import TakeOver
from .language import secrets
from .language.meaning import index_codes
from .llm.client import ModelClient, build_model
from .llm.encoder import build_encoder
from .maintenance.minutes import MinuteSeries
from .maintenance.schedule import LocalZone, Postponed
from .maintenance.scheduler import Clock, Scheduler
from .maintenance.upkeep import Upkeep, jobs_of
from .operations.access import Gate
from .operations.metrics import sample
from .operations.operation import Identity
from .runtime import VERSION, atomic
from .runtime.places import default_state_dir, socket_places
from .runtime.problems import Problems, configure
from .runtime.process import limit_malloc_arenas, malloc_trim, prebuild_decoders
from .runtime.service_manager import ProcessSignals, ServiceManager
from .schemas.upkeep import Schedule
from .store.agent_paths import DeviceId, StateLock, StoreContext
from .store.agent_store import AgentStore
from .store.agents import Agents
from .store.database.transaction import Event
from .tasks.conversation_worker import Thinking, build_thinking
from .vectors.vectors import Vectors

_READING_THREADS: Final = 4
# Connections of an agent that read.
_READERS: Final = 2
_REPLICA_THREADS: Final = 2
_OPEN_FILES: Final = 16_384
_DECODED_ON_THREADS: Final = (
    *("thermocline.daemon.memory", "thermocline.daemon.store", "thermocline.sync"),
    *("thermocline.daemon.files", "thermocline.daemon.recall", "thermocline.daemon.importers"),
)


def main(
    *, state_dir: str | None, socket: str | None, config: str | None, sets: list[str], welcome: bool
) -> int:
    """Run the daemon until a signal ends it; return the exit code.

    0 after a signal, 2 for an invalid configuration, 1 for any other failure to run.
    """
    env = os.environ
    # Only the user may read what agents remember; the socket has its own permissions.
    os.umask(0o077)
    limit_malloc_arenas()
    prebuild_decoders(*_DECODED_ON_THREADS)
    manager = ServiceManager(env)
    config_file = Path(config).expanduser() if config else None
    try:
        loaded = load(env, config_file, sets)
        configure(loaded.settings.log.level, loaded.settings.log.format)
        passed = manager.passed_socket()
        # Callers already wait at a socket that systemd made, whatever else is configured.
        chosen = passed.getsockname() if passed is not None else socket
        chosen = chosen or loaded.settings.socket.path or env.get("THERMOCLINE_SOCKET")
        chosen = chosen or socket_places(env, root=os.getuid() == 0)[0]
        start = Start(
            state_dir=Path(state_dir or default_state_dir(env)).expanduser().absolute(),
            socket=Path(chosen).expanduser().absolute(),
            config_file=config_file,
            sets=tuple(sets),
            welcome=welcome,
            passed=passed,
        )
        live = LiveSettings(loaded, env, config_file, tuple(sets))
        asyncio.run(run(start, live, manager))
    except ConfigInvalid as error:
        manager.show(f"the configuration has errors: {error.message}")
        print(f"thermocline: the configuration has errors:\n{error.message}", file=sys.stderr)
        return 2
    except (ThermoclineError, OSError) as error:
        manager.show(_say(error))
        # Who starts it once more by hand has what they want.
        return 0 if welcome and isinstance(error, AlreadyRunning) else 1
    return 0


def _say(error: ThermoclineError | OSError) -> str:
    """Print an error with its hint, and return it without."""
    text, hint = str(error), getattr(error, "hint", None)
    if isinstance(error, OSError) and error.filename:
        text = f"cannot use {error.filename}: {reason_of(error)}"
        hint = "choose another --state-dir or --socket"
    print(f"thermocline: {text}" + (f"\n  {hint}" if hint else ""), file=sys.stderr)
    return text


class _Base(msgspec.Struct, frozen=True):
    """What several parts of the daemon share.

    Attributes:
        readers, files: threads, for memories, and for replicas and other blocking files.
    """

    start: Start
    manager: ServiceManager
    lock: StateLock
    live: LiveSettings
    bus: Bus
    problems: Problems
    minutes: MinuteSeries
    device: DeviceId
    readers: ThreadPoolExecutor
    files: ThreadPoolExecutor


async def run(start: Start, live: LiveSettings, manager: ServiceManager) -> None:
    """Serve until SIGTERM or SIGINT, then leave everything complete on the disk.

    Raises:
        AlreadyRunning: another daemon holds the state folder or the socket.
    """
    started = time.monotonic()
    _allow_files()
    atomic.make_folder(start.state_dir)
    with (
        StateLock(start.state_dir, start.socket) as lock,
        ThreadPoolExecutor(_READING_THREADS, thread_name_prefix="reader") as readers,
        ThreadPoolExecutor(_REPLICA_THREADS, thread_name_prefix="replica") as files,
    ):
        restored.finish(start.state_dir)
        remove_leftovers(start.state_dir)
        signals = ProcessSignals(asyncio.get_running_loop())
        base = _Base(
            start,
            manager,
            lock,
            live,
            Bus(),
            Problems(),
            MinuteSeries(time.time),
            DeviceId(start.state_dir),
            readers,
            files,
        )
        # The words that meaning is read by: the first store would wait for them. They stay, and a
        # collection that looked at them would take 40 ms.
        readers.submit(index_codes, "", (), None).add_done_callback(lambda _: gc.freeze())
        identity = Identity(
            VERSION, base.device.id, str(start.state_dir), str(start.socket), started
        )
        await _serve(base, signals, identity)


async def _serve(base: _Base, signals: ProcessSignals, identity: Identity) -> None:
    start, live, problems = base.start, base.live, base.problems

    def publish(agent: str, event: Event) -> None:
        base.bus.publish(agent, event)
        if event.type == "memory.stored":
            base.minutes.count_store(agent)
        indexes.on_event(agent, event)
        vectors.on_event(agent, event)

    def schedules(agent: str, db: sqlite3.Connection) -> tuple[Schedule, ...]:
        return scheduler.schedules(agent, db)

    # They need one another, and are not called before all are there.
    agents = _agents(base, publish, lambda agent, kinds: replicas.changed(agent, kinds))  # noqa: PLW0108
    usage = UsageLog(start.state_dir / USAGE_FILE, atomic.write, time.time)
    opened = partial(connect, threads=base.files, count=usage.count)
    replicas = _replicas(base, agents, opened, usage)
    model = _model(base)
    encoder = build_encoder(live.current, model, env=os.environ, clear=secrets.clear)
    folder = start.state_dir / "agents"
    vectors = Vectors(agents, encoder, folder, publish=base.bus.publish, problems=problems)
    thinking = build_thinking(model, agents, live.current, problems, LocalZone(), vectors.nearness)
    indexes = _indexes(base, agents, publish)
    services = Services(
        agents=agents,
        model=model,
        encoder=encoder,
        thinking=thinking,
        replicas=replicas,
        verifier=Verifier(agents, replicas, state_dir=start.state_dir, problems=problems),
        databases=OtherDatabases(opened, replicas.device),
        workspaces=Workspaces(start.state_dir, lambda: live.settings.replicates_notes, problems),
        indexes=indexes,
        vectors=vectors,
        agent_files=AgentFiles(problems),
        upkeep=_upkeep(base, agents, thinking, vectors, schedules),
        config=live,
        problems=problems,
        minutes=base.minutes,
        bus=base.bus,
        gate=Gate(lambda: live.settings.access, os.getuid()),
        identity=identity,
        connections=lambda: len(edge.connections),
        ready=asyncio.Event(),
        stopping=signals.stopping,
    )
    edge = Server(Dispatcher(services, all_routes()), live.current)
    scheduler = _scheduler(base, services)
    tasks: dict[str, Endless] = {
        "scheduler": scheduler.run,
        "replicas": replicas.run,
        "index": indexes.run,
        "vectors": vectors.follow,
        "encoding": vectors.encode,
        "configuration": lambda: live.run(signals.reload, problems, base.manager),
        "conversations": thinking.worker.run,
    }
    await serve(start, live.current, services, edge, signals, base.manager, tasks)


def _indexes(base: _Base, agents: Agents, publish: Callable[[str, Event], None]) -> Indexes:
    live = base.live
    return Indexes(
        agents,
        lambda: live.settings.index,
        {name: agent.paths for name, agent in live.settings.agents.items()},
        state_dir=base.start.state_dir,
        publish=publish,
        problems=base.problems,
    )


def _agents(
    base: _Base,
    publish: Callable[[str, Event], None],
    outgoing: Callable[[str, frozenset[str]], None],
) -> Agents:
    live, settings = base.live, base.live.settings
    context = StoreContext(
        threads=base.readers,
        problems=base.problems,
        now=time.time,
        publish=publish,
        outgoing=outgoing,
        rules=live.current,
        importer=TakeOver(),
        device=base.device,
        readers=_READERS,
        state_file_delay_seconds=lambda: live.settings.store.state_file_delay_seconds,
        since=time.time(),
    )
    agents = Agents(
        base.start.state_dir,
        workspaces={
            name: Path(agent.workspace)
            for name, agent in settings.agents.items()
            if agent.workspace is not None
        },
        context=context,
        settings=lambda: live.settings.store,
    )
    agents.finish_forgetting()
    return agents


def _model(base: _Base) -> ModelClient:
    return build_model(
        lambda: base.live.settings.llm,
        env=os.environ,
        state_dir=base.start.state_dir,
        write=atomic.write,
        clear=secrets.clear,
        problems=base.problems,
    )


def _replicas(base: _Base, agents: Agents, opened: Connect, usage: UsageLog) -> Replicas:
    live, device = base.live, base.device
    name = (live.settings.sync.device_name or platform.node() or device.id)[:64]

    def account(agent: str, folder: Path, workspace: Path | None) -> Account | None:
        return account_of(live.settings, os.environ, agent, folder, workspace)

    async def rename() -> Device:
        return Device(await asyncio.to_thread(device.renew), name, VERSION)

    return Replicas(
        agents,
        account=account,
        connect=opened,
        local=partial(AgentLocal, agents),
        device=Device(device.id, name, VERSION),
        rename=rename,
        sealing=Sealing(
            base.start.state_dir,
            lambda: device.id,
            os.environ,
            lambda: live.settings.sync.seal == "on",
        ),
        settings=live.current,
        waiting=Waiting(),
        problems=base.problems,
        usage=usage,
        done=lambda agent, ms: base.minutes.note(agent, "sync_ms", ms),
    )


def _upkeep(
    base: _Base,
    agents: Agents,
    thinking: Thinking,
    vectors: Vectors,
    schedules: Callable[[str, sqlite3.Connection], tuple[Schedule, ...]],
) -> Upkeep:
    return Upkeep(
        agents,
        rules=base.live.current,
        publish=base.bus.publish,
        problems=base.problems,
        clock=Clock(LocalZone()),
        schedules=schedules,
        model=thinking.model,
        nearest=vectors.nearest,
    )


def _scheduler(base: _Base, services: Services) -> Scheduler:
    async def verify(store: AgentStore) -> None:
        try:
            await services.verifier.verify(store.place.agent)
        except (ReplicaAway, NotFound) as error:
            raise Postponed from error

    async def close_idle() -> None:
        await services.agents.close_idle()
        base.lock.retake()

    async def keep_files(store: AgentStore) -> None:
        await services.workspaces.synchronise(store)
        await services.agent_files.catch_up(store)

    jobs = jobs_of(
        base.live.current,
        services.upkeep,
        keep_files=keep_files,
        verify=verify,
        close_idle=close_idle,
        trim_memory=malloc_trim,
        sample=lambda: sample(base.minutes, services.agents),
    )
    return Scheduler(
        services.agents,
        jobs,
        clock=Clock(LocalZone()),
        device=base.device.id,
        jitter=lambda: base.live.settings.upkeep.jitter_seconds,
        problems=base.problems,
    )


def _allow_files() -> None:
    """Raise the limit of open files as far as allowed: an open agent takes about ten."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        # A sandbox may forbid it, and has its own limit then.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
