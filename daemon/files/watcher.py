"""Reports changed paths, by inotify."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from .walker import Identity

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

# The polling interval of the waiting thread, which takes 0.03 % of a processor.
_STEP_SECONDS: Final = 0.2
# A change that is not reported after this time never is.
_LOST_SECONDS: Final = 2
_SOON_SECONDS: Final = 0.001
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
                new = _Watch(list(folders), self._changed) if folders else None
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
    """A set of watched folders, and the thread that waits for changes.

    A file without a name is watched with them: the kernel reports changes in their order, so that
    all before a change of this file are known once that is.

    Raises:
        WatchLostError: the system's limit of watches is reached.
    """

    def __init__(self, folders: list[str], changed: Callable[[], None]) -> None:
        self.stop = threading.Event()
        self._changed = changed
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._lost = ""
        self._last = os.memfd_create("changes")
        self._last_path = f"/proc/self/fd/{self._last}"
        try:
            self._notify = _begin([*folders, self._last_path])
        except WatchLostError:
            os.close(self._last)
            raise
        threading.Thread(target=self._wait, name="file changes", daemon=True).start()

    def drain(self) -> set[str]:
        """The paths that changed since the last call; `WatchLostError` if some were lost."""
        with self._lock:
            self._take()
            seen, self._seen = self._seen, set()
        return seen

    def _take(self) -> None:
        """Note all that has changed until now."""
        if self._lost:
            raise WatchLostError(self._lost)
        until = time.monotonic() + _LOST_SECONDS
        os.utime(self._last)
        while self._last_path not in self._seen:
            try:
                # Returning without a change would drop a change that comes just then.
                changes = self._notify.watch(0, 0, _LOST_SECONDS * 1_000, _Pauses())
            except RuntimeError as error:
                self._lose(str(error))
            if isinstance(changes, str) or time.monotonic() > until:
                self._lose("the system does not report changes")
            self._seen.update(path for _, path in changes)
        self._seen.remove(self._last_path)

    def _lose(self, reason: str) -> NoReturn:
        self._lost = reason
        self.stop.set()
        raise WatchLostError(reason)

    def _wait(self) -> None:
        while not self.stop.wait(_STEP_SECONDS):
            with self._lock, suppress(WatchLostError):
                self._take()
            if self._seen or self._lost:
                self._changed()
        with self._lock:
            self._notify.close()
            os.close(self._last)


class _Pauses:
    """Asked by `watch` between two looks: changes are there in 30 microseconds, or much later."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def is_set(self) -> bool:
        """Wait for a moment, if there was no change for a millisecond."""
        if time.monotonic() - self._begun > _SOON_SECONDS:
            time.sleep(_SOON_SECONDS)
        return False


def _begin(folders: list[str]) -> RustNotify:
    # Imported when there is something to watch.
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415

    for _ in range(_TRIES):
        try:
            return RustNotify(folders, False, False, 300, False, True)
        except FileNotFoundError:
            folders = [folder for folder in folders if Path(folder).exists()]
        except (OSError, RuntimeError) as error:
            raise WatchLostError(str(error)) from error
    raise WatchLostError("folders keep vanishing")
