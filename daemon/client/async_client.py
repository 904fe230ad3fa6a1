"""Talk to the daemon from an asyncio program, over a few kept connections.

async with AsyncClient(agent="assistant") as memory:
    await memory.store("Ana prefers tea", category="people/ana", importance=0.8)
    for result in (await memory.recall("what does Ana drink?")).results:
        print(result.text)
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING

from .async_caller import AsyncCaller
from .calls import Calls
from .wire import Lines

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from .caller import Json


class AsyncClient(Calls, AsyncCaller):
    """The methods of `Client` as coroutines; see `AsyncCaller` for the connections."""

    def backup(self, *, seal: bool = False) -> AsyncGenerator[bytes]:
        """All of the agent's memory as one archive (a `.tar.gz`), as `Client.backup`."""
        return self.download("/api/backup", {"seal": seal or None})

    async def export(self) -> AsyncGenerator[dict[str, Json]]:
        """All rows, an object each with its `kind`; raises `AnswerLost` if it breaks off."""
        lines = Lines()
        async with aclosing(self.download("/api/export")) as pieces:
            async for piece in pieces:
                for line in lines.feed(piece):
                    yield json.loads(line)

    def events(
        self, types: Sequence[str] = (), last_id: str | None = None
    ) -> AsyncGenerator[tuple[str, str, Json]]:
        """Events from now on, as (id, type, data), as `Client.events`."""
        return self.stream("/api/events", {"types": ",".join(types) or None}, last_id)
