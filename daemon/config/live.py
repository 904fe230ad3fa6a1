"""The configuration in force: read again when a file changes, when SIGHUP asks, when it is set."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ..errors import ConfigInvalid
from ..runtime.log import set_level
from ..runtime.problems import Problems
from .editing import Key, Wish, edit, keys
from .faults import dotted
from .kinds import Json, KeyPath
from .layers import layer_files
from .loading import Loaded, load
from .settings import Settings, leaves

_log = logging.getLogger(__name__)
# Bound, opened or sized once, at the start. All other keys are looked up whenever they count.
AT_START: Final = {
    "agent_id": None,
    "agents": None,
    "socket": ("path", "mode", "group", "max_connections", "max_body_bytes"),
    "store": ("readers_per_agent", "cache_kb"),
    "sync": ("device_name",),
}


class Change(msgspec.Struct, frozen=True):
    """The dotted keys in which two configurations differ, by when they take effect."""

    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]


class LiveSettings:
    """Holds the settings in force. Readers ask for `settings` each time and keep none of it.

    Args:
        loaded: what the daemon started with.
        env, config_file, sets: where that came from, to read it again.
    """

    def __init__(
        self,
        loaded: Loaded,
        env: Mapping[str, str],
        config_file: Path | None,
        sets: tuple[str, ...],
    ) -> None:
        self.settings: Settings = loaded.settings
        self._env = env
        self._config_file = config_file
        self._sets = sets
        self._seen = self._stamps()
        self._editing = asyncio.Lock()

    def current(self) -> Settings:
        """The settings in force, for those who take a function."""
        return self.settings

    async def run(self, asked: asyncio.Event, problems: Problems) -> None:
        """Reload when asked, and when a file has changed, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asked.wait(), self.settings.config.check_seconds)
            stamps = self._stamps()
            if asked.is_set() or stamps != self._seen:
                asked.clear()
                self._seen = stamps
                self.reload(problems)

    def reload(self, problems: Problems) -> None:
        """Take over what can change while running; keep everything if the new has a fault."""
        try:
            loaded = load(self._env, self._config_file, self._sets)
        except ConfigInvalid as error:
            problems.report(
                "config_invalid",
                "/configuration",
                f"the changed configuration has faults and was not taken over: {error.message}",
                "fix the file; the previous values stay in force",
            )
            return
        self._take_over(loaded, problems)

    def keys(self) -> list[Key]:
        """Every key as the files have it now, with its help and bounds. Blocking.

        Raises:
            ConfigInvalid: the files have faults.
        """
        return keys(load(self._env, self._config_file, self._sets))

    async def edit(self, wish: Wish, problems: Problems) -> tuple[Path, Change]:
        """Change the user's layer, durably, and take it over at once.

        Returns:
            The file that was written, and what changed.

        Raises:
            ConfigInvalid: anything has a fault; nothing was written.
            OSError: the disk refused; nothing was written.
        """
        async with self._editing:
            file, loaded = await asyncio.to_thread(
                edit, wish, self._env, self._config_file, self._sets
            )
            self._seen = self._stamps()
            return file, self._take_over(loaded, problems)

    def _take_over(self, loaded: Loaded, problems: Problems) -> Change:
        problems.clear("config_invalid", "/configuration")
        change = changed(self.settings, loaded.settings)
        self.settings = running(self.settings, loaded.settings)
        set_level(self.settings.log.level)
        if change.applied:
            said = ", ".join(change.applied)
            _log.info("took over: %s", said, extra={"action": "config_reloaded"})
        if change.needs_restart:
            problems.report(
                "restart_needed",
                "/configuration",
                f"changed, but in force only after a restart: {', '.join(change.needs_restart)}",
                "restart the daemon",
                lasting=False,
            )
        else:
            problems.clear("restart_needed", "/configuration")
        return change

    def _stamps(self) -> dict[Path, tuple[int, int, int] | None]:
        return {file: _stamp(file) for file in layer_files(self._env, self._config_file)}


def changed(old: Settings, new: Settings) -> Change:
    """What differs between two configurations, in the order of `new`, removed keys last."""
    before, after = _values(old), _values(new)
    paths = [
        path
        for path in {**after, **before}
        # None is a value: a key that one of them lacks differs from one that is null.
        if (path in before, before.get(path)) != (path in after, after.get(path))
    ]
    return Change(
        tuple(dotted(path) for path in paths if not _at_start(path)),
        tuple(dotted(path) for path in paths if _at_start(path)),
    )


def running(old: Settings, new: Settings) -> Settings:
    """What holds from now on: `new`, except that what needs a restart is as in `old`.

    Compare the next reload with the result, and what waits for a restart is named again.
    """
    kept = {}
    for name, names in AT_START.items():
        section = getattr(old, name)
        if names is not None:
            values = {key: getattr(section, key) for key in names}
            section = msgspec.structs.replace(getattr(new, name), **values)
        kept[name] = section
    return msgspec.structs.replace(new, **kept)


def _values(settings: Settings) -> dict[KeyPath, Json]:
    return {path: value for path, value in leaves(settings) if value != {}}


def _at_start(path: KeyPath) -> bool:
    names = AT_START.get(path[0], ())
    return names is None or path[1] in names


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
