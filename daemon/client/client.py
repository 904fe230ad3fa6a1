"""Talk to the daemon from any Python program.

with Client(agent="assistant") as memory:
    memory.store("Ana prefers tea", category="people/ana", importance=0.8)
    for result in memory.recall("what does Ana drink?").results:
        print(result.text)
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .caller import Caller
from .calls import Calls
from .wire import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .caller import Json


class Client(Calls, Caller):
    """The methods of `Calls`, and the streams; see `Caller` for the connection and other calls."""

    def backup(self, *, seal: bool = False) -> Iterator[bytes]:
        """All of the agent's memory as one archive (a `.tar.gz`), in pieces as they come.

        Uses a separate connection. The archive is a snapshot; with `seal` only the owner's devices
        and the recovery key open it.

        Raises:
            AnswerLost: it broke off; the archive is incomplete.
        """
        return self.download("/api/backup", {"seal": seal or None})

    def export(self) -> Iterator[dict[str, Json]]:
        """All rows, an object each with its `kind`; raises `AnswerLost` if it breaks off."""
        return map(json.loads, lines_of(self.download("/api/export")))

    def events(
        self, types: Sequence[str] = (), last_id: str | None = None
    ) -> Iterator[tuple[str, str, Json]]:
        """Events from now on, as (id, type, data), over a separate connection.

        Ends when the daemon stops.

        Args:
            types: only these; default: all.
            last_id: of the last event seen, to get those missed since (of the last 1000) first.

        Raises:
            AnswerLost: the stream broke off, or was silent longer than the daemon ever is.
        """
        return self.stream("/api/events", {"types": ",".join(types) or None}, last_id)
