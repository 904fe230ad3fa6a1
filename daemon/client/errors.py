"""The errors of a call to the daemon.

ClientError
├── ApiError                   the daemon refused the call, and changed nothing
└── DaemonUnreachable          no daemon answers; the call had no effect
└── AnswerLost             it was carried out or not
└── AnswerUnreadable   it was carried out, by a daemon of another release
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ClientError(Exception):
    """A call to the daemon did not succeed."""


class ApiError(ClientError):
    """The daemon refused the call, and changed nothing.

    Attributes:
        code: a stable word, such as `not_found`.
        message: one sentence for people.
        field: the field at fault, where there is one.
        hint: how to fix it, if the message does not say so.
        status: the HTTP status.
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
        told = {name: getattr(self, name) for name in ("code", "message", "field", "hint")}
        return {name: value for name, value in told.items() if value is not None}


class DaemonUnreachable(ClientError):
    """No daemon answers at the socket; the call had no effect.

    Attributes:
        path: the socket's file.
        reason: what the operating system said.
    """

    text = "no daemon answers at {path}: {reason}"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(self.text.format(path=path, reason=reason))
        self.path = path
        self.reason = reason


class AnswerLost(DaemonUnreachable):
    """The daemon got the call, but its answer did not come: it was carried out or not."""

    text = "the daemon at {path} did not answer: {reason}"


class AnswerUnreadable(AnswerLost):
    """The daemon acted, but this release cannot read its answer: it is of another release."""

    text = "cannot read the answer of the daemon at {path}: {reason}"


def refusal(status: int, parsed: Any) -> ApiError:
    """The error that an answer with this status and body means."""
    error = parsed.get("error") if isinstance(parsed, dict) else None
    if not isinstance(error, dict):
        text = parsed.strip() if isinstance(parsed, str) else ""
        return ApiError(f"http_{status}", text or f"the daemon answered {status}", status=status)
    code, message = str(error.get("code", f"http_{status}")), str(error.get("message", ""))
    return ApiError(code, message, error.get("field"), error.get("hint"), status)
