"""The life of the daemon: bind, open, serve, shut down."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import shutil
import socket as sockets
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from ..client import default_socket
from ..config import Settings
from ..errors import ThermoclineError
from ..operations.status import resident_bytes
from ..runtime import atomic
from ..runtime.problems import Problems, fault_of
from ..runtime.service_manager import ProcessSignals, ServiceManager
from . import server
from .calls import Services

_log = logging.getLogger(__name__)
_PAUSE_SECONDS: Final = 30.0
# A second less than promised, for closing.
_LEAVE_SECONDS: Final = 4.0
_LEAST_SENDING_SECONDS: Final = 0.5
_LEAST_STEP_SECONDS: Final = 0.1
_CLOSING_SECONDS: Final = 5.0
_TASK_FAILED: Final = "task_failed"

Endless: TypeAlias = Callable[[], Awaitable[None]]


class Start(msgspec.Struct, frozen=True):
    """How the daemon was asked to start.

    Attributes:
        passed: the socket that systemd already listens on, at the path `socket`.
    """

    state_dir: Path
    socket: Path
    config_file: Path | None
    sets: tuple[str, ...]
    welcome: bool
    passed: sockets.socket | None = None


async def serve(
    start: Start,
    settings: Callable[[], Settings],
    services: Services,
    edge: server.Server,
    signals: ProcessSignals,
    manager: ServiceManager,
    tasks: Mapping[str, Endless],
) -> None:
    """Serve until a signal ends the daemon, then leave everything complete on the disk.

    `AlreadyRunning`: another daemon holds the socket. `edge` answers the calls with `services`;
    `tasks` run in the background, by name.
    """
    now = settings()
    bound = start.passed or server.bind(start.socket, now.socket.permissions, now.socket.group)
    listening = await server.listen(edge, bound, services.problems)
    inode = atomic.inode(start.socket)
    background = Background(services.problems, _PAUSE_SECONDS)

    def fault() -> str:
        if ended := background.ended():
            return f"the task '{ended[0]}' has ended"
        # A new start makes a new socket, unless systemd keeps it.
        gone = start.passed is None and atomic.inode(start.socket) != inode
        return f"{start.socket} is gone" if gone else ""

    def status() -> str:
        return _status(start, services)

    try:
        background.begin("service manager", lambda: manager.run(fault, status))
        for name, run in tasks.items():
            background.begin(name, run)
        await _open_usual(services, now.agent_id)
        manager.ready(status())
        ready = {"action": "ready", "memory_bytes": resident_bytes()}
        _log.info("ready on %s", start.socket, extra=ready)
        if start.welcome:
            print(_welcome_text(start.socket, default_socket(os.environ)), flush=True)
        await signals.stopping.wait()
    finally:
        manager.stopping()
        _log.info("stopping", extra={"action": "stopping"})
        listening.close()
        await _leave(settings(), services, edge, background)
        # Systemd continues to listen, and callers wait there for the next daemon.
        if start.passed is None and atomic.inode(start.socket) == inode:
            start.socket.unlink()
        _log.info("stopped", extra={"action": "stopped"})


def _status(start: Start, services: Services) -> str:
    agents, problems = len(services.agents.open_stores()), len(services.problems.current())
    text = f"serving {agents} open {'agent' if agents == 1 else 'agents'} on {start.socket}"
    if problems:
        text += f"; {problems} {'problem' if problems == 1 else 'problems'}: thermocline status"
    return text


async def _open_usual(services: Services, agent: str) -> None:
    """Open the default agent before the first call.

    A failure to open it is reported; other agents still start.
    """
    try:
        async with services.agents.use(agent, create=True):
            pass
    except (ThermoclineError, OSError) as error:
        hint = getattr(error, "hint", None) or ""
        services.problems.report("agent_trouble", agent, f"cannot open '{agent}': {error}", hint)
    services.ready.set()


async def _leave(
    settings: Settings, services: Services, edge: server.Server, background: Background
) -> None:
    """Finish running requests, send queued changes, and close everything within five seconds."""
    until = time.monotonic() + _LEAVE_SECONDS
    # A question that is still with a model is answered by the rules now.
    ended = (services.encoder.close(), services.model.close())
    answered = asyncio.gather(edge.drain(settings.socket.drain_seconds), *ended)
    await _within(until, "the last answers", answered)
    await _within(until, "background tasks", background.end())
    await _within(until, "upkeep", services.upkeep.close())
    await _within(until, "conversations", services.thinking.close())
    stores = services.agents.open_stores().values()
    await _within(until, "workspaces", services.workspaces.keep_all(stores))
    left = max(until - time.monotonic(), _LEAST_SENDING_SECONDS)
    await services.replicas.close(left)
    # Acknowledged writes are on the disk already; this completes the files.
    await _within(time.monotonic() + _CLOSING_SECONDS, "memories", services.agents.close())


async def _within(until: float, what: str, step: Awaitable[object]) -> None:
    """Run a step of the shutdown, and abandon it at its deadline."""
    try:
        async with asyncio.timeout(max(until - time.monotonic(), _LEAST_STEP_SECONDS)):
            await step
    except TimeoutError:
        _log.warning("left without waiting for %s", what, extra={"action": "left_behind"})


def _welcome_text(socket: Path, usual: str) -> str:
    """What to try in another terminal; the commands look for the daemon at `usual` by default."""
    command = _command(Path(sys.argv[0]).absolute())
    if str(socket) != usual:
        command += f" --socket {shlex.quote(str(socket))}"
    return f"""
