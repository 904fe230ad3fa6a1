"""The models' process as a child of the daemon: start, messages, end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from . import wire
from .failures import CallFailed

# The variables that the process inherits: for programs, certificates and proxies, never keys.
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
}
_LEAVING_SECONDS: Final = 3.0
# The time from the end of its output to its exit.
_ENDING_SECONDS: Final = 1.0


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of the process: what it inherits from `env`, and its libraries' settings."""
    return {name: env[name] for name in sorted(_PASSED_ON & env.keys())} | _OURS


class Child:
    """A running process, and its unanswered requests.

    Attributes:
        pid: its process id.
        version: the version of litellm, once it is loaded.
        answered: the number of answered requests.
        setup: the last setup sent to it.
    """

    def __init__(self, process: asyncio.subprocess.Process, setup: wire.Setup) -> None:
        loop = asyncio.get_running_loop()
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._in, self._out = process, process.stdin, process.stdout
        self._waiting: dict[int, asyncio.Future[wire.Answered]] = {}
        self._ready: asyncio.Future[None] = loop.create_future()
        self._loaded: asyncio.Future[str] | None = None
        self._ended = asyncio.Event()
        self._leaving = False
        self._reading = asyncio.create_task(self._read(), name="model")
        self.pid = process.pid
        self.version: str | None = None
        self.answered = 0
        self.setup = setup

    @classmethod
    async def start(
        cls, command: Sequence[str], env: Mapping[str, str], setup: wire.Setup, seconds: float
    ) -> Child:
        """Start the process, and wait until it is set up.

        Raises:
            CallFailed: it cannot be started, or is not ready within `seconds`.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment(env),
                cwd="/",
                # Ctrl-C in a terminal must not reach it.
                start_new_session=True,
                limit=wire.LONGEST_LINE,
            )
        except OSError as error:
            raise CallFailed("died", f"cannot start the models' process: {error}") from error
        child = cls(process, setup)
        try:
            async with asyncio.timeout(seconds):
                await child.tell(setup)
                await asyncio.shield(child._ready)
        except TimeoutError:
            await child.leave(at_once=True)
            raise CallFailed(
                "starting", f"the models' process was not ready in {seconds:.0f} s"
            ) from None
        except BaseException:
            await child.leave(at_once=True)
            raise
        return child

    @property
    def ended(self) -> bool:
        """Whether it has ended, or was told to end."""
        return self._leaving or self._ended.is_set()

    @property
    def died(self) -> bool:
        """Whether it ended by itself."""
        return self._ended.is_set() and not self._leaving

    @property
    def busy(self) -> bool:
        """Whether a request is running."""
        return bool(self._waiting)

    async def load(self, seconds: float) -> str:
        """Import litellm in the process, once; return its version.

        Raises:
            CallFailed: litellm is not installed, or was not imported within `seconds`.
        """
        if self._loaded is None:
            self._loaded = asyncio.get_running_loop().create_future()
            await self.tell(wire.Load())
        try:
            return await asyncio.wait_for(asyncio.shield(self._loaded), seconds)
        except TimeoutError:
            raise CallFailed("starting", f"litellm was not loaded in {seconds:.0f} s") from None

    async def tell(self, message: wire.ToWorker) -> None:
        """Send a message.

        Raises:
            CallFailed: the process has ended.
        """
        if isinstance(message, wire.Setup):
            self.setup = message
        try:
            self._in.write(wire.line(message))
            await self._in.drain()
        except (OSError, RuntimeError):
            # The exit code is only known after its exit.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _LEAVING_SECONDS)
            raise self._gone() from None

    async def ask(self, ask: wire.Ask | wire.Window, grace: float) -> wire.Answered:
        """Send a request and wait for its answer.

        Cancelling cancels the request in the process, too. A process that does not confirm that
        within `grace` seconds hangs, and is killed.

        Raises:
            CallFailed: the model did not reply.
        """
        if self.ended:
            raise self._gone()
        answer: asyncio.Future[wire.Answered] = asyncio.get_running_loop().create_future()
        self._waiting[ask.number] = answer
        try:
            await self.tell(ask)
            return await answer
        except asyncio.CancelledError:
            self._give_up(ask.number, grace)
            raise
        except CallFailed:
            self._waiting.pop(ask.number, None)
            raise

    async def leave(self, *, at_once: bool = False) -> None:
        """End the process: close its input, then kill it if necessary. Running requests fail."""
        self._leaving = True
        self._in.close()
        if not at_once:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _LEAVING_SECONDS)
        self.kill()
        await self._ended.wait()

    def kill(self) -> None:
        """Kill the process if it is still running."""
        # asyncio's `kill` polls first, and would consume the exit code for `wait`.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _give_up(self, number: int, grace: float) -> None:
        if self.ended:
            self._waiting.pop(number, None)
            return
        with contextlib.suppress(OSError, RuntimeError):
            self._in.write(wire.line(wire.Cancel(number)))
        asyncio.get_running_loop().call_later(grace, self._must_have_answered, number)

    def _must_have_answered(self, number: int) -> None:
        if number in self._waiting:
            self.kill()

    async def _read(self) -> None:
        # A line that is too long or not a message ends the process.
        with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
            while data := await self._out.readline():
                self._take(wire.FROM_WORKER.decode(data))
        try:
            await asyncio.wait_for(self._process.wait(), _ENDING_SECONDS)
        except TimeoutError:
            self.kill()
            await self._process.wait()
        self._ended.set()
        gone = self._gone()
        for future in (self._ready, self._loaded, *self._waiting.values()):
            if future is not None and not future.done():
                future.set_exception(gone)
                # Marks the exception as retrieved.
                future.exception()
        self._waiting.clear()

    def _take(self, message: wire.FromWorker) -> None:
        match message:
            case wire.Ready():
                if not self._ready.done():
                    self._ready.set_result(None)
            case wire.LitellmLoaded(version=version, why=why):
                self._take_loaded(version, why)
            case wire.Answered(number=number) | wire.Failed(number=number):
                future = self._waiting.pop(number, None)
                self.answered += 1
                if future is None or future.done():
                    return
                if isinstance(message, wire.Answered):
                    future.set_result(message)
                else:
                    future.set_exception(
                        CallFailed(message.code, message.message, message.retry_after)
                    )

    def _take_loaded(self, version: str | None, why: str | None) -> None:
        self.version = version
        future = self._loaded
        if future is None or future.done():
            return
        if version is None:
            future.set_exception(CallFailed("unloaded", f"cannot load litellm: {why}"))
            future.exception()
            self._loaded = None
        else:
            future.set_result(version)

    def _gone(self) -> CallFailed:
        code = self._process.returncode
        how = "" if code is None else f" (exit code {code})"
        return CallFailed("died", f"the models' process has ended{how}")
