"""Learns which paths change, by inotify."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .walker import Identity

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

_STEP_MS: Final = 1
# How long changes that do not end are collected before what there is counts.
_MOST_MS: Final = 20
# Folders may vanish while they are looked at.
_TRIES: Final = 10


class WatchLostError(Exception):
    """Changes may have been missed, or cannot be seen at all."""


class Watcher:
    """The changes in some folders since the last look. Blocking; for one thread.

    Each folder is watched by itself, not with what is below it: so no link is followed, and what
    is excluded costs nothing.
    """

    def __init__(self) -> None:
        self._notify: RustNotify | None = None
        self._watched: dict[str, Identity] = {}

    def look(self, folders: Mapping[str, Identity]) -> set[str]:
        """Watch these folders from now on; return the paths that have changed since the last look.

        A folder that was not watched until now counts as changed.

        Raises:
            WatchLostError: some changes cannot be told, or the system refuses to watch so much.
        """
        changed = self._told()
        if folders != self._watched:
            changed |= {path for path, at in folders.items() if self._watched.get(path) != at}
            # The old one goes on until the new one is there: nothing is missed between them.
            notify = _begin(list(folders)) if folders else None
            changed |= self._told()
            self.close()
            self._notify, self._watched = notify, dict(folders)
        return changed

    def close(self) -> None:
        """Watch nothing."""
        if self._notify is not None:
            self._notify.close()
        self._notify, self._watched = None, {}

    def _told(self) -> set[str]:
        if self._notify is None:
            return set()
        try:
            found = self._notify.watch(_MOST_MS, _STEP_MS, 1, None)
        except RuntimeError as error:
            # Such as of a name that is not valid UTF-8; the error would come back each time.
            raise WatchLostError(str(error)) from error
        return set() if isinstance(found, str) else {path for _, path in found}


def _begin(folders: list[str]) -> RustNotify:
    # Imported when there is something to watch.
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415

    for _ in range(_TRIES):
        try:
            return RustNotify(folders, False, False, 300, False, True)
        except FileNotFoundError:
            folders = [folder for folder in folders if Path(folder).is_dir()]
        except (OSError, RuntimeError) as error:
            raise WatchLostError(str(error)) from error
    raise WatchLostError("folders keep vanishing")
