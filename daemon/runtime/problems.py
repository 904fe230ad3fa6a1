"""The current problems, each with a code, for status, health and the log; and the log itself.

The log has a line for each thing that happened, on standard error, and never a memory's content.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from ..schemas.status import Problem

_log = logging.getLogger(__name__)
_MOST: Final = 200


def fault_of(error: BaseException) -> tuple[str, str]:
    """The type of an unexpected error and its traceback, for the log.

    Its message is left out, since it may quote memories.
    """
    return type(error).__name__, "".join(traceback.format_tb(error.__traceback__))


def first_names(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first `most` names, and the number of the others."""
    more = between.replace(", ", " ") + f"and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


class Problems:
    """The current problems, by code and subject. Safe to use from several threads.

    `GET /api/status` shows them, and `GET /api/health` answers 503 while there is a lasting one.
    A notice, such as of a file that was set aside, is not lasting.

    A subject is an agent, or one of its parts as `agent/part`; `/name`, or nothing, is the
    daemon's own.
    """

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str], Problem] = {}
        # Problems that are over when their file is gone.
        self._files: dict[tuple[str, str], Path] = {}
        self._lock = threading.Lock()

    def report(
        self,
        code: str,
        subject: str,
        message: str,
        hint: str = "",
        *,
        lasting: bool = True,
        file: Path | None = None,
    ) -> None:
        """Add a problem. Reported again, it keeps the time of the first report.

        A problem with a `file` is over when somebody has removed that.
        """
        with self._lock:
            before = self._problems.get((code, subject))
            since = before.since if before else time.time()
            self._problems[code, subject] = Problem(code, message, hint, since, lasting)
            if file is not None:
                self._files[code, subject] = file
            while len(self._problems) > _MOST:
                self._problems.pop(next(iter(self._problems)))
        if before is None or before.message != message:
            _log.warning(message, extra={"action": code})

    def clear(self, code: str, subject: str) -> None:
        with self._lock:
            gone = self._problems.pop((code, subject), None)
            self._files.pop((code, subject), None)
        if gone is not None:
            _log.info("problem is over: %s", gone.message, extra={"action": f"{code}_over"})

    def set(
        self, code: str, subject: str, message: str | None, hint: str = "", *, lasting: bool = True
    ) -> None:
        """Add a problem, or remove it if there is no message."""
        if message:
            self.report(code, subject, message, hint, lasting=lasting)
        else:
            self.clear(code, subject)

    def forget(self, agent: str) -> None:
        with self._lock:
            for code, subject in list(self._problems):
                if subject.partition("/")[0] == agent:
                    del self._problems[code, subject]

    def current(self, may_read: Callable[[str], bool] = lambda _: True) -> list[Problem]:
        """The daemon's own and those of the agents that `may_read` accepts, the oldest first.

        What several agents have for one cause is one problem, with their number.
        """
        with self._lock:
            gone = [key for key, file in self._files.items() if not os.path.lexists(file)]
        for key in gone:
            self.clear(*key)
        with self._lock:
            problems = list(self._problems.items())
        alike: dict[tuple[str, ...], list[Problem]] = {}
        for (code, subject), problem in sorted(problems, key=lambda item: item[1].since):
            agent = subject.partition("/")[0]
            if not agent or may_read(agent):
                words = problem.message.replace(f"'{agent}'", "")
                alike.setdefault((code, words, problem.hint), []).append(problem)
        return [
            msgspec.structs.replace(
                first, message=f"{first.message} (and {len(more)} more like it)"
            )
            if more
            else first
            for first, *more in alike.values()
        ]


_OURS: Final = logging.getLogger("thermocline")
_TEXT: Final = "%(asctime)s %(levelname)s %(message)s"
# What systemd takes a line for that begins with it, by level: an error, a warning, ….
_PRIORITIES: Final = {
    logging.CRITICAL: "<2>",
    logging.ERROR: "<3>",
    logging.WARNING: "<4>",
    logging.INFO: "<6>",
    logging.DEBUG: "<7>",
}
# What a call of the log may say beside its text.
_FIELDS: Final = ("action", "method", "path", "agent", "status", "ms", "memory_bytes")


def configure(level: str, form: Literal["text", "json"]) -> None:
    """Log from `level` on; what libraries say, only from warnings on.

    The journal gives each line its time: there it begins with its priority instead. May be called
    again.
    """
    handler = logging.StreamHandler(sys.stderr)
    plain = _Json() if form == "json" else logging.Formatter("%(message)s" if _journal() else _TEXT)
    handler.setFormatter(_Prioritized(plain) if _journal() else plain)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    _OURS.setLevel(level.upper())


class _Json(logging.Formatter):
    """One object per line: `time`, `level`, `message`, and what else the call says."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: record.__dict__[name] for name in _FIELDS if name in record.__dict__}
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        # A file's name may have a lone surrogate, which JSON cannot carry.
        for name, value in (line | fields).items():
            text = isinstance(value, str)
            line[name] = value.encode(errors="backslashreplace").decode() if text else value
        return msgspec.json.encode(line).decode()


class _Prioritized(logging.Formatter):
    """Another format with a priority before each of its lines: the journal keeps them apart."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        priority = _PRIORITIES.get(record.levelno, "<6>")
        lines = self._inner.format(record).splitlines() or [""]
        return "\n".join(priority + line for line in lines)


def _journal() -> bool:
    named = os.environ.get("JOURNAL_STREAM", "")
    try:
        stream = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return named == f"{stream.st_dev}:{stream.st_ino}"
