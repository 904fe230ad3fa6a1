"""Everything that can be wrong on a device: a check is a function and its line in `CHECKS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec

from ..errors import ThermoclineError
from . import machine, memories, remote, service
from .exam import Exam, Finding, Level

Check: TypeAlias = Callable[[Exam], Iterator[Finding]]

CHECKS: Final[dict[str, Check]] = {
    "configuration": service.configuration,
    "sqlite": machine.sqlite,
    "disk": machine.disk,
    "clock": machine.clock,
    "permissions": memories.permissions,
    "systemd": service.unit,
    "lock": service.lock,
    "socket": service.socket,
    "daemon": service.problems,
    "integrity": memories.integrity,
    "set aside": memories.set_aside,
    "inotify": machine.inotify,
    "watched files": memories.watched_files,
    "token": remote.token,
    "replica": remote.replica,
    "model": remote.model,
}


class Line(msgspec.Struct, frozen=True):
    """A finding of a check, as it is shown."""

    check: str
    level: Level
    message: str
    remedy: str


def examine(exam: Exam) -> Iterator[Line]:
    """Carry out all checks; of one that finds something wrong, what is well is left out."""
    for name, check in CHECKS.items():
        found: list[Finding] = []
        try:
            found.extend(check(exam))
        except (OSError, ThermoclineError) as error:
            found.append(Finding("warning", f"cannot look: {error}", "run it with sudo"))
        wrong = [finding for finding in found if finding.level != "ok"]
        for finding in wrong or found:
            yield Line(name, finding.level, finding.message, finding.remedy)
