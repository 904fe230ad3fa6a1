"""What only the asynchronous client does; `test_client.py` has what both do."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from thermocline.daemon.client import AsyncClient


class SlowDaemon:
    """Counts its connections, and answers no request before `answering` is set."""

    def __init__(self) -> None:
        self.answering = asyncio.Event()
        self.waiting = asyncio.Semaphore(0)
        self.ended = asyncio.Semaphore(0)
        self.connections = 0
        self.open = 0
        self.most = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            while line := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                self.waiting.release()
                await self.answering.wait()
                body = b'{"path": "%b"}' % line.split()[1].partition(b"?")[0]
                head = (
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                )
                writer.write(head % len(body) + b"\r\n" + body)
        finally:
            self.open -= 1
            self.ended.release()
            writer.close()


@asynccontextmanager
async def slow_daemon(path: Path) -> AsyncGenerator[SlowDaemon]:
    daemon = SlowDaemon()
    server = await asyncio.start_unix_server(daemon.serve, path)
    async with server:
        yield daemon


async def test_tasks_share_a_few_connections_and_each_gets_its_own_answer(tmp_path):
    path = tmp_path / "t.sock"
    async with slow_daemon(path) as daemon, AsyncClient(path) as client:
        calls = [asyncio.create_task(client.request("GET", f"/{n}")) for n in range(100)]
        await daemon.waiting.acquire()
        daemon.answering.set()
        answers = await asyncio.gather(*calls)
        assert [answer["path"] for answer in answers] == [f"/{n}" for n in range(100)]
        assert daemon.most <= 8
        assert daemon.connections <= 8


async def test_a_cancelled_call_ends_its_connection_and_the_next_gets_its_own_answer(tmp_path):
    path = tmp_path / "t.sock"
    async with slow_daemon(path) as daemon, AsyncClient(path) as client:
        call = asyncio.create_task(client.request("POST", "/first"))
        await daemon.waiting.acquire()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        daemon.answering.set()
        await daemon.ended.acquire()
        assert (await client.request("GET", "/second"))["path"] == "/second"
        assert daemon.connections == 2


async def test_a_stream_that_is_left_early_closes_its_connection(tmp_path):
    path = tmp_path / "t.sock"
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        assert not await reader.read()
        writer.close()
        closed.set()

    async with await asyncio.start_unix_server(serve, path):
        events = AsyncClient(path).events()
        assert await anext(events) == ("", "message", 1)
        await events.aclose()
        async with asyncio.timeout(60):
            await closed.wait()