Thermocline is running. In another terminal, try:

  {command} store "Maya's flight lands on Friday at 18:40"
  {command} retrieve "when does Maya arrive?"

Then connect your agent, so that it remembers by itself (connect --list names the others):

  {command} connect claude-code

With sync.url it replicates; {command} seal lets only your devices read the replica.
Ctrl-C stops the daemon. What it has acknowledged is on the disk.
"""


def _command(program: Path) -> str:
    if program.suffix == ".py":
        return f"{sys.executable} -m thermocline.daemon.cli.main"
    if shutil.which(program.name) == str(program):
        return program.name
    here = Path.cwd()
    return str(program.relative_to(here)) if program.is_relative_to(here) else str(program)


# Background tasks


class Background:
    """Runs background tasks, and restarts those that fail; expected errors they handle themselves.

    They restart after `pause_seconds`; a task that does not end is cancelled again after
    `again_seconds`.
    """

    def __init__(
        self, problems: Problems, pause_seconds: float, again_seconds: float = 2.0
    ) -> None:
        self._problems = problems
        self._pause_seconds = pause_seconds
        self._again_seconds = again_seconds
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, name: str, run: Endless) -> None:
        """Run a task until `end`; it must be safe to restart."""
        task = asyncio.get_running_loop().create_task(self._keep_up(name, run), name=name)
        self._tasks.append(task)

    def ended(self) -> list[str]:
        """The names of the tasks that are over, though nobody has ended them."""
        return [task.get_name() for task in self._tasks if task.done()]

    async def end(self) -> None:
        left = set(self._tasks)
        while left:
            for task in left:
                task.cancel()
            # A task that fails while it is cancelled continues, and is cancelled again.
            _, left = await asyncio.wait(left, timeout=self._again_seconds)

    async def _keep_up(self, name: str, run: Endless) -> None:
        while True:
            try:
                await run()
            except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
                self._report(name, error)
            await asyncio.sleep(self._pause_seconds)

    def _report(self, name: str, error: Exception) -> None:
        kind, where = fault_of(error)
        _log.error("'%s' failed with %s:\n%s", name, kind, where, extra={"action": _TASK_FAILED})
        self._problems.report(
            _TASK_FAILED,
            f"/{name}",
            f"the daemon's task '{name}' failed with {kind}, and is restarted",
            "this is a bug: the log has the details",
            lasting=False,
        )
