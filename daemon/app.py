"""The composition root: the daemon's parts are built here, by hand, and nowhere else."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from .api import server
from .api.access import Gate
from .api.bus import Bus
from .api.calls import Identity, Services
from .api.connections import Server
from .api.routes import all_routes
from .client import default_socket
from .config import Settings, load
from .errors import ConfigInvalid, ThermoclineError
from .heap import share_heap
from .live_settings import LiveSettings
from .log import configure
from .memory.hot import HotLimits
from .memory.scoring import Scoring
from .memory.tree import TreeLimits
from .places import default_state_dir, socket_places
from .problems import Problems
from .signals import Signals
from .store.agents import Agents, Keeping
from .store.device import device_id
from .store.engine import Surroundings
from .store.lock import StateLock
from .store.transaction import Rules
from .version import version
from .welcome import welcome_text

_log = logging.getLogger(__name__)
_READING_THREADS: Final = 4
_OPEN_FILES: Final = 16_384


class Start(msgspec.Struct, frozen=True):
    """How the daemon was asked to start."""

    state_dir: Path
    socket: Path
    config_file: Path | None
    sets: tuple[str, ...]
    welcome: bool


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
    start.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with StateLock(start.state_dir, start.socket):
        bus, problems = Bus(), Problems()
        device = device_id(start.state_dir)
        signals = Signals(asyncio.get_running_loop())
        threads = ThreadPoolExecutor(_READING_THREADS, thread_name_prefix="reader")
        agents = _agents(start, live, bus, problems, threads, device)
        services = Services(
            agents=agents,
            settings=lambda: live.settings,
            problems=problems,
            bus=bus,
            gate=Gate(lambda: live.settings.access, os.getuid()),
            identity=Identity(version(), device, str(start.state_dir), str(start.socket), started),
            connections=lambda: len(edge.connections),
            ready=asyncio.Event(),
            stopping=signals.stopping,
        )
        edge = Server(server.Dispatcher(services, all_routes()), lambda: live.settings)
        await _serve(start, live, services, edge, signals)
        threads.shutdown()


def _allow_files() -> None:
    """Raise the limit of open files as far as allowed: an open agent takes about ten."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


async def _serve(
    start: Start, live: LiveSettings, services: Services, edge: Server, signals: Signals
) -> None:
    settings = live.settings
    bound = server.bind(start.socket, settings.socket.permissions, settings.socket.group)
    listening = await server.listen(edge, bound)
    inode = start.socket.stat().st_ino
    upkeep = [
        asyncio.create_task(services.agents.run(), name="agents"),
        asyncio.create_task(live.run(signals.reload, services.problems), name="configuration"),
    ]
    # The agent that most callers mean is ready before the first of them comes.
    async with services.agents.use(settings.agent_id, create=True):
        services.ready.set()
    _log.info("ready on %s", start.socket, extra={"action": "ready"})
    if start.welcome:
        print(welcome_text(start.socket, default_socket(os.environ)), flush=True)
    try:
        await signals.stopping.wait()
    finally:
        _log.info("stopping", extra={"action": "stopping"})
        listening.close()
        edge.pre_shutdown()
        await edge.drain(live.settings.socket.drain_seconds)
        for task in upkeep:
            task.cancel()
        await asyncio.gather(*upkeep, return_exceptions=True)
        await services.agents.close()
        if start.socket.exists() and start.socket.stat().st_ino == inode:
            start.socket.unlink()
        _log.info("stopped", extra={"action": "stopped"})


def _agents(
    start: Start,
    live: LiveSettings,
    bus: Bus,
    problems: Problems,
    threads: ThreadPoolExecutor,
    device: str,
) -> Agents:
    settings = live.settings
    rules = RulesOf(live)
    around = Surroundings(
        threads=threads,
        problems=problems,
        now=time.time,
        publish=bus.publish,
        rules=rules,
        readers=settings.store.readers_per_agent,
        face_delay_seconds=lambda: live.settings.store.face_delay_seconds,
    )
    return Agents(
        start.state_dir,
        workspaces={name: Path(agent.workspace) for name, agent in settings.agents.items()},
        device=device,
        cache_kb=settings.store.cache_kb,
        around=around,
        keeping=lambda: keeping_of(live.settings),
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


def rules_of(settings: Settings) -> Rules:
    """The store's limits from the configuration."""
    hot, tree, warm = settings.hot, settings.tree, settings.warm
    return Rules(
        hot=HotLimits(hot.max_bytes, hot.max_lessons, hot.max_events, hot.max_tasks),
        tree=TreeLimits(
            max_nodes=tree.max_nodes,
            max_depth=tree.max_depth,
            max_children=tree.max_children,
            max_size_bytes=tree.max_size_bytes,
        ),
        scoring=Scoring(settings.scoring.half_life_days, settings.scoring.reinforcement_boost),
        warm_max_bytes=warm.max_kb * 1024,
        warm_retention_days=warm.retention_days,
        warm_eviction_threshold=warm.eviction_threshold,
        prune_idle_days=tree.prune_idle_days,
    )


def keeping_of(settings: Settings) -> Keeping:
    """How long agents stay open, from the configuration."""
    store = settings.store
    return Keeping(store.idle_close_seconds, store.max_open_agents, store.face_check_seconds)
