"""Reports changed paths, by inotify."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .walker import Identity

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

# The polling interval of the waiting thread, which takes 0.02 % of a processor.
_STEP_MS: Final = 200
# Folders may vanish while a watch is set up.
_TRIES: Final = 10


class WatchLostError(Exception):
    """Changes may have been missed, or cannot be seen at all."""


class Watcher:
    """The changes in some folders since the last call of `look`.

    Each folder is watched without its subfolders, so that no link is followed and excluded folders
    cost nothing. `changed` is called on another thread after a change.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._watch: _Watch | None = None
        self._watched: dict[str, Identity] = {}

    def changes(self, folders: Mapping[str, Identity]) -> set[str]:
        """Watch these folders from now on; return the paths that changed since the last call.

        A newly watched folder counts as changed. Blocking; not thread-safe. `WatchLostError`:
        changes were lost, or the system's limit of watches is reached; all watching has ended.
        """
        try:
            changed = self._watch.drain() if self._watch is not None else set()
            if folders != self._watched:
                changed |= {path for path, at in folders.items() if self._watched.get(path) != at}
                # The old watch ends after the new one starts, so that no change is missed.
                new = _Watch(_begin(list(folders)), self._changed) if folders else None
                if self._watch is not None:
                    changed |= self._watch.drain()
                    self._watch.stop.set()
                self._watch, self._watched = new, dict(folders)
        except WatchLostError:
            self.close()
            raise
        return changed

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.stop.set()
        self._watch, self._watched = None, {}


class _Watch:
    """A set of watched folders, and the thread that waits for changes."""

    def __init__(self, notify: RustNotify, changed: Callable[[], None]) -> None:
        self.stop = threading.Event()
        self._notify = notify
        self._changed = changed
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._lost: RuntimeError | None = None
        threading.Thread(target=self._wait, name="file changes", daemon=True).start()

    def drain(self) -> set[str]:
        """The paths that changed since the last call; `WatchLostError` if some were lost."""
        try:
            changes = self._notify.watch(20, 1, 1, None)
        except RuntimeError as error:
            self._lost = error
            changes = "stop"
        with self._lock:
            seen, self._seen = self._seen, set()
        if self._lost is not None:
            self.stop.set()
            raise WatchLostError(str(self._lost))
        return seen if isinstance(changes, str) else seen | {path for _, path in changes}

    def _wait(self) -> None:
        changes: set[tuple[int, str]] | str = set()
        while changes != "stop":
            try:
                changes = self._notify.watch(_STEP_MS, _STEP_MS, 0, self.stop)
            except RuntimeError as error:
                self._lost, changes = error, "stop"
            if not isinstance(changes, str):
                with self._lock:
                    self._seen.update(path for _, path in changes)
            if not self.stop.is_set():
                self._changed()
        self._notify.close()


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
