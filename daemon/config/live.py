"""The configuration as it is in force, read again when a file changes or SIGHUP asks for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConfigInvalid
from ..runtime.log import set_level
from ..runtime.problems import Problems
from . import Loaded, Settings, changed, layer_files, load, running

_log = logging.getLogger(__name__)


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
                "mend the file; the values from before are in force",
            )
            return
        problems.clear("config_invalid", "/configuration")
        change = changed(self.settings, loaded.settings)
        self.settings = running(self.settings, loaded.settings)
        set_level(self.settings.log.level)
        self._tell(change.applied, change.needs_restart, problems)

    def _tell(
        self, applied: tuple[str, ...], needs_restart: tuple[str, ...], problems: Problems
    ) -> None:
        if applied:
            _log.info("took over: %s", ", ".join(applied), extra={"action": "config_reloaded"})
        if needs_restart:
            problems.report(
                "restart_needed",
                "/configuration",
                f"changed, but in force only after a restart: {', '.join(needs_restart)}",
                "restart the daemon",
                lasting=False,
            )
        else:
            problems.clear("restart_needed", "/configuration")

    def _stamps(self) -> dict[Path, tuple[int, int, int] | None]:
        return {file: _stamp(file) for file in layer_files(self._env, self._config_file)}


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
