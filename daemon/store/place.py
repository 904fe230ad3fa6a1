"""Where an agent's memory is, and what all memories share with the daemon around them."""

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
    """Where one agent's memory is, and all that opening it needs to know."""

    agent: str
    folder: Path
    workspace: Path | None
    cache_kb: int

    @property
    def database(self) -> Path:
        """The file that is the truth."""
        return self.folder / FILE_NAME

    @property
    def markdown(self) -> Path:
        """MEMORY.md: in the workspace, where an OpenClaw agent looks for it, if there is one."""
        if self.workspace is None:
            return self.folder / documents.MARKDOWN_FILE
        name = "MEMORY.md" if self.agent == "default" else f"MEMORY-{self.agent}.md"
        return self.workspace / name


class Importer(Protocol):
    """Reads what other tools, earlier runs or a damaged database have left."""

    def is_there(self, place: Place) -> bool:
        """Whether there are files of a memory to take over, in the folder or the workspace."""

    def take_over(self, tx: Transaction, place: Place, damaged: Path | None) -> dict[str, Any]:
        """Apply all that can be read; return a report of what was, and of what could not be.

        Args:
            tx: of the new database.
            place: where the files are.
            damaged: a database that cannot be opened any more.
        """


class Surroundings(msgspec.Struct, frozen=True):
    """What every agent's store shares with the daemon around it.

    Attributes:
        since: when the daemon started. A database that was read as a whole only before is read
            again when it is opened: a disk may have changed it meanwhile.
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
