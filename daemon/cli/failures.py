"""Errors in words, as the command line and the bridge tell them."""

from __future__ import annotations

import os

from ..client.errors import AnswerLost, ApiError, DaemonUnreachable
from ..errors import ThermoclineError


def explained(error: Exception) -> dict[str, str]:
    """An error as the API shows it: `code`, `message`, and where known `field` and `hint`."""
    if isinstance(error, (ApiError, ThermoclineError)):
        return error.as_dict()
    if isinstance(error, AnswerLost):
        hint = "check whether the change was made"
        return {"code": "answer_lost", "message": str(error), "hint": hint}
    if isinstance(error, DaemonUnreachable):
        return {"code": "unreachable", "message": str(error), "hint": _way_in(error)}
    if isinstance(error, OSError):
        where = f"open {error.filename}" if error.filename else "write the result"
        return {"code": "io", "message": f"cannot {where}: {error.strerror or error}"}
    return {"code": "usage", "message": str(error)}


def _way_in(error: DaemonUnreachable) -> str:
    if isinstance(error.__cause__, PermissionError):
        return "its owner can grant access to your user or group"
    if os.path.exists("/etc/systemd/system/thermocline.service"):  # noqa: PTH110 - as fast as it is
        return '"systemctl status thermocline" or "thermocline doctor" says why'
    return 'start it with "thermocline daemon"; "thermocline doctor" says what is wrong'
