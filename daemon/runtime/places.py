"""The default places of the state folder and the socket.

Strings, not paths: importing pathlib would take a tenth of a command's time.
"""

from __future__ import annotations

import json
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SOCKET = "thermocline.sock"
_SYSTEM = "/run/thermocline"
_USERS = "/run/user"


def default_state_dir(env: Mapping[str, str]) -> str:
    """`$STATE_DIRECTORY` of systemd (the first, if several), else the user's state folder."""
    return _first(env, "STATE_DIRECTORY") or user_state_dir(env)


def socket_places(env: Mapping[str, str], *, root: bool) -> list[str]:
    """Where the socket may be, the likeliest first: there a daemon of this environment makes it.

    `$RUNTIME_DIRECTORY` of systemd, the user's `$XDG_RUNTIME_DIR`, the system's `/run`; and for
    a user without a run-time folder, such as in a container, the state folder.
    """
    places: list[str] = []
    if service := _first(env, "RUNTIME_DIRECTORY"):
        places.append(f"{service}/{_SOCKET}")
    if runtime := env.get("XDG_RUNTIME_DIR"):
        places.append(f"{runtime}/thermocline/{_SOCKET}")
    system, state = f"{_SYSTEM}/{_SOCKET}", f"{user_state_dir(env)}/{_SOCKET}"
    return [*places, system, state] if root else [*places, state, system]


def readable_by_all(path: Path) -> bool:
    """Whether every user of the device can enter the folders on the way, and read the file."""
    try:
        reachable = all(folder.stat().st_mode & stat.S_IXOTH for folder in path.parents)
        return reachable and bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def default_socket(env: Mapping[str, str]) -> str:
    """The daemon's socket for a program with the environment `env`.

    `$THERMOCLINE_SOCKET` if set; else the first existing socket among the places where a daemon
    creates it; else the path that a daemon of this user would create. The system's daemon never
    answers in place of the user's own daemon while that starts or ends.
    """
    if named := env.get("THERMOCLINE_SOCKET"):
        return named
    root = os.getuid() == 0
    # Codex and Claude Desktop start their servers without the variable.
    places = socket_places({"XDG_RUNTIME_DIR": f"{_USERS}/{os.getuid()}", **env}, root=root)
    # A program that is a service has its own run-time folder, which is not the daemon's.
    usual = socket_places({**env, "RUNTIME_DIRECTORY": ""}, root=root)[0]
    socket = next((path for path in places if os.path.exists(path)), usual)  # noqa: PTH110
    if socket == f"{_SYSTEM}/{_SOCKET}" != usual:
        return _socket_of_holder(f"{user_state_dir(env)}/lock") or socket
    return socket


def lock_holder(inode: int, locks: str = "/proc/locks") -> int | None:
    """The process with an flock on a file; asking for the lock would disturb a daemon's start."""
    try:
        with open(locks, encoding="ascii") as lines:  # noqa: PTH123
            for line in lines:
                words = line.split()
                if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
                    return int(words[4])
    except OSError:
        pass
    return None


def _socket_of_holder(lock: str) -> str:
    """The socket of the daemon that holds a state folder; "" if none does."""
    try:
        with open(lock, encoding="utf-8") as file:  # noqa: PTH123
            if lock_holder(os.fstat(file.fileno()).st_ino) is None:
                return ""
            return str(json.loads(file.read())["socket"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def user_state_dir(env: Mapping[str, str]) -> str:
    """The state folder of a user's daemon and commands."""
    home = env.get("HOME") or "/root"
    return f"{env.get('XDG_STATE_HOME') or f'{home}/.local/state'}/thermocline"


def _first(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").partition(":")[0]
