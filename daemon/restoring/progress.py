"""How a restore goes, for people: a line that is rewritten on a terminal, else one now and then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TextIO

from thermocline.sync import TryLater

from .watching import Stage

_ON_TERMINAL_SECONDS: Final = 0.1
_ELSEWHERE_SECONDS: Final = 5.0
_SAID: Final[dict[Stage, str]] = {
    "received": "comparing what came with what the replica holds",
    "checked": "moving it into its place",
}


class Progress:
    """Tells of a restore on a stream.

    Args:
        stream: usually standard error.
        clock: seconds that only go forward.
        sleep: lets some pass.
        columns: of a line that is rewritten; a longer one would leave its end behind.
    """

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        columns: int = 100,
    ) -> None:
        self._stream = stream
        self._columns = columns
        self._clock = clock
        self._sleep = sleep
        self._rewrites = stream.isatty()
        self._agent = ""
        self._rows = 0
        self._came = 0
        self._known = 0
        self._began = clock()
        self._shown = float("-inf")
        self._away = ""
        self._dirty = False

    def asking(self, url: str) -> None:
        """Say where the first question goes, which may take a while."""
        self._line(f"asking {url}")

    def stage(self, stage: Stage, agent: str) -> None:
        """Say what comes next, where it takes a while."""
        if stage == "received":
            self._line(self._counted())
        if stage in _SAID:
            self._line(f"{agent}: {_SAID[stage]}")

    def expect(self, agent: str, rows: int, known: int) -> None:
        """Begin to count."""
        self._agent, self._rows, self._came, self._known = agent, rows, known, known
        self._began = self._clock()
        if known:
            self._line(f"{agent}: going on behind the {known:,} rows that are there already")
        self._passing(self._counted())

    def came(self, rows: int) -> None:
        """Count."""
        self._came += rows
        pause = _ON_TERMINAL_SECONDS if self._rewrites else _ELSEWHERE_SECONDS
        if self._clock() - self._shown >= pause:
            self._passing(self._counted())

    def failed(self, error: TryLater, seconds: float) -> None:
        """Say why it waits."""
        self._away = error.message
        if not self._rewrites:
            self._line(self._waiting(seconds))

    async def pause(self, seconds: float) -> None:
        """Wait; on a terminal the seconds that are left are seen to pass."""
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0:
            if self._rewrites:
                self._passing(self._waiting(left))
            await self._sleep(min(1.0, left))

    def end(self) -> None:
        """Leave the line."""
        if self._dirty:
            self._stream.write("\n")
            self._stream.flush()
            self._dirty = False

    def _waiting(self, seconds: float) -> str:
        # The end may be cut off.
        return f"waiting for the replica, next try in {seconds:.0f} s: {self._away}"

    def _counted(self) -> str:
        rows = max(self._rows, self._came)
        share = 100 * self._came // rows if rows else 100
        text = f"{self._agent}: {self._came:,} of {rows:,} rows, {share} %"
        seconds = self._clock() - self._began
        fresh = self._came - self._known
        if fresh <= 0 or seconds <= 0:
            return text
        rate = fresh / seconds
        left = (rows - self._came) / rate
        return f"{text}, {rate:,.0f} rows/s, {_span(left)} left"

    def _passing(self, text: str) -> None:
        """Show what is soon out of date."""
        self._shown = self._clock()
        if self._rewrites:
            # Back to the beginning, and clear what is left of a longer line.
            self._stream.write(f"\r{text[: self._columns]}\x1b[K")
            self._stream.flush()
            self._dirty = True
        else:
            self._line(text)

    def _line(self, text: str) -> None:
        if self._rewrites:
            self._passing(text)
            self.end()
            return
        self._shown = self._clock()
        self._stream.write(f"{text}\n")
        self._stream.flush()


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
