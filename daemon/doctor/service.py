"""The daemon as a process: configuration, units, lock, socket, and the problems it reports."""

from __future__ import annotations

import json
import os
import socket as sockets
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..client import ApiError
from ..errors import reason_of
from ..runtime import VERSION
from ..runtime.places import lock_holder, socket_places
from .context import UNIT, CheckResult, DeviceContext, failure, ok, warning

_SECONDS: Final = 3.0
# What the kernel has room for.
_LONGEST_PATH: Final = 107


def configuration(context: DeviceContext) -> Iterator[CheckResult]:
    """The files of the configuration have no errors."""
    if context.settings is not None:
        yield ok("no errors")
    for fault in context.faults.splitlines():
        yield failure(fault, "correct it; `thermocline config --check` looks again")


def unit(context: DeviceContext) -> Iterator[CheckResult]:
    """Systemd runs the daemon without failures."""
    path = context.system(UNIT)
    mine = _own_unit(context)
    if not path.exists() and not mine.exists():
        yield ok("not installed; `thermocline install` has systemd run the daemon")
        return
    user = [] if path.exists() else ["--user"]
    text = (mine if user else path).read_text(errors="replace")
    command = next((line for line in text.splitlines() if line.startswith("ExecStart=")), "")
    program = command.removeprefix("ExecStart=").removesuffix(" daemon").strip('"')
    again = " ".join(["thermocline", "install", *user])
    if not os.access(context.system(program.lstrip("/")), os.X_OK):
        text = f"the unit starts {program}, which is not there"
        yield failure(text, f"install the package again, then run `{again}`")
        return
    if not context.system("run/systemd/system").is_dir():
        yield ok("installed; systemd does not run here")
        return
    ask = ["systemctl", *user, "show", "thermocline.service", "-p"]
    with suppress(OSError, subprocess.TimeoutExpired):
        shown = subprocess.run(  # noqa: S603 - fixed words
            [*ask, "ActiveState,Result,NRestarts"],
            capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        properties = dict(line.partition("=")[::2] for line in shown.stdout.splitlines())
        yield from _judged(properties, " ".join(user))


def _own_unit(context: DeviceContext) -> Path:
    home = context.env.get("XDG_CONFIG_HOME") or Path(context.env.get("HOME", "/"), ".config")
    return Path(home) / "systemd/user/thermocline.service"


def _start(context: DeviceContext) -> str:
    if context.system(UNIT).exists():
        return "sudo systemctl start thermocline"
    own = _own_unit(context).exists()
    return "systemctl --user start thermocline" if own else "thermocline daemon"


def _judged(properties: dict[str, str], user: str) -> Iterator[CheckResult]:
    log = " ".join(f"journalctl {user} -u thermocline".split())
    restarts = properties.get("NRestarts", "0")
    if properties.get("ActiveState") == "failed":
        reset = " ".join(f"systemctl {user} reset-failed thermocline.service".split())
        text = f"systemd gave up after {restarts} restarts: {properties.get('Result')}"
        yield failure(text, f"`{log}` says why; then `{reset}` and start it")
    elif restarts not in ("", "0"):
        text = f"{properties.get('ActiveState')}, restarted {restarts} times after failures"
        yield warning(text, f"`{log}` says why")
    else:
        yield ok(f"{properties.get('ActiveState', 'unknown')}")


def lock(context: DeviceContext) -> Iterator[CheckResult]:
    """The process that holds the state folder is the daemon that answers."""
    path = context.state_dir / "lock"
    try:
        inode = path.stat().st_ino
        recorded = path.read_text(errors="replace")
    except FileNotFoundError:
        yield ok("free: no daemon has run here")
        return
    holder = lock_holder(inode, str(context.system("proc/locks")))
    if holder is None:
        yield ok("free")
    elif context.status is None:
        where, fix = "", f"end it with `kill {holder}`, and start it again"
        with suppress(ValueError, KeyError, TypeError):
            named = json.loads(recorded)["socket"]
            where = f", on {named}"
            if os.path.lexists(named):
                fix = f"use its socket with --socket, or end it with `kill {holder}`"
        yield failure(
            f"process {holder} ({_name_of(holder)}) holds {context.state_dir}{where}, and does not"
            f" answer at {context.socket}",
            fix,
        )
    elif holder != context.status.pid and holder > 0:
        text = f"process {holder} ({_name_of(holder)}) holds {context.state_dir}, but process"
        text += f" {context.status.pid} answers"
        yield warning(text, "the daemon that answers may have another state folder")
    else:
        yield ok(f"held by the daemon, process {holder}")


def socket(context: DeviceContext) -> Iterator[CheckResult]:
    """A daemon answers at the socket."""
    path = str(context.socket)
    if context.status is not None:
        yield ok(f"a daemon answers at {path}")
        root = os.getuid() == 0
        others = [place for place in socket_places(context.env, root=root) if place != path]
        if answering := [place for place in others if _connects(place) == ""]:
            text = f"another daemon answers at {', '.join(answering)}"
            yield warning(text, "choose one with --socket")
        return
    start = f"start it: `{_start(context)}`"
    if isinstance(context.silence, ApiError):
        yield failure(f"the daemon at {path} refuses: {context.silence}",
                      "ask its owner for a role: \"access\" in the configuration")  # fmt: skip
    elif len(os.fsencode(path)) > _LONGEST_PATH:
        text = f"{path} is longer than the {_LONGEST_PATH} bytes of a socket's path"
        yield failure(text, "choose a shorter one with --socket or socket.path")
    elif not os.path.lexists(path):
        yield failure(f"no daemon answers: {path} does not exist", start)
    elif not stat.S_ISSOCK(context.socket.lstat().st_mode):
        text = f"{path} is not a socket, and keeps the daemon from starting"
        yield failure(text, "move it away")
    elif reason := _connects(path):
        fix = start
        if reason == "permission denied":
            fix = "add yourself to its group: `sudo usermod -aG thermocline $USER`, and log in"
        elif reason == "connection refused":
            reason = "a killed daemon left it behind"
            fix = f"{start}; it replaces the socket"
        yield failure(f"no daemon answers at {path}: {reason}", fix)
    else:
        text = f"a process listens at {path} and does not answer"
        yield failure(text, "`systemctl status thermocline` says whether it starts")


def problems(context: DeviceContext) -> Iterator[CheckResult]:
    """The problems that the daemon reports, and whether its release is this one."""
    if context.status is None:
        return
    for problem in context.status.problems:
        yield CheckResult(
            "failure" if problem.lasting else "warning", problem.message, problem.hint
        )
    if context.status.version != VERSION:
        text = f"the daemon is {context.status.version}, this command {VERSION}"
        yield warning(text, "restart it: `systemctl restart thermocline`")
    elif not context.status.problems:
        yield ok("reports no problem")


def _connects(path: str) -> str:
    """Why connecting fails; "" if a process listens."""
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.settimeout(_SECONDS)
        try:
            probe.connect(path)
        except OSError as error:
            return reason_of(error)
    return ""


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "unknown"
