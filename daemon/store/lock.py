"""The lock of a state folder: one daemon for each."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from ..errors import AlreadyRunning


class StateLock:
    """An exclusive `flock` on `<state-dir>/lock`, held from construction to `close`.

    The kernel releases it when the process ends, however it ends.

    Raises:
        AlreadyRunning: another process holds it; the message says which.
    """

    def __init__(self, state_dir: Path, socket: Path) -> None:
        self._file = _open(state_dir / "lock")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._holder()
            self._file.close()
            raise AlreadyRunning(
                f"cannot use {state_dir}: {holder}",
                hint="use that one, end it, or start this one with another --state-dir",
            ) from None
        self._write(socket)

    def _write(self, socket: Path) -> None:
        text = json.dumps({"pid": os.getpid(), "socket": str(socket), "since": int(time.time())})
        # Informational: a full or read-only disk must not prevent reading the memory.
        with contextlib.suppress(OSError):
            os.ftruncate(self._file.fileno(), 0)
            os.write(self._file.fileno(), text.encode())

    def _holder(self) -> str:
        self._file.seek(0)
        try:
            found = json.loads(self._file.read())
            since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found["since"]))
            return f"process {found['pid']} holds it since {since}, on {found['socket']}"
        except (ValueError, KeyError, TypeError):
            return "another process holds it"

    def close(self) -> None:
        """Release the folder."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _open(path: Path) -> TextIO:
    try:
        return path.open("a+", encoding="utf-8")
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        return path.open(encoding="utf-8")
