"""The place of an agent's memory, and what all memories share with the daemon."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ..config.settings import Rules
from ..runtime.problems import Problems
from . import documents
from .database import FILE_NAME
from .device import DeviceId
from .transaction import Event, Transaction


class Place(msgspec.Struct, frozen=True):
    """The place of one agent's memory, and the settings for opening it."""

    agent: str
    folder: Path
    workspace: Path | None
    cache_kb: int

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


class Importer(Protocol):
    """Takes over the files of other tools, of earlier runs, or a damaged database."""

    def is_there(self, place: Place) -> bool:
        """Whether the folder or the workspace has files to take over."""

    def take_over(self, tx: Transaction, place: Place, damaged: Path | None) -> dict[str, Any]:
        """Apply everything readable; return a report of what was applied, and what was not.

        Args:
            tx: of the new database.
            place: where the files are.
            damaged: a database that can no longer be opened.
        """


class FailedSyncs:
    """How many syncs of the whole file system have failed, for the writers of all agents."""

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        """Count one more; on any thread, before anything else is synced there."""
        self.count += 1


class Surroundings(msgspec.Struct, frozen=True):
    """What every agent's store shares with the daemon.

    Attributes:
        since: when the daemon started. A database that was last checked before that is checked
            again when it is opened: the disk may have changed it meanwhile.
    """

    threads: Executor
    problems: Problems
    now: Callable[[], float]
    publish: Callable[[str, Event], None]
    outgoing: Callable[[str, frozenset[str]], None]
    rules: Callable[[], Rules]
    importer: Importer
    device: DeviceId
    readers: int
    face_delay_seconds: Callable[[], float]
    since: float = 0.0
    failed_syncs: FailedSyncs = msgspec.field(default_factory=FailedSyncs)
