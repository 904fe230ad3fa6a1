"""The composition root: the daemon's parts are built here, by hand, and nowhere else."""

from __future__ import annotations

import asyncio
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

from thermocline.sync import Device, Waiting

from .api.access import Gate
from .api.bus import Bus
from .api.calls import Services
from .api.connections import Server
from .api.dispatch import Dispatcher
from .api.routes import all_routes
from .api.serving import Start, serve
from .config import Settings, load
from .config.live import LiveSettings
from .errors import ConfigInvalid, NotFound, ReplicaAway, ThermoclineError
from .files.workspaces import Workspaces
from .importers.takeover import TakeOver
from .llm.asking import LiveModel
from .llm.building import Around, build_model
from .memory import secrets
from .model_plan import model_plan
from .operations.scope import Identity
from .replication.account import Account, account_of
from .replication.database import connect
from .replication.local import AgentLocal
from .replication.other import OtherDatabases
from .replication.replicas import Replicas
from .replication_plan import plan_of, replicates_files
from .restore import place as restored
from .restore.staging import remove_leftovers
from .restore.verify import Verifier
from .rules import rules_of
from .runtime.background import Endless
from .runtime.heap import give_back, share_heap
from .runtime.log import configure
from .runtime.places import default_state_dir, socket_places
from .runtime.problems import Problems
from .runtime.signals import Signals
from .runtime.version import version
from .shapes.upkeep import Schedule
from .store import atomic
from .store.agent_store import AgentStore
from .store.agents import Agents, Keeping
from .store.device import DeviceId
from .store.lock import StateLock
from .store.place import Surroundings
from .store.transaction import Rules
from .thinking.advising import Advice
from .thinking.listening import Rhythm
from .thinking.parts import Thinking, build_thinking
from .upkeep.cron import LocalZone
from .upkeep.jobs import jobs_of
from .upkeep.last_runs import Postponed
from .upkeep.scheduler import Clock, Scheduler
from .upkeep.upkeep import Upkeep
from .upkeep_plan import timing, upkeep_plan

_log = logging.getLogger(__name__)
_READING_THREADS: Final = 4
_REPLICA_THREADS: Final = 2
_OPEN_FILES: Final = 16_384


def main(
    *, state_dir: str | None, socket: str | None, config: str | None, sets: list[str], welcome: bool
) -> int:
    """Run the daemon until a signal ends it; return the exit code.

    0 after a signal, 2 for a wrong configuration, 1 for anything else that keeps it from running.
    """
    env = os.environ
    # What agents remember is for their user's eyes; the socket has permissions of its own.
    os.umask(0o077)
    share_heap()
    config_file = Path(config).expanduser() if config else None
    try:
        loaded = load(env, config_file, sets)
        configure(loaded.settings.log.level)
        chosen = socket or loaded.settings.socket.path or env.get("THERMOCLINE_SOCKET")
        chosen = chosen or socket_places(env, root=os.getuid() == 0)[0]
        start = Start(
            state_dir=Path(state_dir or default_state_dir(env)).expanduser().absolute(),
            socket=Path(chosen).expanduser().absolute(),
            config_file=config_file,
            sets=tuple(sets),
            welcome=welcome,
        )
        asyncio.run(run(start, LiveSettings(loaded, env, config_file, tuple(sets))))
    except ConfigInvalid as error:
        print(f"thermocline: the configuration has faults:\n{error.message}", file=sys.stderr)
        return 2
    except (ThermoclineError, OSError) as error:
        _say(error)
        return 1
    return 0


def _say(error: Exception) -> None:
    hint = getattr(error, "hint", None)
    print(f"thermocline: {error}" + (f"\n  {hint}" if hint else ""), file=sys.stderr)


async def run(start: Start, live: LiveSettings) -> None:
    """Serve until SIGTERM or SIGINT, then leave everything complete on the disk.

    Raises:
        AlreadyRunning: another daemon holds the state folder or the socket.
    """
    started = time.monotonic()
    _allow_files()
    atomic.make_folder(start.state_dir)
    with StateLock(start.state_dir, start.socket):
        restored.finish(start.state_dir)
        remove_leftovers(start.state_dir)
        bus, problems = Bus(), Problems()
        device = DeviceId(start.state_dir)
        signals = Signals(asyncio.get_running_loop())
        threads = ThreadPoolExecutor(_READING_THREADS, thread_name_prefix="reader")
        files = ThreadPoolExecutor(_REPLICA_THREADS, thread_name_prefix="replica")
        agents = _agents(
            start,
            live,
            bus,
            problems,
            threads,
            device,
            # Each needs the other, and this one is not called before both are there.
            lambda agent, kinds: replicas.changed(agent, kinds),  # noqa: PLW0108
        )
        agents.finish_forgetting()
        replicas = _replicas(live, agents, problems, device, files)
        model = _model(start, live, problems)
        thinking = _thinking(live, model, agents, problems)
        verifier = Verifier(agents, replicas, state_dir=start.state_dir, problems=problems)
        services = Services(
            agents=agents,
            model=model,
            thinking=thinking,
            replicas=replicas,
            verifier=verifier,
            databases=OtherDatabases(partial(connect, threads=files), replicas.device),
            workspaces=Workspaces(
                start.state_dir, lambda: replicates_files(live.settings), problems
            ),
            upkeep=_upkeep(
                live,
                agents,
                bus,
                problems,
                thinking,
                lambda agent, db: scheduler.schedules(agent, db),  # noqa: PLW0108 - see above
            ),
            settings=lambda: live.settings,
            problems=problems,
            bus=bus,
            gate=Gate(lambda: live.settings.access, os.getuid()),
            identity=Identity(
                version(), device.id, str(start.state_dir), str(start.socket), started
            ),
            connections=lambda: len(edge.connections),
            ready=asyncio.Event(),
            stopping=signals.stopping,
        )
        edge = Server(Dispatcher(services, all_routes()), lambda: live.settings)
        scheduler = _scheduler(live, services, device.id)
        tasks = _tasks(live, services, scheduler, signals)
        await serve(start, lambda: live.settings, services, edge, signals, tasks)
        threads.shutdown()
        files.shutdown()


