"""The errors of a call to the daemon.

ClientError
├── ApiError                   the daemon refused the call, and changed nothing
└── DaemonUnreachable          no daemon answers; the call had no effect
    └── AnswerLost             it was carried out or not
        └── AnswerUnreadable   it was carried out, by a daemon of another release
"""

from __future__ import annotations

import os

from ..errors import ThermoclineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ClientError(Exception):
    """A call to the daemon did not succeed."""


class ApiError(ClientError):
    """The daemon refused the call, and changed nothing.

    `code` is a stable word such as `not_found`, `message` a sentence for people, `field` the one at
    fault, and `hint` how to fix it; the last two may be None.
    """

    def __init__(
        self,
        code: str,
        message: str,
        field: str | None = None,
        hint: str | None = None,
        status: int = 400,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.hint = hint
        self.status = status

    def as_dict(self) -> dict[str, str]:
        """The inner object of the API's `{"error": …}`."""
        fields = {name: getattr(self, name) for name in ("code", "message", "field", "hint")}
        return {name: value for name, value in fields.items() if value is not None}


class DaemonUnreachable(ClientError):
    """No daemon answers at the socket `path`, for this `reason`; the call had no effect."""

    text = "no daemon answers at {path}: {reason}"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(self.text.format(path=path, reason=reason))
        self.path = path
        self.reason = reason


class AnswerLost(DaemonUnreachable):
    """The daemon got the call, but its answer did not come: it was carried out or not."""

    text = "the daemon at {path} did not answer: {reason}"
    hint = "check whether the change was made"


class AnswerUnreadable(AnswerLost):
    """The daemon acted, but this release cannot read its answer: it is of another release."""

    text = "cannot read the answer of the daemon at {path}: {reason}"
    hint = "it is of another release: restart it, or use that release's client"


def refusal(status: int, parsed: Any) -> ApiError:
    """The error that an answer with this status and body means."""
    error = parsed.get("error") if isinstance(parsed, dict) else None
    if not isinstance(error, dict):
        text = parsed.strip() if isinstance(parsed, str) else ""
        return ApiError(f"http_{status}", text or f"the daemon answered {status}", status=status)
    code, message = str(error.get("code", f"http_{status}")), str(error.get("message", ""))
    return ApiError(code, message, error.get("field"), error.get("hint"), status)


def explained(error: Exception) -> dict[str, str]:
    """An error as the API shows it: `code`, `message`, and where known `field` and `hint`."""
    if isinstance(error, (ApiError, ThermoclineError)):
        return error.as_dict()
    if isinstance(error, AnswerLost):
        return {"code": "answer_lost", "message": str(error), "hint": error.hint}
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
