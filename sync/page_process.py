"""A process that receives and reads the pages of a replica, while this one stores the rows.

Python uses one processor in a process, and opening a sealed row takes as long as storing it. What
the process does not deliver is received here, with the error that there is. It ends with the
process that has started it, and gets the token and the keys over their socket alone.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from .file_remote import FileRemote
from .ports import Remote, Usage
from .replica import Page, Replica
from .row_format import RowFormat

# Starting the process takes as long as receiving a few thousand rows.
WORTH_ROWS: Final = 10_000
_FILE: Final = "file:"
# After which place of the order, and up to which one.
_REQUEST: Final = struct.Struct(">qq")
_LENGTH: Final = struct.Struct(">q")


class PageSource(msgspec.Struct, frozen=True):
    """Whose pages are received, and with what."""

    url: str  # complete
    token: str | None
    agent: str
    keyring: bytes = b""  # as `Keyring.encoded` writes it; empty: it is not sealed


class _Answer(msgspec.Struct, frozen=True):
    page: Page | None = None  # None: it could not be received, or be sent to the other process
    used: tuple[Usage, ...] = ()


_decoder: Final = msgspec.msgpack.Decoder(_Answer)


class ProcessReplica(Replica):
    """A replica whose pages another process receives, once it has started.

    Each page is asked for in turn, and awaited in the same order. `count` is told what the process
    used of the remote.
    """

    def __init__(
        self, replica: Replica, source: PageSource, count: Callable[[Usage], None]
    ) -> None:
        super().__init__(replica.remote, replica.agent, form=replica.form, keys=replica.keys)
        self._count = count
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 - this very program
                [sys.executable, "-m", __name__],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Ctrl-C in a terminal is for this one.
                start_new_session=True,
            )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pages")
        content = msgspec.msgpack.encode(source)
        self._socket.sendall(_LENGTH.pack(len(content)) + content)
        # The process says that it has started.
        self._started = self._thread.submit(self._next)

    async def page(self, after: int, until: int) -> Page:
        if self._started.done() and self._started.result() is not None:
            with suppress(OSError):
                self._socket.sendall(_REQUEST.pack(after, until))
                # Cancelled or not, its answer is taken out of the way of the next one.
                answer = await asyncio.shield(asyncio.wrap_future(self._thread.submit(self._next)))
                if answer is not None:
                    for usage in answer.used:
                        self._count(usage)
                    if answer.page is not None:
                        return answer.page
        return await super().page(after, until)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, which takes a moment."""
        self.process.kill()
        self.process.wait()
        self._thread.shutdown()
        self._socket.close()

    def _next(self) -> _Answer | None:
        """The next answer; None: the process has ended."""
        head = self._content(_LENGTH.size)
        content = self._content(*_LENGTH.unpack(head)) if head else b""
        return _decoder.decode(content) if content else None

    def _content(self, size: int) -> bytearray:
        """So many bytes, or none. Without Python's lock until all of them are there."""
        content, place = bytearray(size), 0
        with memoryview(content) as view, suppress(OSError):
            while place < size and (
                more := self._socket.recv_into(view[place:], 0, socket.MSG_WAITALL)
            ):
                place += more
        return content if place == size else bytearray()


async def _serve(connection: socket.socket) -> None:
    """Answer in the order of the requests; several pages are received at once."""
    reader, writer = await asyncio.open_connection(sock=connection)
    [length] = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    source = msgspec.msgpack.decode(await reader.readexactly(length), type=PageSource)
    used: list[Usage] = []
    form = form_of(source.agent, source.keyring)
    replica = Replica(await _connect(source, used.append), source.agent, form=form)
    requested: asyncio.Queue[asyncio.Task[Page | None]] = asyncio.Queue()

    async def answer() -> None:
        page = None
        while True:
            usages = tuple(used)
            used.clear()
            content = _encoded(_Answer(page, usages))
            writer.write(_LENGTH.pack(len(content)) + content)
            await writer.drain()
            page = await (await requested.get())

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(answer())
        while True:
            after, until = _REQUEST.unpack(await reader.readexactly(_REQUEST.size))
            requested.put_nowait(tasks.create_task(_page(replica, after, until)))


async def _page(replica: Replica, after: int, until: int) -> Page | None:
    try:
        return await replica.page(after, until)
    except Exception:  # noqa: BLE001 - the other process meets it again, and reports it
        return None


def _encoded(answer: _Answer) -> bytes:
    try:
        return msgspec.msgpack.encode(answer)
    except (ValueError, TypeError, OverflowError, RecursionError):
        # JSON has larger numbers.
        return msgspec.msgpack.encode(_Answer(None, answer.used))


async def _connect(source: PageSource, count: Callable[[Usage], None]) -> Remote:
    if source.url.startswith(_FILE):
        return FileRemote(Path(source.url.removeprefix(_FILE)))
    from .turso import connect  # noqa: PLC0415 - it loads the client

    return await connect(source.url, source.token, count=count)


def form_of(agent: str, keyring: bytes) -> RowFormat:
    """How the rows of an agent are written there, with a keyring as in `PageSource`."""
    if not keyring:
        return RowFormat(agent)
    from .sealing.keyring import decoded_keyring  # noqa: PLC0415 - it loads PyNaCl
    from .sealing.sealed_rows import SealedRows  # noqa: PLC0415 - likewise

    ring = decoded_keyring(keyring)
    return SealedRows(agent, lambda: ring)


if __name__ == "__main__":
    # Rows form no circles.
    gc.disable()
    os.umask(0o077)
    with suppress(BaseExceptionGroup, asyncio.IncompleteReadError, OSError):
        asyncio.run(_serve(socket.socket(fileno=0)))
