"""The log: a line for each thing that happened, on standard error. Never a memory's content."""

from __future__ import annotations

import logging
import os
import sys
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

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
