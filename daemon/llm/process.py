"""A child process of the daemon that answers requests: the models' and the rules'.

Requests and answers are lines of JSON over pipes, each with a number (`wire.py` has the side of the
process). The process starts with the first request and ends when it is idle. If it dies, its
requests fail; the next request starts it again, after a pause if it keeps dying without an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from .failures import CallFailed
from .wire import Cancel, Reply, line

T = TypeVar("T")
# The variables that a process inherits: for programs, certificates and proxies, never keys.
_PASSED_ON: Final = frozenset(
    {
        *("PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
        *("LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    }
)
_OURS: Final = {
    # Prices and headers come from the package, not from the network.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
    # No `.env` file is searched for.
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
    "LITELLM_DISABLE_BUG_REPORT_LINK": "true",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "NETRC": os.devnull,
    "PYTHONUNBUFFERED": "1",
    # One thread each: static models are small, and the processor is not theirs.
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_STOPPING: Final = "the daemon is stopping"
_LEAVING_SECONDS: Final = 3.0
# The time from the end of its output to its exit.
_ENDING_SECONDS: Final = 1.0
# The pause after a second crash in a row; each further crash doubles it.
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 60.0


class Timeouts(msgspec.Struct, frozen=True):
    """The timeouts of a process, in seconds."""

    start: float = 20.0  # for its start
    load: float = 90.0  # for importing litellm, which takes long on a small device
    # For confirming the cancellation of a request; otherwise it counts as hanging, and is killed.
    # 0: a cancellation kills it at once.
    grace: float = 5.0


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process: what it inherits from `env`, and its libraries' settings."""
    return {name: env[name] for name in sorted(_PASSED_ON & env.keys())} | _OURS


class ChildProcess:
    """Starts the process on demand, passes requests to it, and ends it.

    Messages call it `name`. It inherits a part of the daemon's environment `env`, ends after
    `idle_seconds()` without a request unless it `stays()`, and answers in lines of at most
    `longest_line` bytes.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        idle_seconds: Callable[[], float],
        timeouts: Timeouts,
        longest_line: int,
        *,
        stays: Callable[[], bool] = lambda: False,
    ) -> None:
        self.timeouts = timeouts
        self.starts = 0  # how often it was started
        self._name = name
        self._command = command
        self._env = env
        self._idle_seconds = idle_seconds
        self._longest_line = longest_line
        self._stays = stays
        self._running: _Running | None = None
        self._starting: asyncio.Task[_Running] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._idle: asyncio.TimerHandle | None = None
        self._users = 0
        self._numbers = 0
        self._deaths = 0
        self._crashes = 0
        self._not_before = 0.0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        self._note_death()
        return self._running.pid if self._running is not None else None

    @property
    def busy(self) -> bool:
        return self._running is not None and bool(self._running.waiting)

    @property
    def memory_bytes(self) -> int:
        """Its resident memory; 0 while it does not run."""
        with contextlib.suppress(OSError):
            pages = Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1]
            return int(pages) * mmap.PAGESIZE
        return 0

    @property
    def deaths(self) -> int:
        """How often it ended unexpectedly."""
        self._note_death()
        return self._deaths

    async def ready(self) -> None:
        """Start the process if needed, else `CallFailed`. Cancelling does not stop the start."""
        with self._in_use():
            await self._started()

    async def ask(self, request: msgspec.Struct, kind: type[T], *, proves_life: bool = True) -> T:
        """Send a request, with a number of its own, and return the value of its answer.

        Cancelling cancels the request in the process too. `request` has a field `number`; `kind` is
        the type of the value. A process that answers one which `proves_life` is not about to crash
        again. `CallFailed`: the process died, or its answer is a failure.
        """
        with self._in_use():
            running = await self._started()
            self._numbers += 1
            try:
                value = await running.ask(self._numbers, request, self.timeouts.grace)
            except asyncio.CancelledError:
                if not self.timeouts.grace:
                    self._stop(at_once=True)
                raise
            if proves_life:
                running.answered, self._crashes = True, 0
        try:
            return msgspec.json.decode(value, type=kind)
        except msgspec.MsgspecError as error:
            raise CallFailed("nonsense", f"{self._name} sent an unknown answer") from error

    async def close(self) -> None:
        """End the process and fail its requests; it is not restarted."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._running is not None:
            await self._running.leave(at_once=not self.timeouts.grace)
        await asyncio.gather(*self._leaving, return_exceptions=True)

    async def _started(self) -> _Running:
        if self._closed:
            raise CallFailed("died", _STOPPING)
        self._note_death()
        if self._starting is None and self._running is not None and not self._running.ended:
            return self._running
        if self._starting is None:
            pause = self._not_before - time.monotonic()
            if pause > 0:
                raise CallFailed(
                    "resting", f"{self._name} keeps ending; again in {pause:.0f} s", pause
                )
            self._starting = asyncio.create_task(self._start(), name=self._name)
            self._starting.add_done_callback(self._note_start)
        starting = self._starting
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            if starting.cancelled():  # by `close`
                raise CallFailed("died", _STOPPING) from None
            raise

    async def _start(self) -> _Running:
        self.starts += 1
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment(self._env),
                cwd="/",
                # Ctrl-C in a terminal must not reach it.
                start_new_session=True,
                limit=self._longest_line,
            )
        except OSError as error:
            raise CallFailed("died", f"cannot start {self._name}: {error}") from error
        running = self._running = _Running(self._name, process)
        try:
            async with asyncio.timeout(self.timeouts.start):
                await asyncio.shield(running.ready)
        except BaseException as error:
            self._running = None
            await running.leave(at_once=True)
            if isinstance(error, TimeoutError):
                why = f"{self._name} was not ready in {self.timeouts.start:.0f} s"
                raise CallFailed("starting", why) from None
            raise
        return running

    def _note_start(self, task: asyncio.Task[_Running]) -> None:
        self._starting = None
        if not task.cancelled() and task.exception() is not None:
            self._count_death()

    def _note_death(self) -> None:
        if self._starting is None and self._running is not None and self._running.died:
            self._crashes = 0 if self._running.answered else self._crashes
            self._running = None
            self._count_death()

    def _count_death(self) -> None:
        self._deaths += 1
        self._crashes += 1
        if self._crashes > 1:
            pause = _FIRST_PAUSE_SECONDS * 2 ** min(self._crashes - 2, 10)
            self._not_before = time.monotonic() + min(pause, _LONGEST_PAUSE_SECONDS)

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """The process does not end as idle meanwhile."""
        self._users += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        try:
            yield
        finally:
            self._users -= 1
            if not self._users and not self._closed:
                self._end_when_idle()

    def _end_when_idle(self) -> None:
        def idle() -> None:
            if self._stays():
                self._end_when_idle()
            else:
                self._stop()

        self._idle = asyncio.get_running_loop().call_later(self._idle_seconds(), idle)

    def _stop(self, *, at_once: bool = False) -> None:
        running, self._running = self._running, None
        if running is not None and not running.ended:
            task = asyncio.create_task(running.leave(at_once=at_once), name=f"{self._name} ends")
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)


