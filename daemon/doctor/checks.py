"""All checks of a device: each is a function and its line in `CHECKS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec

from . import machine, memories, remote, service
from .exam import Exam, Level, Symptom

Check: TypeAlias = Callable[[Exam], Iterator[Symptom]]

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
    """A finding of a check, for display."""

    check: str
    level: Level
    message: str
    remedy: str


def examine(exam: Exam) -> Iterator[Line]:
    """Run all checks; for a check that finds a fault, its `ok` findings are left out."""
    for name, check in CHECKS.items():
        found: list[Symptom] = []
        try:
            found.extend(check(exam))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            text = f"cannot look at {error.filename}: {reason}"
            found.append(Symptom("warning", text, "run it as the daemon's user, or with sudo"))
        except Exception as error:  # noqa: BLE001 - the other checks still run
            text = f"the check itself failed: {type(error).__name__}: {error}"
            found.append(Symptom("warning", text, "this is a bug: report it"))
        wrong = [finding for finding in found if finding.level != "ok"]
        for finding in wrong or found:
            yield Line(name, finding.level, finding.message, finding.remedy)
