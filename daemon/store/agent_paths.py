"""The state folder: its lock, this device's id, the place of each agent, and what all share."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Protocol, Self, TextIO

import msgspec

from ..config.settings import Rules
from ..errors import AlreadyRunning
from ..runtime import atomic
from ..runtime.problems import Problems
from .database.memory_database import FILE_NAME
from .database.transaction import Event, Transaction
from .records import documents


class DeviceId:
    """The id of this device, in `<state-dir>/device.json`; created, durably, if missing.

    A damaged file is set aside and a new id made: stamps stay ordered by their clock, and the old
    id only names the origin of older changes.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "device.json"
        device = self._read() if self._path.exists() else ""
        if device is None:
            atomic.set_aside(self._path, "corrupt")
        self.id = device or self.renew()

    def renew(self) -> str:
        """Take another id because another device uses this one. Blocking."""
        atomic.remove_unfinished(self._path.parent, self._path.name)
        made = secrets.token_hex(6)
        content = {"device": made, "created_at": int(time.time())}
        atomic.write(self._path, json.dumps(content).encode())
        self.id = made
        return made

    def _read(self) -> str | None:
        try:
            result = json.loads(self._path.read_bytes())
        except (ValueError, RecursionError):
            return None
        device = result.get("device") if isinstance(result, dict) else None
        return device if isinstance(device, str) and device else None


class StateLock:
    """An exclusive `flock` on `<state-dir>/lock`, held from construction to `close`.

    The kernel releases it when the process ends, however it ends.

    Raises:
        AlreadyRunning: another process holds it; the message says which.
    """

    def __init__(self, state_dir: Path, socket: Path) -> None:
        self._path = state_dir / "lock"
        self._socket = socket
        self._file = self._take()

    def retake(self) -> None:
        """Lock the folder again if somebody removed it, or the lock in it, and it is there now."""
        is_ours = atomic.inode(self._path) == os.fstat(self._file.fileno()).st_ino
        if not is_ours and self._path.parent.exists():
            removed, self._file = self._file, self._take()
            removed.close()

    def _take(self) -> TextIO:
        file = _open(self._path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with file:
                holder = _holder(file)
            raise AlreadyRunning(
                f"cannot use {self._path.parent}: {holder}",
                hint="use that one, end it, or start this one with another --state-dir",
            ) from None
        us = {"pid": os.getpid(), "socket": str(self._socket), "since": int(time.time())}
        # Informational: a full or read-only disk must not prevent reading the memory.
        with contextlib.suppress(OSError):
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), json.dumps(us).encode())
        return file

    def close(self) -> None:
        """Release the folder."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _holder(file: TextIO) -> str:
    file.seek(0)
    try:
        result = json.loads(file.read())
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(result["since"]))
        return f"process {result['pid']} holds it since {since}, on {result['socket']}"
    except (ValueError, KeyError, TypeError):
        return "another process holds it"


def _open(path: Path) -> TextIO:
    try:
        return path.open("a+", encoding="utf-8")
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        return path.open(encoding="utf-8")


class AgentPaths(msgspec.Struct, frozen=True):
    """The place of one agent's memory, and the settings for opening it."""

    agent: str
    folder: Path
    workspace: Path | None

    @property
    def database(self) -> Path:
        """The database, which is authoritative."""
        return self.folder / FILE_NAME

    @property
    def markdown(self) -> Path:
        """MEMORY.md: in the workspace, where an OpenClaw agent looks for it, if there is one."""
        if self.workspace is None:
            return self.folder / documents.MARKDOWN_FILE
        name = "MEMORY.md" if self.agent == "default" else f"MEMORY-{self.agent}.md"
        return self.workspace / name

    @property
    def pages(self) -> tuple[Path, ...]:
        """The pages that people write beside the notes: MEMORY.md and USER.md."""
        return self.markdown, self.markdown.with_name("USER.md")


class Importer(Protocol):
    """Takes over the files of other tools, of earlier runs, or a damaged database."""

    def is_there(self, place: AgentPaths) -> bool:
        """Whether the folder or the workspace has files to take over."""

    def take_over(self, tx: Transaction, place: AgentPaths, damaged: Path | None) -> dict[str, Any]:
        """Apply everything readable; return a report of what was applied, and what was not."""


class FailedSyncs:
    """How many syncs of the whole file system have failed, for the writers of all agents."""

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        """Count one more; on any thread, before anything else is synced there."""
        self.count += 1


class StoreContext(msgspec.Struct, frozen=True):
    """What every agent's store shares with the daemon."""

    threads: Executor
    problems: Problems
    now: Callable[[], float]
    publish: Callable[[str, Event], None]
    outgoing: Callable[[str, frozenset[str]], None]
    rules: Callable[[], Rules]
    importer: Importer
    device: DeviceId
    readers: int
    state_file_delay_seconds: Callable[[], float]
    # When the daemon started. A database that was last checked before that is checked again when it
    # is opened: the disk may have changed it meanwhile.
    since: float = 0.0
    failed_syncs: FailedSyncs = msgspec.field(default_factory=FailedSyncs)
