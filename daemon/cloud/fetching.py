"""Fetches, checks and decrypts the pages of a restore in a second process, on a second processor.

Requests and answers are frames on a socket: four bytes with the length, and MessagePack. The
process ends with the one that started it, however that ends.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from thermocline.sync import Replica, Usage
from thermocline.sync.replica import Page

from .account import Account
from .databases import connect

if TYPE_CHECKING:
    from thermocline.sync.sealing.keyring import Keyring

_LENGTH_BYTES: Final = 4
# More than what is on its way at the same time.
_BUFFER_BYTES: Final = 1 << 23


class _Request(msgspec.Struct, frozen=True, array_like=True):
    """A page that is needed. `ring` are the keys of a sealed replica, as JSON; empty: it is not."""

    number: int
    agent: str
    ring: bytes
    after: int
    until: int


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    """`page` is None if it could not be fetched; `used` is what was not yet counted."""

    number: int
    page: Page | None
    used: Usage


_encode: Final = msgspec.msgpack.Encoder().encode
_requests: Final = msgspec.msgpack.Decoder(_Request)
_answers: Final = msgspec.msgpack.Decoder(_Answer)


class PageFetcher:
    """The process that fetches pages; made before any thread or event loop.

    `count` is called with what the process used.
    """

    def __init__(self, account: Account, count: Callable[[str, Usage], None]) -> None:
        self._account = account
        self._count = count
        self._socket, other = socket.socketpair()
        self._process = multiprocessing.get_context("fork").Process(
            target=_serve, args=(account, other, self._socket), daemon=True
        )
        self._process.start()
        other.close()
        self._listening: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._number = 0
        self._requested: dict[int, asyncio.Future[Page | None]] = {}

    async def begin(self) -> None:
        """Take answers, in the event loop of the caller."""
        reader, self._writer = await asyncio.open_connection(sock=self._socket, limit=_BUFFER_BYTES)
        self._listening = asyncio.create_task(self._listen(reader))

    async def page(self, replica: Replica, ring: Keyring | None, after: int, until: int) -> Page:
        """As `Replica.page`, which is called here for what the process could not fetch."""
        page = None
        if self._writer is not None and self._listening is not None and not self._listening.done():
            self._number = number = self._number + 1
            self._requested[number] = answer = asyncio.get_running_loop().create_future()
            sealed = b"" if ring is None else msgspec.json.encode(ring)
            request = _Request(number, replica.agent, sealed, after, until)
            self._writer.write(_framed(request))
            page = await answer
        return await replica.page(after, until) if page is None else page

    async def close(self) -> None:
        """End the process."""
        if self._writer is not None and self._listening is not None:
            self._writer.close()
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        self._process.terminate()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                answer = await _received(reader, _answers)
                self._count(self._account.url, answer.used)
                self._settle(answer.number, answer.page)
        except (OSError, EOFError):
            # The process was ended, as by a lack of memory.
            return
        finally:
            for number in [*self._requested]:
                self._settle(number, None)

    def _settle(self, number: int, page: Page | None) -> None:
        requested = self._requested.pop(number)
        if not requested.done():
            requested.set_result(page)


def _serve(account: Account, connection: socket.socket, other: socket.socket) -> None:
    """The process: answer until the other end is closed."""
    # Ctrl-C reaches both processes; the first ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    other.close()
    asyncio.run(_answer_all(account, connection))


async def _answer_all(account: Account, connection: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    used = Usage()

    def count(_url: str, more: Usage) -> None:
        nonlocal used
        used += more

    remote = await connect(account, count=count)

    async def answer(request: _Request) -> None:
        nonlocal used
        try:
            page = await _replica(remote, request).page(request.after, request.until)
            content = _framed(_Answer(request.number, page, used))
        except Exception:  # noqa: BLE001 - the first process meets it again, and reports it
            content = _framed(_Answer(request.number, None, used))
        used = Usage()
        writer.write(content)

    async with asyncio.TaskGroup() as answering:
        with suppress(OSError, EOFError):
            while True:
                answering.create_task(answer(await _received(reader, _requests)))


def _replica(remote: Any, request: _Request) -> Replica:
    if not request.ring:
        return Replica(remote, request.agent)
    sealing = import_module("thermocline.sync.sealing.sealed_rows")
    ring = msgspec.json.decode(request.ring, type=sealing.Keyring)
    return Replica(remote, request.agent, form=sealing.SealedRows(request.agent, lambda: ring))


def _framed(content: msgspec.Struct) -> bytes:
    encoded = _encode(content)
    return len(encoded).to_bytes(_LENGTH_BYTES, "big") + encoded


async def _received(reader: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[Any]) -> Any:
    length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
    return decoder.decode(await reader.readexactly(length))
