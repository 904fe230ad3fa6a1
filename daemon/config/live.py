"""The configuration in force: reloaded on SIGHUP, when a file changes, and when it is set."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from ..errors import ConfigInvalid
from ..runtime.problems import Problems, configure
from ..runtime.service_manager import ServiceManager
from ..schemas.status import ConfigChange, ConfigChanged, ConfigPage
from .checking import dotted
from .editing import edit, keys, user_file
from .layers import layer_files
from .loading import Loaded, load
from .settings import AT_START, Json, KeyPath, Settings, at_start, leaves

# Keys that take effect at once, and keys that need a restart.
Changes: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
_log = logging.getLogger(__name__)


class LiveSettings:
    """Holds the settings in force. Readers ask for `settings` each time and do not keep it.

    They are `loaded`, and read again from `env`, `config_file` and `sets`.
    """

    def __init__(
        self,
        loaded: Loaded,
        env: Mapping[str, str],
        config_file: Path | None,
        sets: tuple[str, ...],
    ) -> None:
        self.settings: Settings = loaded.settings
        # The last valid configuration; keys that need a restart may differ in `settings`.
        self._loaded = loaded
        self._env = env
        self._config_file = config_file
        self._sets = sets
        self._seen = self._stamps()
        self._editing = asyncio.Lock()

    def current(self) -> Settings:
        return self.settings

    async def run(
        self, requested: asyncio.Event, problems: Problems, manager: ServiceManager
    ) -> None:
        """Reload on request, and when a file has changed, until cancelled."""
        self._warn(problems)
        while True:
            # Cancelled while the event is set, `asyncio.wait_for` of Python 3.11 would not end.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.config.check_seconds):
                    await requested.wait()
            stamps = self._stamps()
            if requested.is_set() or stamps != self._seen:
                requested.clear()
                self._seen = stamps
                with manager.reloading():
                    self.reload(problems)

    def reload(self, problems: Problems) -> None:
        """Apply what can change while running; keep everything if the new one has an error."""
        try:
            loaded = load(self._env, self._config_file, self._sets)
        except ConfigInvalid as error:
            problems.report(
                "config_invalid",
                "/configuration",
                f"the changed configuration has errors and was not applied: {error.message}",
                "fix the file; the previous values stay in force",
            )
            return
        self._take_over(loaded, problems)

    def page(self) -> ConfigPage:
        """Every key of the last valid configuration, with its help and bounds. Blocking."""
        writes = user_file(self._env, self._config_file)
        files = [str(file) for file in self._loaded.files]
        return ConfigPage(keys(self._loaded), files, None if writes is None else str(writes))

    async def edit(self, change: ConfigChange, problems: Problems) -> ConfigChanged:
        """Change the user's layer, durably, and apply it at once; raises as `editing.edit`."""
        async with self._editing:
            file, loaded = await asyncio.to_thread(
                edit, change, self._env, self._config_file, self._sets
            )
            self._seen = self._stamps()
            applied, needs_restart = self._take_over(loaded, problems)
            return ConfigChanged(str(file), applied, needs_restart)

    def _take_over(self, loaded: Loaded, problems: Problems) -> Changes:
        problems.clear("config_invalid", "/configuration")
        self._loaded = loaded
        self._warn(problems)
        applied, needs_restart = changed(self.settings, loaded.settings)
        self.settings = running(self.settings, loaded.settings)
        configure(self.settings.log.level, self.settings.log.format)
        if applied:
            _log.info("took over: %s", ", ".join(applied), extra={"action": "config_reloaded"})
        text = f"changed, but in force only after a restart: {', '.join(needs_restart)}"
        problems.set(
            "restart_needed",
            "/configuration",
            text if needs_restart else None,
            "restart the daemon",
            lasting=False,
        )
        return applied, needs_restart

    def _warn(self, problems: Problems) -> None:
        problems.set(
            "config_without_effect",
            "/configuration",
            "; ".join(map(str, self._loaded.warnings)) or None,
            "remove these keys, or correct their names",
            lasting=False,
        )

    def _stamps(self) -> dict[Path, tuple[int, int, int] | None]:
        return {file: _stamp(file) for file in layer_files(self._env, self._config_file)}


def changed(old: Settings, new: Settings) -> Changes:
    """The dotted keys that differ, in the order of `new`, removed keys last."""
    before, after = _values(old), _values(new)
    paths = [
        path
        for path in {**after, **before}
        # A missing key differs from a null.
        if (path in before, before.get(path)) != (path in after, after.get(path))
    ]
    return (
        tuple(dotted(path) for path in paths if not at_start(path)),
        tuple(dotted(path) for path in paths if at_start(path)),
    )


def running(old: Settings, new: Settings) -> Settings:
    """The new settings in force: `new`, with the values of `old` for keys that need a restart.

    Comparing the next reload with this result names the waiting keys again.
    """
    sections = {}
    for name, names in AT_START.items():
        section = getattr(old, name)
        if names is not None:
            values = {key: getattr(section, key) for key in names}
            section = msgspec.structs.replace(getattr(new, name), **values)
        sections[name] = section
    return msgspec.structs.replace(new, **sections)


def _values(settings: Settings) -> dict[KeyPath, Json]:
    return {path: value for path, value in leaves(settings) if value != {}}


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
