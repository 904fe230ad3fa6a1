"""The socket itself: binding it, and listening on it."""

from __future__ import annotations

import asyncio
import grp
import os
import socket
import stat
import sys
from pathlib import Path
from typing import Any, Final

from ..errors import AlreadyRunning, Conflict
from .connections import Server

_BACKLOG: Final = 512
_AT_ONCE: Final = 4


def bind(path: Path, mode: int, group: str | None) -> socket.socket:
    """Bind the socket, with its permissions in force from the first moment.

    A socket left behind by a killed daemon is replaced; a socket that answers, or a file that is
    not a socket, is not.

    Raises:
        AlreadyRunning: somebody listens there.
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


async def listen(server: Server, bound: socket.socket) -> asyncio.Server:
    """Serve what connects to `bound`."""
    loop = asyncio.get_running_loop()
    # Python 3.13 would remove the file when it closes, though it may be systemd's.
    keep: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
    # asyncio accepts a whole backlog at once and serves no caller meanwhile; the kernel's queue may
    # be longer.
    listening = await loop.create_unix_server(server.protocol, sock=bound, backlog=_AT_ONCE, **keep)
    bound.listen(_BACKLOG)
    return listening


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
