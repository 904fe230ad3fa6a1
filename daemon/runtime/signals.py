"""The signals of the process: stop, stop at once, reload the configuration."""

from __future__ import annotations

import asyncio
import os
import signal


class ProcessSignals:
    """Turns signals into events of the loop.

    Attributes:
        stopping: set by the first SIGTERM or SIGINT. A second one ends the process at once;
            acknowledged changes are safe in any case.
        reload: set by SIGHUP.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stopping = asyncio.Event()
        self.reload = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self.reload.set)

    def _stop(self, number: int) -> None:
        if self.stopping.is_set():
            os._exit(128 + number)
        self.stopping.set()
