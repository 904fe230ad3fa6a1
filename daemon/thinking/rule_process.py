"""Runs the rules over long texts without delaying the daemon.

Python runs one thread at a time, so reading a long text on a thread would delay all other callers.
A separate process reads long texts instead, one at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import typing
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

import msgspec

from ..errors import ShuttingDown
from ..llm.child import environment
from .rule_worker import RuleCall

P = ParamSpec("P")
T = TypeVar("T")

COMMAND: Final = (sys.executable, "-P", "-m", "thermocline.daemon.thinking.rule_worker")
# Shorter texts take less time than the process needs to start.
_SHORT_CHARS: Final = 4_000
_IDLE_SECONDS: Final = 60.0
_LONGEST_LINE: Final = 64 << 20
_NO_ANSWER: Final = (OSError, EOFError, asyncio.LimitOverrunError, UnicodeEncodeError)


class RuleProcess:
    """Starts the process with the first long text, and ends it a minute after the last.

    Short texts are read on a thread, one at a time, unless the process is running and free.

    Args:
        idle_seconds: the time without a call after which the process ends.
        command: the command of the process.
    """

    def __init__(
        self, idle_seconds: float = _IDLE_SECONDS, command: tuple[str, ...] = COMMAND
    ) -> None:
        self._idle_seconds = idle_seconds
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._ending: set[asyncio.Task[int]] = set()
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False
        self._process_lock = asyncio.Lock()
        self._thread_lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        return self._process.pid if self._process is not None else None

    async def run(
        self, chars: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `function`; cancelling ends the computation.

        If the process cannot be started or dies, the function runs on a thread.

        Args:
            chars: the length of the texts in the arguments.
            function: a function of a module, whose arguments and value can be decoded from JSON by
                their annotations.
            *args: positional arguments.
            **kwargs: keyword arguments.

        Raises:
            ShuttingDown: `close` was called meanwhile.
        """
        free = self._process is not None and not self._process_lock.locked()
        if chars > _SHORT_CHARS or free or self._thread_lock.locked():
            async with self._process_lock:
                with contextlib.suppress(*_NO_ANSWER):
                    return await self._ask(function, args, kwargs)
                if self._closed:
                    raise ShuttingDown("the daemon is stopping")
        async with self._thread_lock:
            return await asyncio.to_thread(function, *args, **kwargs)

    async def close(self) -> None:
        """End the process; its callers get an error."""
        self._closed = True
        self._end()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _ask(
        self, function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> T:
        call = RuleCall(function.__module__, function.__qualname__, args, kwargs)
        line = msgspec.json.encode(call) + b"\n"
        if self._idle is not None:
            self._idle.cancel()
        try:
            process = self._process = self._process or await self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(line)
            await process.stdin.drain()
            answer = await process.stdout.readuntil()
        except BaseException:
            # Otherwise the result of a cancelled call would be taken for that of the next call.
            self._end()
            raise
        self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._end)
        kind = typing.get_type_hints(function)["return"]
        value: T = msgspec.json.decode(answer, type=kind)
        return value

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment(os.environ),
            cwd="/",
            start_new_session=True,
            limit=_LONGEST_LINE,
        )

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        ending = asyncio.create_task(process.wait(), name="rules end")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
