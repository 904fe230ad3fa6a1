"""The socket: binding it, listening on it, and how many connections there may be."""

from __future__ import annotations

import asyncio
import errno
import grp
import logging
import os
import socket
import stat
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ..config.settings import Settings, Socket
from ..errors import AlreadyRunning, Conflict, Unavailable
from ..operations.access import Peer, peer_of
from ..runtime.problems import Problems, fault_of
from .connections import Handler, PeerConnection, refusal
from .fairness import FairQueue, RateLimitedLog

_BACKLOG: Final = 512
_ACCEPTED_AT_ONCE: Final = 4
_LARGE_BODIES: Final = 16
_NOT_ACCEPTED: Final = "not_accepted"
# The same as in asyncio.
_RETRY_SECONDS: Final = 1.0
_EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_log = logging.getLogger(__name__)


class OverLimitConnection(asyncio.Protocol):
    """A connection beyond the limit. Refusing it costs an answer, but no parser."""

    def __init__(self, server: Server, settings: Socket) -> None:
        self._server = server
        self._settings = settings

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the place of an idle connection, or answer why not, and close."""
        assert isinstance(transport, asyncio.Transport)
        if self._server.make_room(peer_of(transport.get_extra_info("socket"))):
            connection = self._server.connection(self._settings)
            transport.set_protocol(connection)
            connection.connection_made(transport)
            return
        self._server.mistakes.log("connection_refused", "turned connections away: too many")
        error = Unavailable(
            f"cannot take another connection: {self._settings.max_connections} are open",
            hint="close some, or raise socket.max_connections",
        )
        transport.write(refusal(error))
        transport.close()


class Server:
    """Makes connections up to the limit, and holds what they share.

    Attributes:
        accepted: called when a connection is made.
        connections: those that are open.
        stopping: whether each connection ends behind its next answer.
    """

    def __init__(
        self,
        handler: Handler,
        settings: Callable[[], Settings],
    ) -> None:
        self.handler = handler
        self.loop = asyncio.get_running_loop()
        self._settings = settings
        # Accepted, but not open yet; and how many each process has open.
        self._arriving = 0
        self._open_of: Counter[int] = Counter()
        self.accepted: Callable[[], None] = lambda: None
        self.connections: set[PeerConnection] = set()
        self.large_bodies = asyncio.Semaphore(_LARGE_BODIES)
        self.mistakes = RateLimitedLog()
        self.stopping = False
        self.turns = FairQueue(self.loop)

    def protocol(self) -> asyncio.Protocol:
        """A connection with the time-outs in force, or its refusal."""
        settings = self._settings().socket
        if len(self.connections) + self._arriving >= settings.max_connections:
            return OverLimitConnection(self, settings)
        return self.connection(settings)

    def connection(self, settings: Socket) -> PeerConnection:
        self._arriving += 1
        return PeerConnection(self, settings)

    def opened(self, connection: PeerConnection) -> None:
        self._arriving -= 1
        self.connections.add(connection)
        self._open_of[connection.peer.pid] += 1
        self.accepted()

    def lost(self, connection: PeerConnection) -> None:
        self.connections.discard(connection)
        self._open_of[connection.peer.pid] -= 1
        if not self._open_of[connection.peer.pid]:
            del self._open_of[connection.peer.pid]

    def make_room(self, newcomer: Peer) -> bool:
        """Close an idle connection of the process with the most, for a process with far fewer.

        So a process that opens many connections does not keep other processes out.
        """
        (most_of, most), *_ = self._open_of.most_common(1) or [(0, 0)]
        if self._open_of[newcomer.pid] >= most // 2:
            return False
        for connection in self.connections:
            if connection.peer.pid == most_of and connection.is_idle:
                connection.abort()
                return True
        return False

    async def drain(self, seconds: float) -> None:
        """Wait for the running requests, and close all connections; abort them after `seconds`."""
        self.stopping = True
        for connection in [*self.connections]:
            connection.close_if_idle()
        leaving = [asyncio.ensure_future(each.gone.wait()) for each in self.connections]
        if leaving:
            _, late = await asyncio.wait(leaving, timeout=seconds)
            for task in late:
                task.cancel()
        for connection in [*self.connections]:
            connection.abort()


def bind(path: Path, mode: int, group: str | None) -> socket.socket:
    """Bind the socket, with its permissions in force from the first moment.

    A socket left behind by a killed daemon is replaced; a socket that answers, or a file that is
    not a socket, is not.

    Raises:
        AlreadyRunning: another process listens there.
        Conflict: another file exists there.
    """
    if not path.parent.exists():
        path.parent.mkdir(parents=True)
        # The umask protects the memories; callers with a role must reach the socket.
        path.parent.chmod(0o755)
        _log.info("made the folder %s for the socket", path.parent, extra={"action": "socket"})
    _clear(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    previous = os.umask(0o777 & ~mode)
    try:
        bound.bind(str(path))
    except OSError as error:
        bound.close()
        raise Conflict(
            f"cannot listen on {path}: {error}", hint="choose another --socket"
        ) from error
    finally:
        os.umask(previous)
    if group is not None:
        os.chown(path, -1, int(group) if group.isdigit() else grp.getgrnam(group).gr_gid)
        path.chmod(mode)
    return bound


async def listen(server: Server, bound: socket.socket, problems: Problems) -> asyncio.Server:
    """Serve the connections to `bound`; report when no more can be accepted."""
    loop = asyncio.get_running_loop()
    retry_at = 0.0

    def failed(_: object, context: dict[str, Any]) -> None:
        nonlocal retry_at
        if _failed(problems, context):
            retry_at = loop.time() + _RETRY_SECONDS

    def accepted() -> None:
        # Those that were accepted before it failed are opened only afterwards.
        if loop.time() >= retry_at:
            problems.clear(_NOT_ACCEPTED, "/socket")

    loop.set_exception_handler(failed)
    server.accepted = accepted
    # Python 3.13 would remove the file when it closes, though it may be systemd's.
    keep: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
    # asyncio accepts a whole backlog at once and serves no caller meanwhile; the kernel's queue may
    # be longer.
    listening = await loop.create_unix_server(
        server.protocol, sock=bound, backlog=_ACCEPTED_AT_ONCE, **keep
    )
    bound.listen(_BACKLOG)
    return listening


def _failed(problems: Problems, context: dict[str, Any]) -> bool:
    """Log an error outside any call; asyncio would log its message, which may quote a text.

    True: no connection could be accepted. asyncio listens again `_RETRY_SECONDS` later.
    """
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in _EXHAUSTED and "socket" in context:
        problems.report(
            _NOT_ACCEPTED,
            "/socket",
            f"cannot accept connections: {os.strerror(error.errno)}",
            "close some, or raise the limit of open files (LimitNOFILE)",
        )
        return True
    kind, where = ("an error", "") if error is None else fault_of(error)
    text = "%s: %s\n%s"
    _log.error(text, context.get("message"), kind, where, extra={"action": "unhandled"})
    return False


def _clear(path: Path) -> None:
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise Conflict(f"cannot listen on {path}: it exists and is not a socket")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.settimeout(2.0)
        probe.connect(str(path))
    except OSError:
        path.unlink()
    else:
        raise AlreadyRunning(
            f"cannot listen on {path}: another daemon answers there",
            hint="use that one, or start this one with another --socket",
        )
    finally:
        probe.close()
