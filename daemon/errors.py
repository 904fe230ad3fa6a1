"""Every error that Thermocline raises on purpose, in one tree.

    ThermoclineError
    ├── InvalidInput          the call is wrong: change it
    │   └── TooLarge          the call is beyond a limit
    ├── NotFound              what it names does not exist
    ├── Conflict              it contradicts what is there
    ├── Forbidden             the caller may not do it
    ├── ConfigInvalid         the configuration is wrong: fix the file
    ├── Unavailable           not at the moment: try again later
    │   ├── DiskFull          the disk has no room, or fails
    │   ├── ModelUnavailable  no model answers usefully: do it by rules
    │   ├── QuotaReached      the agent has as much as the configuration allows
    │   ├── ReadOnly          the disk takes no writes
    │   ├── ReplicaAway       the replica cannot be reached, or has no room
    │   ├── ShuttingDown      the daemon, or a memory, is being closed
    │   ├── TooManyRequests   the agent asks more often than the configuration allows
    │   └── TooSlow           the answer takes longer than the configuration allows
    ├── ReplicaRefused        the replica refuses, until a person fixes it
    ├── AlreadyRunning        another daemon holds the state folder
    └── StoreDamaged          a file on disk is not what was written

The branches differ by what the caller can do about them. Whatever uses the disk, a remote or a
model may raise them; a docstring names those on which a caller acts, and what holds then. This
module imports nothing of the project, so that every folder, the domain included, may raise from it.
"""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Final


class ThermoclineError(Exception):
    """Something went wrong inside the daemon.

    Attributes:
        code: a stable word for programs, part of the API.
        status: the HTTP status that carries it.
        field: the field of the request at fault, as a dotted path, where there is one.
        hint: how to fix it, if the message does not say so.
    """

    code = "internal"
    status = 500

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = hint

    def as_dict(self) -> dict[str, str]:
        """The inner object of the API's `{"error": …}`."""
        fields = {"code": self.code, "message": self.message}
        if self.field is not None:
            fields["field"] = self.field
        if self.hint is not None:
            fields["hint"] = self.hint
        return fields


class InvalidInput(ThermoclineError):
    """A value is missing, malformed or out of range; nothing was changed."""

    code = "invalid"
    status = 400


class TooLarge(InvalidInput):
    """A value or a body is beyond its limit; nothing was changed."""

    code = "too_large"
    status = 413


class NotFound(ThermoclineError):
    """The named thing does not exist."""

    code = "not_found"
    status = 404


class Conflict(ThermoclineError):
    """The change contradicts what is stored; nothing was changed."""

    code = "conflict"
    status = 409


class Forbidden(ThermoclineError):
    """The calling user has no role that allows this."""

    code = "forbidden"
    status = 403


class ConfigInvalid(ThermoclineError):
    """The configuration has faults; the message lists all of them, a line each."""

    code = "config_invalid"
    status = 500


class Unavailable(ThermoclineError):
    """It cannot be done at the moment; the same call may work later."""

    code = "unavailable"
    status = 503


class DiskFull(Unavailable):
    """The disk took no more; nothing was changed, and reads go on."""

    code = "disk_full"
    status = 507


class ReadOnly(Unavailable):
    """The disk or the file takes no writes; nothing was changed, and reads go on."""

    code = "read_only"


class ModelUnavailable(Unavailable):
    """No model is configured, reachable, affordable or usable; callers use the rules."""

    code = "model_unavailable"

    @property
    def in_full(self) -> str:
        """Why, and the way out: an answer that was made by rules has one place for both."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class QuotaReached(Unavailable):
    """The agent has as much as it may have; nothing was changed, and reads go on."""

    code = "quota_reached"
    status = 507


class TooManyRequests(Unavailable):
    """The agent has asked too often; nothing was changed.

    Attributes:
        seconds: after which the next request is taken.
    """

    code = "too_many_requests"
    status = 429

    def __init__(self, message: str, *, seconds: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.seconds = seconds


class TooSlow(Unavailable):
    """The answer would take too long, and was given up; others were served meanwhile."""

    code = "too_slow"


class ReplicaAway(Unavailable):
    """The replica cannot be reached, or not so often; nothing is lost, and it passes by itself.

    Args:
        word: the replica's own word for it, such as `offline`; `replica_offline` is the code.
    """

    def __init__(self, word: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = f"replica_{word}"


class ShuttingDown(Unavailable):
    """The daemon, or the memory of an agent, is being closed and takes no more work."""

    code = "shutting_down"


class ReplicaRefused(ThermoclineError):
    """The replica refuses until a person fixes something; nothing is lost.

    Args:
        word: the replica's own word for it, such as `unauthorized`; `replica_unauthorized` is
            the code.
    """

    status = 502

    def __init__(self, word: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = f"replica_{word}"


class AlreadyRunning(ThermoclineError):
    """Another daemon holds the state folder."""

    code = "already_running"
    status = 503


class StoreDamaged(ThermoclineError):
    """A file does not hold what was written to it."""

    code = "store_damaged"
    status = 500


# The process, or the system, may open no more files.
NO_FILES: Final = {errno.EMFILE, errno.ENFILE}
FEWER_FILES: Final = "raise the limit of open files (LimitNOFILE), or lower store.max_open_agents"


def translate_os(error: OSError, path: Path) -> Unavailable | Conflict:
    """The error of our tree that stands for one of the operating system's."""
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return ReadOnly(f"cannot use {path}: {error.strerror}", hint="make it writable")
    if error.errno in {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}:
        return Conflict(
            f"cannot use {path}: {error.strerror}", hint="something else is in its place: move it"
        )
    if error.errno in NO_FILES:
        return out_of_files(path)
    return DiskFull(
        f"cannot read or write {path}: {error.strerror}", hint="check the disk and its free space"
    )


def reason_of(error: OSError) -> str:
    """What the operating system said, as a part of a sentence."""
    return (error.strerror or str(error) or "it cannot be read").lower()


def out_of_files(path: Path) -> Unavailable:
    """The error for a file that cannot be opened because too many are."""
    return Unavailable(
        f"cannot open {path}: too many files are open",
        hint=FEWER_FILES,
    )
