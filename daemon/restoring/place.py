"""Where a memory is restored to: made ready beside its place, and moved in when it is whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..errors import AlreadyRunning, Conflict
from ..memory.checks import check_agent
from ..store import atomic
from ..store.lock import StateLock

# What the name of a folder beside the place ends with: it is whole, and what stands in the place
# may be set aside for it; or before that, an archive was unpacked into it.
WHOLE: Final = ".whole"
UNPACKED: Final = "-"


class RestorePlace:
    """The place of one agent in a state folder.

    Nothing is changed in the place itself until `move_in`, which takes two renames. A kill
    before them leaves it as it was, and what was made ready for the next try to remove. A kill
    between them leaves it empty, with all that was there in the folder set aside: a daemon that
    starts does the second one, and the next try restores into the empty place.

    Args:
        state_dir: the folder of all agents; it need not exist.
        agent: its id, by which its folder is called.

    Raises:
        InvalidInput: the id is none.
    """

    def __init__(self, state_dir: Path, agent: str) -> None:
        self._state_dir = state_dir
        self._agents = state_dir / "agents"
        self.agent = check_agent(agent)
        self.folder = self._agents / agent

    def locked(self, why: str) -> contextlib.AbstractContextManager[None]:
        """Keep daemons and other restores from the state folder; see the function."""
        return locked(self._state_dir, why)

    def give(self, path: Path) -> None:
        """Make a file the daemon's; see the function."""
        give(self._state_dir, path)

    def is_taken(self) -> bool:
        """Whether anything is there."""
        if self.folder.is_dir() and not self.folder.is_symlink():
            return any(self.folder.iterdir())
        return os.path.lexists(self.folder)

    def refuse_taken(self, *, replace: bool) -> None:
        """Refuse a place that is not empty, unless what is there may be set aside.

        Raises:
            Conflict: it is not empty.
        """
        if not replace and self.is_taken():
            raise Conflict(
                f"cannot restore into {self.folder}: it is not empty",
                hint="--replace keeps what is there beside it; --agent-id restores to another name",
            )

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """An empty folder on the same disk; gone after the block, unless it was moved in.

        What earlier tries have left goes first.
        """
        prefix = f".{self.agent}.restoring{UNPACKED}"
        for leftover in self._agents.glob(f"{prefix}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self._agents))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def move_in(self, staging: Path) -> Path | None:
        """Put a complete folder, whose files are on the disk, into the place.

        Returns:
            Where what was there is now; None where there was nothing.
        """
        if not self.is_taken():
            self.put(staging)
            return None
        whole = self.mark_whole(staging)
        aside = self.set_aside()
        self.put(whole)
        return aside

    def mark_whole(self, staging: Path) -> Path:
        """Mark a complete folder for the place, durably; return its new name."""
        whole = staging.with_name(f"{staging.name}{WHOLE}")
        staging.rename(whole)
        atomic.sync_folder(self._agents)
        return whole

    def set_aside(self) -> Path | None:
        """Empty the place; return where what was there is now, or None where there was nothing."""
        if not self.is_taken():
            return None
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        return atomic.set_aside(self.folder, "before-restore", stamp)

    def put(self, staging: Path) -> None:
        """Put a complete folder into the place, which is empty."""
        # An empty folder in the place gives way by itself.
        staging.rename(self.folder)
        atomic.sync_folder(self._agents)


@contextlib.contextmanager
def locked(state_dir: Path, why: str) -> Iterator[None]:
    """Keep daemons and other restores from a state folder while the block runs.

    Args:
        state_dir: the folder; made, if it is not there.
        why: what a daemon that wants to start meanwhile is told.

    Raises:
        AlreadyRunning: a daemon runs there.
        OSError: the disk refuses.
    """
    agents = state_dir / "agents"
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    agents.mkdir(mode=0o700, exist_ok=True)
    try:
        lock = StateLock(state_dir, Path(why))
    except AlreadyRunning as error:
        raise AlreadyRunning(error.message, hint="stop it, restore, and start it again") from error
    with lock:
        give(state_dir, agents)
        give(state_dir, state_dir / "lock")
        yield


def give(state_dir: Path, path: Path) -> None:
    """Make a file that root restores the daemon's, whose user owns the state folder."""
    if os.geteuid() == 0:
        owner = state_dir.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
