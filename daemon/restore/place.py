"""The place of a restored memory: it is prepared beside it, and swapped in when complete.

Nothing in the place changes before the swap. The new folder is first renamed to a name that marks
it as complete; then the existing memory is set aside, and the new folder takes the place. A kill
between these renames is repaired by `finish`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from ..errors import AlreadyRunning, Conflict
from ..memory.checks import check_agent, is_agent
from ..store import atomic
from ..store.device import DeviceId
from ..store.lock import StateLock

_log = logging.getLogger(__name__)
WORKSPACE: Final = "memory"
# The agents that an interrupted restore of several has restored, for the same command.
RUN_FILE: Final = ".restored.json"
_STAGED: Final = ".restoring"
_COMPLETE: Final = ".restored"


class Target:
    """The place of one agent in a state folder, which need not exist.

    Files named in `beside` are kept. An invalid id is refused.
    """

    def __init__(self, state_dir: Path, agent: str, beside: Collection[str]) -> None:
        self.agent = check_agent(agent)
        self.state_dir = state_dir
        self.folder = state_dir / "agents" / agent
        self.staged = self.folder.with_name(f".{agent}{_STAGED}")
        self._beside = beside

    def is_taken(self) -> bool:
        """Whether the place has anything that is not kept."""
        if not self.folder.is_dir() or self.folder.is_symlink():
            return os.path.lexists(self.folder)
        return any(path.name not in self._beside for path in self.folder.iterdir())

    def refuse_taken(self) -> None:
        """Refuse a place with a memory.

        Raises:
            Conflict: the place has a memory.
        """
        if self.is_taken():
            raise Conflict(
                f"cannot restore '{self.agent}': {self.folder} is not empty",
                hint="--replace renames what is there; --to restores elsewhere",
            )

    def free_name(self) -> Path:
        """The name under which `swap` sets the existing memory aside."""
        return atomic.free_name(self.folder, "before-restore")

    def swap(self, aside: Path) -> Path | None:
        """Put the staged folder into the place; its files are on the disk.

        What is there is set aside under the free name `aside`, which is returned if it was a
        memory.
        """
        taken = self.is_taken()
        if self.folder.is_dir():
            _copy(self.folder, self.staged, self._beside)
        for path in (self.staged, *self.staged.rglob("*")):
            _give(self.state_dir, path)
        complete = self.staged.with_suffix(_COMPLETE)
        _rename(self.staged, complete)
        if os.path.lexists(self.folder):
            _rename(self.folder, aside)
        _rename(complete, self.folder)
        if not taken and aside.exists():
            # All of it was copied.
            shutil.rmtree(aside)
        return aside if taken else None


def finish(state_dir: Path, *, resume: bool = False) -> None:
    """Finish interrupted swaps: put complete folders into their places, where these are empty.

    A place that is not empty was not set aside yet, or somebody has put it back: it stays, and so
    does the new folder, for the same command, which calls this with `resume`. To be called before a
    memory is opened, while no other process can.
    """
    agents = state_dir / "agents"
    try:
        for folder in sorted(agents.glob(f".*{_COMPLETE}")):
            agent = folder.stem[1:]
            if not is_agent(agent):
                continue
            if Target(state_dir, agent, ()).is_taken():
                _rename(folder, folder.with_suffix(_STAGED))
            else:
                _rename(folder, agents / agent)
                _log.info("finished the restore of '%s'", agent, extra={"action": "restored"})
        atomic.remove_unfinished(agents, RUN_FILE)
        if not resume:
            # From now on a restored memory is in use: the same command does not skip it.
            atomic.remove(agents / RUN_FILE)
    except OSError as error:
        _log.warning("cannot finish an interrupted restore: %s", error)


@contextlib.contextmanager
def locked(state_dir: Path, why: str) -> Iterator[None]:
    """Exclude daemons and other restores from a state folder, and finish interrupted swaps.

    The folder is made, if it is missing; a daemon that wants to start meanwhile is told `why`.

    Raises:
        AlreadyRunning: a daemon runs there.
    """
    atomic.make_folder(state_dir / "agents")
    try:
        lock = StateLock(state_dir, Path(why))
    except AlreadyRunning as error:
        raise AlreadyRunning(error.message, hint="stop it, restore, and start it again") from error
    with lock:
        _give(state_dir, state_dir / "agents")
        _give(state_dir, state_dir / "lock")
        finish(state_dir, resume=True)
        yield


def renewed(state_dir: Path) -> str:
    """A new id for this device: another device may use the old one. Blocking."""
    device = DeviceId(state_dir).renew()
    _give(state_dir, state_dir / "device.json")
    return device


def _give(state_dir: Path, path: Path) -> None:
    """Give a file restored by root to the daemon's user, the owner of the state folder."""
    if os.geteuid() == 0:
        owner = state_dir.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _rename(path: Path, target: Path) -> None:
    path.rename(target)
    atomic.sync_folder(target.parent)


def _copy(there: Path, staged: Path, names: Collection[str]) -> None:
    """Copy files durably, except those that the new folder already has."""
    for name in names:
        source, target = there / name, staged / name
        if os.path.lexists(target) or not source.exists():
            continue
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True, ignore=_special)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
    atomic.sync_tree(staged)


def _special(folder: str, names: list[str]) -> list[str]:
    """What is not a file, folder or link, and cannot be copied."""
    paths = [Path(folder, name) for name in names]
    return [
        path.name for path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())
    ]
