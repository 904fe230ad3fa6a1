"""The socket: binding it, and listening on it."""

from __future__ import annotations

import asyncio
import errno
import grp
import logging
import os
import socket
import stat
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..errors import AlreadyRunning, Conflict
from ..runtime.problems import Problems, unforeseen
from .connections import Server

_BACKLOG: Final = 512
_AT_ONCE: Final = 4
_NOT_ACCEPTED: Final = "not_accepted"
# The same as in asyncio.
_EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_log = logging.getLogger(__name__)


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
    loop.set_exception_handler(partial(_failed, problems))
    server.accepted = partial(problems.clear, _NOT_ACCEPTED, "/socket")
    # Python 3.13 would remove the file when it closes, though it may be systemd's.
    keep: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
    # asyncio accepts a whole backlog at once and serves no caller meanwhile; the kernel's queue may
    # be longer.
    listening = await loop.create_unix_server(server.protocol, sock=bound, backlog=_AT_ONCE, **keep)
    bound.listen(_BACKLOG)
    return listening


def _failed(problems: Problems, _: object, context: dict[str, Any]) -> None:
    """Log an error outside any call; asyncio would log its message, which may quote a text.

    After a failure to accept a connection, asyncio listens again a second later.
    """
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in _EXHAUSTED and "socket" in context:
        problems.report(
            _NOT_ACCEPTED,
            "/socket",
            f"cannot accept connections: {os.strerror(error.errno)}",
            "close some, or raise the limit of open files (LimitNOFILE)",
        )
        return
    kind, where = ("an error", "") if error is None else unforeseen(error)
    text = "%s: %s\n%s"
    _log.error(text, context.get("message"), kind, where, extra={"action": "unhandled"})


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
