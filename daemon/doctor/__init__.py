"""Finds what is wrong on a device, and says what to do. Reads only, with or without a daemon.

Each check is a function and its line in `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec

from ..errors import reason_of
from . import device, remote, service
from .context import CheckResult, DeviceContext, warning

Check: TypeAlias = Callable[[DeviceContext], Iterator[CheckResult]]

CHECKS: Final[dict[str, Check]] = {
    "configuration": service.configuration,
    "sqlite": device.sqlite,
    "disk": device.disk,
    "clock": device.clock,
    "permissions": device.permissions,
    "systemd": service.unit,
    "lock": service.lock,
    "socket": service.socket,
    "daemon": service.problems,
    "integrity": device.integrity,
    "set aside": device.set_aside,
    "inotify": device.inotify,
    "watched files": device.watched_files,
    "token": remote.token,
    "replica": remote.replica,
    "model": remote.model,
    "encoder": remote.encoder,
}


def examine(context: DeviceContext) -> Iterator[CheckResult]:
    """Run all checks; for a check that finds a fault, its `ok` findings are left out."""
    for name, check in CHECKS.items():
        findings: list[CheckResult] = []
        try:
            findings.extend(check(context))
        except OSError as error:
            text = f"cannot look at {error.filename}: {reason_of(error)}"
            findings.append(warning(text, "run it as the daemon's user, or with sudo"))
        except Exception as error:  # noqa: BLE001 - the other checks still run
            text = f"the check itself failed: {type(error).__name__}: {error}"
            findings.append(warning(text, "this is a bug: report it"))
        wrong = [finding for finding in findings if finding.level != "ok"]
        for finding in wrong or findings:
            yield msgspec.structs.replace(finding, check=name)
