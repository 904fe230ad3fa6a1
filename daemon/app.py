"""The composition root: the daemon's parts are built here, by hand, and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
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

from .api.bus import Bus
from .api.calls import Services
from .api.connections import Server
from .api.dispatch import Dispatcher
from .api.openapi import all_routes
from .api.serving import Start, serve
from .config import load
from .config.live import LiveSettings
from .errors import ConfigInvalid, NotFound, ReplicaAway, ThermoclineError
from .files.indexes import Indexes
from .files.own_files import OwnFiles
from .files.workspaces import Workspaces
from .importers.takeover import TakeOver
from .language import secrets
from .language.meaning import index_codes
from .llm.client import ModelClient, build_model
from .operations.access import Gate
from .operations.metrics import sample
from .operations.scope import Identity
from .replication.account import Account, account_of
from .replication.database import connect
from .replication.local import AgentLocal
from .replication.other import OtherDatabases
from .replication.replicas import Replicas
from .restore import place as restored
from .restore.staging import remove_leftovers
from .restore.verify import Verifier
from .runtime.background import Endless
from .runtime.heap import give_back, share_heap
from .runtime.log import configure
from .runtime.minutes import Minutes
from .runtime.places import default_state_dir, socket_places
from .runtime.problems import Problems
from .runtime.quick_start import learn_structs
from .runtime.service_manager import ServiceManager
from .runtime.signals import ProcessSignals
from .runtime.version import VERSION
from .shapes.upkeep import Schedule
from .store import atomic
from .store.agent_store import AgentStore
from .store.agents import Agents
from .store.device import DeviceId
from .store.lock import StateLock
from .store.place import Surroundings
from .store.transaction import Event
from .thinking.model_or_rules import ModelOrRules
from .thinking.parts import build_thinking
from .upkeep.cron import LocalZone
from .upkeep.jobs import jobs_of
from .upkeep.last_runs import Postponed
from .upkeep.scheduler import Clock, Scheduler
from .upkeep.upkeep import Upkeep

_log = logging.getLogger(__name__)
_READING_THREADS: Final = 4
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
    share_heap()
    learn_structs(*_DECODED_ON_THREADS)
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
        manager.show(str(error))
        _say(error)
        return 1
    return 0


def _say(error: Exception) -> None:
    hint = getattr(error, "hint", None)
    print(f"thermocline: {error}" + (f"\n  {hint}" if hint else ""), file=sys.stderr)


class _Base(msgspec.Struct, frozen=True):
    """What several parts of the daemon share.

    Attributes:
        readers, files: threads, for memories, and for replicas and other blocking files.
    """

    start: Start
    manager: ServiceManager
    live: LiveSettings
    bus: Bus
    problems: Problems
    minutes: Minutes
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
        StateLock(start.state_dir, start.socket),
        ThreadPoolExecutor(_READING_THREADS, thread_name_prefix="reader") as readers,
        ThreadPoolExecutor(_REPLICA_THREADS, thread_name_prefix="replica") as files,
    ):
        restored.finish(start.state_dir)
        remove_leftovers(start.state_dir)
        signals = ProcessSignals(asyncio.get_running_loop())
        base = _Base(
            start,
            manager,
            live,
            Bus(),
            Problems(),
            Minutes(time.time),
            DeviceId(start.state_dir),
            readers,
            files,
        )
        # The words that meaning is read by: the first store would wait for them.
        readers.submit(index_codes, "", None)
        await _serve(base, signals, started)


async def _serve(base: _Base, signals: ProcessSignals, started: float) -> None:
    start, live, problems = base.start, base.live, base.problems

    def publish(agent: str, event: Event) -> None:
        base.bus.publish(agent, event)
        if event.type == "memory.stored":
            base.minutes.count_store(agent)
        indexes.heard(agent, event)

    # They need one another, and are not called before all are there.
    agents = _agents(base, publish, lambda agent, kinds: replicas.changed(agent, kinds))  # noqa: PLW0108
    agents.finish_forgetting()
    replicas = _replicas(base, agents)
    model = _model(base)
    thinking = build_thinking(model, agents, lambda: live.settings, problems, LocalZone())
    indexes = _indexes(base, agents)
    services = Services(
        agents=agents,
        model=model,
        thinking=thinking,
        replicas=replicas,
        verifier=Verifier(agents, replicas, state_dir=start.state_dir, problems=problems),
        databases=OtherDatabases(partial(connect, threads=base.files), replicas.device),
        workspaces=Workspaces(
            start.state_dir,
            lambda: live.settings.sync.workspace and live.settings.replicates,
            problems,
        ),
        indexes=indexes,
        own_files=OwnFiles(problems),
        # Likewise.
        upkeep=_upkeep(
            base,
            agents,
            thinking.model,
            lambda agent, db: scheduler.schedules(agent, db),  # noqa: PLW0108
        ),
        settings=live.current,
        config=live,
        problems=problems,
        minutes=base.minutes,
        bus=base.bus,
        gate=Gate(lambda: live.settings.access, os.getuid()),
        identity=Identity(
            VERSION, base.device.id, str(start.state_dir), str(start.socket), started
        ),
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
        "configuration": lambda: live.run(signals.reload, problems, base.manager),
        "conversations": thinking.listener.run,
    }
    await serve(start, live.current, services, edge, signals, base.manager, tasks)


def _indexes(base: _Base, agents: Agents) -> Indexes:
    live = base.live
    return Indexes(
        agents,
        lambda: live.settings.index,
        {name: agent.paths for name, agent in live.settings.agents.items()},
        state_dir=base.start.state_dir,
        publish=base.bus.publish,
        problems=base.problems,
    )


def _agents(
    base: _Base,
    publish: Callable[[str, Event], None],
    outgoing: Callable[[str, frozenset[str]], None],
) -> Agents:
    live, settings = base.live, base.live.settings
    around = Surroundings(
        threads=base.readers,
        problems=base.problems,
        now=time.time,
        publish=publish,
        outgoing=outgoing,
        rules=live.current,
        importer=TakeOver(),
        device=base.device,
        readers=settings.store.readers_per_agent,
        face_delay_seconds=lambda: live.settings.store.face_delay_seconds,
        since=time.time(),
    )
    return Agents(
        base.start.state_dir,
        workspaces={
            name: Path(agent.workspace)
            for name, agent in settings.agents.items()
            if agent.workspace is not None
        },
        cache_kb=settings.store.cache_kb,
        around=around,
        settings=lambda: live.settings.store,
    )


def _model(base: _Base) -> ModelClient:
    return build_model(
        lambda: base.live.settings.llm,
        env=os.environ,
        state_dir=base.start.state_dir,
        write=atomic.write,
        clear=secrets.clear,
        problems=base.problems,
    )


def _replicas(base: _Base, agents: Agents) -> Replicas:
    live, device = base.live, base.device
    name = (live.settings.sync.device_name or platform.node() or device.id)[:64]

    def account(agent: str, folder: Path, workspace: Path | None) -> Account | None:
        return account_of(live.settings, os.environ, agent, folder, workspace)

    async def rename() -> Device:
        return Device(await asyncio.to_thread(device.renew), name)

    return Replicas(
        agents,
        account=account,
        connect=partial(connect, threads=base.files),
        local=partial(AgentLocal, agents),
        device=Device(device.id, name),
        rename=rename,
        settings=live.current,
        waiting=Waiting(),
        problems=base.problems,
        done=lambda agent, ms: base.minutes.note(agent, "sync_ms", ms),
    )


def _upkeep(
    base: _Base,
    agents: Agents,
    model: ModelOrRules,
    schedules: Callable[[str, sqlite3.Connection], tuple[Schedule, ...]],
) -> Upkeep:
    return Upkeep(
        agents,
        rules=base.live.current,
        publish=base.bus.publish,
        problems=base.problems,
        clock=Clock(LocalZone()),
        schedules=schedules,
        model=model,
    )


def _scheduler(base: _Base, services: Services) -> Scheduler:
    async def verify(store: AgentStore) -> None:
        try:
            await services.verifier.verify(store.place.agent)
        except (ReplicaAway, NotFound) as error:
            raise Postponed from error

    async def keep_files(store: AgentStore) -> None:
        await services.workspaces.keep(store)
        await services.own_files.bring(store)

    jobs = jobs_of(
        base.live.current,
        services.upkeep,
        keep_files=keep_files,
        verify=verify,
        close_idle=services.agents.close_idle,
        give_back=give_back,
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