def _allow_files() -> None:
    """Raise the limit of open files as far as allowed: an open agent takes about ten."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def _tasks(
    live: LiveSettings, services: Services, scheduler: Scheduler, signals: Signals
) -> dict[str, Endless]:
    """What goes on beside the callers, by name."""
    return {
        "scheduler": scheduler.run,
        "replicas": services.replicas.run,
        "configuration": lambda: live.run(signals.reload, services.problems),
        "conversations": services.thinking.listener.run,
    }


def _agents(
    start: Start,
    live: LiveSettings,
    bus: Bus,
    problems: Problems,
    threads: ThreadPoolExecutor,
    device: DeviceId,
    outgoing: Callable[[str, frozenset[str]], None],
) -> Agents:
    settings = live.settings
    rules = RulesOf(live)
    around = Surroundings(
        threads=threads,
        problems=problems,
        now=time.time,
        publish=bus.publish,
        outgoing=outgoing,
        rules=rules,
        importer=TakeOver(),
        device=device,
        readers=settings.store.readers_per_agent,
        face_delay_seconds=lambda: live.settings.store.face_delay_seconds,
    )
    return Agents(
        start.state_dir,
        workspaces={name: Path(agent.workspace) for name, agent in settings.agents.items()},
        cache_kb=settings.store.cache_kb,
        around=around,
        keeping=lambda: keeping_of(live.settings),
    )


def _model(start: Start, live: LiveSettings, problems: Problems) -> LiveModel:
    around = Around(
        env=os.environ,
        state_dir=start.state_dir,
        write=atomic.write,
        clear=secrets.clear,
        problems=problems,
    )
    return build_model(lambda: model_plan(live.settings), around)


def _thinking(live: LiveSettings, model: LiveModel, agents: Agents, problems: Problems) -> Thinking:
    def rhythm() -> Rhythm:
        observe = live.settings.observe
        return Rhythm(observe.debounce_seconds, 60 * observe.episode_idle_minutes)

    return build_thinking(model, agents, rhythm, problems, LocalZone())


def _replicas(
    live: LiveSettings,
    agents: Agents,
    problems: Problems,
    device: DeviceId,
    files: ThreadPoolExecutor,
) -> Replicas:
    def account(agent: str, folder: Path, workspace: Path | None) -> Account | None:
        return account_of(live.settings, os.environ, agent, folder, workspace)

    name = live.settings.sync.device_name or platform.node() or device.id

    async def rename() -> Device:
        return Device(await asyncio.to_thread(device.renew), name[:64])

    return Replicas(
        agents,
        account=account,
        connect=partial(connect, threads=files),
        local=partial(AgentLocal, agents),
        device=Device(device.id, name[:64]),
        rename=rename,
        plan=lambda: plan_of(live.settings),
        waiting=Waiting(),
        problems=problems,
    )


def _upkeep(
    live: LiveSettings,
    agents: Agents,
    bus: Bus,
    problems: Problems,
    thinking: Thinking,
    schedules: Callable[[str, sqlite3.Connection], tuple[Schedule, ...]],
) -> Upkeep:
    return Upkeep(
        agents,
        plan=lambda: upkeep_plan(live.settings),
        publish=bus.publish,
        problems=problems,
        clock=Clock(LocalZone()),
        schedules=schedules,
        advisor=Advice(thinking.mind),
    )


def _scheduler(live: LiveSettings, services: Services, device: str) -> Scheduler:
    jobs = jobs_of(
        lambda: timing(live.settings),
        services.upkeep,
        keep_files=services.workspaces.keep,
        verify=partial(_verify, services.verifier),
        close_idle=services.agents.close_idle,
        give_back=give_back,
    )
    return Scheduler(
        services.agents,
        jobs,
        clock=Clock(LocalZone()),
        device=device,
        jitter=lambda: live.settings.upkeep.jitter_seconds,
        problems=services.problems,
    )


class RulesOf:
    """The limits by the configuration in force, made anew only when that changes."""

    def __init__(self, live: LiveSettings) -> None:
        self._live = live
        self._made_from = live.settings
        self._rules = rules_of(live.settings)

    def __call__(self) -> Rules:
        """The limits in force."""
        if self._live.settings is not self._made_from:
            self._made_from = self._live.settings
            self._rules = rules_of(self._made_from)
        return self._rules


async def _verify(verifier: Verifier, store: AgentStore) -> None:
    try:
        await verifier.verify(store.place.agent)
    except (ReplicaAway, NotFound) as error:
        raise Postponed from error


def keeping_of(settings: Settings) -> Keeping:
    """How long agents stay open, from the configuration."""
    store = settings.store
    return Keeping(store.idle_close_seconds, store.max_open_agents)
