"""Reports changed paths, by inotify.

The kernel queues an event before the call that causes it returns, so that reading the queue needs
no wait: whoever has written a file and then asks is answered from the new one.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from struct import Struct
from typing import Final

from .walker import Identity

# <sys/inotify.h>
_FLAGS: Final = os.O_NONBLOCK | os.O_CLOEXEC
_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED, _CREATE = 0x02, 0x04, 0x08, 0xC0, 0x100
_DELETE, _DELETE_SELF, _MOVE_SELF, _UNMOUNT = 0x200, 0x400, 0x800, 0x2000
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_ONLY_FOLDERS, _NO_LINKS = 0x0100_0000, 0x0200_0000
_SELF: Final = _DELETE_SELF | _MOVE_SELF | _UNMOUNT
_MASK: Final = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
    | _ONLY_FOLDERS | _NO_LINKS
)  # fmt: skip
# The watch, the mask, a cookie and the length of the name behind it.
_EVENT: Final = Struct("iIII")
_READ_BYTES: Final = 65_536
# Folders may vanish while they are found.
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class WatchLostError(Exception):
    """Changes may have been missed, or cannot be seen at all."""


class Watcher:
    """The changes in some folders since the last call of `changes`.

    Each folder is watched without its subfolders, so that no link is followed and excluded folders
    cost nothing.

    Args:
        changed: called in the event loop after a change, once until the next call of `changes`.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._queue = -1
        self._current: Mapping[str, Identity] | None = None
        self._watched: dict[str, Identity] = {}
        self._numbers: dict[str, int] = {}
        # One folder may have several paths, by mounts.
        self._paths: dict[int, set[str]] = {}

    async def changes(self, folders: Mapping[str, Identity]) -> set[str]:
        """Watch these folders from now on; return the paths that changed since the last call.

        A newly watched folder counts as changed. Only for one caller at a time.

        Raises:
            WatchLostError: changes were lost, or the system's limit of watches is reached; all
                watching has ended.
        """
        try:
            changed = self._drain()
            # They are many, and nearly always the same object.
            if folders is not self._current:
                changed |= await asyncio.to_thread(self._watch, folders)
                self._current = folders
        except OSError as error:
            self.close()
            raise WatchLostError(error.strerror) from error
        except WatchLostError:
            self.close()
            raise
        if self._queue >= 0:
            self._loop.add_reader(self._queue, self._tell)
        return changed

    def close(self) -> None:
        """Stop watching."""
        if self._queue >= 0:
            self._loop.remove_reader(self._queue)
            os.close(self._queue)
        self._queue, self._current = -1, None
        self._watched, self._numbers, self._paths = {}, {}, {}

    def _tell(self) -> None:
        # What follows is in the queue when the changes are asked for.
        self._loop.remove_reader(self._queue)
        self._changed()

    def _watch(self, folders: Mapping[str, Identity]) -> set[str]:
        """Watch these folders in place of those before; return the new ones. Blocking."""
        new = {path for path, at in folders.items() if self._watched.get(path) != at}
        for path in [path for path in self._watched if path in new or path not in folders]:
            self._leave(path)
        if new and self._queue < 0:
            self._queue = _call("inotify_init1", _FLAGS)
        for path in new:
            try:
                number = _call("inotify_add_watch", self._queue, os.fsencode(path), _MASK)
            except OSError as error:
                if error.errno in _GONE:
                    continue
                if error.errno != errno.EACCES:
                    raise
            else:
                self._numbers[path] = number
                self._paths.setdefault(number, set()).add(path)
            self._watched[path] = folders[path]
        return new

    def _leave(self, path: str) -> None:
        self._current = None
        del self._watched[path]
        number = self._numbers.pop(path, -1)
        paths = self._paths.get(number, set())
        paths.discard(path)
        if number in self._paths and not paths:
            del self._paths[number]
            # The kernel has left a folder that is gone.
            with suppress(OSError):
                _call("inotify_rm_watch", self._queue, number)

    def _drain(self) -> set[str]:
        """The paths of the queued events."""
        changed: set[str] = set()
        for number, mask, name in self._events():
            if mask & _OVERFLOW:
                raise WatchLostError("too many changes at once")
            for path in [*self._paths.get(number, ())]:
                # A name that is no text: its folder is looked at.
                whole = f"{path}/{name}" if name and name.isprintable() else path
                changed.add(whole if not mask & _SELF else path)
                if mask & _IGNORED:
                    self._leave(path)
        return changed

    def _events(self) -> Iterator[tuple[int, int, str]]:
        """The number of the watch, the mask and the name of each event in the queue."""
        while self._queue >= 0:
            try:
                data = os.read(self._queue, _READ_BYTES)
            except BlockingIOError:
                return
            place = 0
            while place < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, place)
                place += _EVENT.size + length
                name = data[place - length : place].rstrip(b"\0")
                yield number, mask, os.fsdecode(name)


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: int | bytes) -> int:
    """The result of a function of the C library.

    Raises:
        OSError: as the kernel has it; `ENOSYS` where there is no inotify.
    """
    function = getattr(_library(), name, None)
    number: int = function(*arguments) if function is not None else -1
    if number < 0:
        code = ctypes.get_errno() if function is not None else errno.ENOSYS
        raise OSError(code, os.strerror(code))
    return number
