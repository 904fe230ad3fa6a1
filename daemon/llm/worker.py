"""The models' process: it alone imports litellm, and runs only while it is needed.

It reads requests from standard input and writes answers to standard output, one JSON object per
line. When the input ends, because the daemon closed it or died, the process exits immediately. Keys
come with the first message, not from the environment. Output of libraries goes to standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import threading
from pathlib import Path
from typing import Final

from . import wire
from .failures import CallFailed
from .litellm_calls import LiteLlm

# Limits the memory that an endless answer can take.
_MOST_MEMORY: Final = 768 << 20
# If memory is short the kernel kills this process, not the daemon.
_FIRST_TO_GO: Final = b"800"


class Worker:
    """Answers requests, several at a time.

    Args:
        out: the file that answers are written to.
    """

    def __init__(self, out: int) -> None:
        self._out = out
        form = Path(__file__).with_name("prompts").joinpath("form.txt").read_text("utf-8")
        self._form = form.strip()
        self._models = LiteLlm(self._form)
        self._tasks: dict[int, asyncio.Task[wire.FromWorker]] = {}
        self._loading: asyncio.Task[None] | None = None
        self._set_up = False

    def take(self, message: wire.ToWorker) -> None:
        """Start handling a message."""
        match message:
            case wire.Setup():
                self._models.set_up(message)
                if not self._set_up:
                    self._set_up = True
                    self._say(wire.Ready(os.getpid()))
            case wire.Load():
                self._loading = self._loading or asyncio.create_task(self._load())
            case wire.Ask(number=number):
                self._tasks[number] = begun = asyncio.create_task(self._answer(message))
                begun.add_done_callback(lambda done: self._answered(number, done))
            case wire.Window(number=number, model=model):
                self._say(wire.Answered(number, str(self._models.window(model) or ""), "stop"))
            case wire.Cancel(number=number):
                if (task := self._tasks.get(number)) is not None:
                    task.cancel()

    async def _load(self) -> None:
        try:
            self._say(wire.LitellmLoaded(await self._models.load()))
        except Exception as error:  # noqa: BLE001 - a broken installation fails in its own way
            why = type(error).__name__
            if isinstance(error, ModuleNotFoundError):
                why = f"{error.name} is not installed"
            self._loading = None
            self._say(wire.LitellmLoaded(None, why))

    def _answered(self, number: int, task: asyncio.Task[wire.FromWorker]) -> None:
        del self._tasks[number]
        if task.cancelled():
            self._say(wire.Failed(number, "cancelled", "the request was cancelled"))
        else:
            self._say(task.result())

    async def _answer(self, ask: wire.Ask) -> wire.FromWorker:
        try:
            async with asyncio.timeout(ask.seconds):
                if ask.endpoint is None:
                    return await self._models.ask(ask)
                from .endpoint_calls import ask_endpoint  # noqa: PLC0415 - most never need it

                return await ask_endpoint(ask, self._form)
        except CallFailed as error:
            return wire.Failed(ask.number, error.code, error.message, error.retry_after)
        except TimeoutError:
            who = ask.endpoint or ask.model
            return wire.Failed(
                ask.number, "timeout", f"{who} did not answer in {ask.seconds:.1f} s"
            )
        except MemoryError:
            return wire.Failed(ask.number, "too_large", "the answer does not fit into memory")
        except Exception as error:  # noqa: BLE001 - one request must not take the others with it
            return wire.Failed(ask.number, "nonsense", f"cannot ask: {type(error).__name__}")

    def _say(self, message: wire.FromWorker) -> None:
        data = memoryview(wire.line(message))
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except OSError:
            os._exit(0)


def main() -> None:
    """Serve until standard input ends."""
    _be_modest()
    given, out = _own_pipes()
    asyncio.run(_serve(given, out))


async def _serve(given: int, out: int) -> None:
    worker, loop = Worker(out), asyncio.get_running_loop()

    def read() -> None:
        # A separate thread notices the end even while the loop is busy.
        with os.fdopen(given, "rb") as lines, contextlib.suppress(Exception):
            while data := lines.readline(wire.LONGEST_LINE):
                loop.call_soon_threadsafe(worker.take, wire.TO_WORKER.decode(data))
        os._exit(0)

    threading.Thread(target=read, name="requests", daemon=True).start()
    await asyncio.Event().wait()


def _own_pipes() -> tuple[int, int]:
    """Private copies of standard input and output, which nothing else can use."""
    given, out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return given, out


def _be_modest() -> None:
    """Write no core dump, and limit the process's memory."""
    for limit, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, _MOST_MEMORY)):
        _, hard = resource.getrlimit(limit)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (allowed, allowed))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb") as file:  # noqa: PTH123
        file.write(_FIRST_TO_GO)


if __name__ == "__main__":
    main()