class _Running:
    """A running process."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._name = name
        self._process, self._in, self._out = process, process.stdin, process.stdout
        self._ended = asyncio.Event()
        self._leaving = False
        self.pid = process.pid
        # Done when it has started.
        self.ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # Its unanswered requests, by number.
        self.waiting: dict[int, asyncio.Future[Any]] = {0: self.ready}
        self.answered = False  # whether it has answered a request
        self._reading = asyncio.create_task(self._read(), name=name)

    @property
    def ended(self) -> bool:
        """Whether it has ended, or is about to because it was asked to."""
        return self._leaving or self._ended.is_set()

    @property
    def died(self) -> bool:
        """Whether it ended by itself."""
        return self._ended.is_set() and not self._leaving

    async def ask(self, number: int, request: msgspec.Struct, grace: float) -> msgspec.Raw:
        """Send a request and wait for the value of its answer; see `ChildProcess.ask`."""
        if self.ended:
            raise self._gone()
        answer: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        try:
            self._in.write(line(msgspec.structs.replace(request, number=number)))
            await self._in.drain()
            return await answer
        except (OSError, RuntimeError):
            # The exit code is only known after its exit.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _LEAVING_SECONDS)
            self.waiting.pop(number, None)
            raise self._gone() from None
        except asyncio.CancelledError:
            self._cancel(number, grace)
            raise

    async def leave(self, *, at_once: bool = False) -> None:
        """End the process: close its input, then kill it if necessary. Running requests fail."""
        self._leaving = True
        self._in.close()
        if not at_once:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _LEAVING_SECONDS)
        self._kill()
        await self._ended.wait()

    def _kill(self) -> None:
        # asyncio's `kill` polls first, and would consume the exit code for `wait`.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _cancel(self, number: int, grace: float) -> None:
        if self.ended:
            self.waiting.pop(number, None)
        elif grace:
            with contextlib.suppress(OSError, RuntimeError):
                self._in.write(line(Cancel(number)))
            loop = asyncio.get_running_loop()
            loop.call_later(grace, lambda: self._kill() if number in self.waiting else None)

    async def _read(self) -> None:
        # A line that is too long or not an answer ends the process.
        with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
            while data := await self._out.readline():
                reply = msgspec.json.decode(data, type=Reply)
                future = self.waiting.pop(reply.number, None)
                if future is None or future.done():
                    continue
                if (failure := reply.failure) is None:
                    future.set_result(reply.value)
                else:
                    future.set_exception(CallFailed(*msgspec.structs.astuple(failure)))
        try:
            await asyncio.wait_for(self._process.wait(), _ENDING_SECONDS)
        except TimeoutError:
            self._kill()
            await self._process.wait()
        self._ended.set()
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(self._gone())
                # Marks the exception as retrieved.
                future.exception()
        self.waiting.clear()

    def _gone(self) -> CallFailed:
        code = self._process.returncode
        how = "" if code is None else f" (exit code {code})"
        return CallFailed("died", f"{self._name} has ended{how}")
