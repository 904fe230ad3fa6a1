"""A database other than the agent's replica, named for one call as in EvoClaw's commands."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from thermocline.sync import (
    Device,
    Pending,
    Received,
    Remote,
    Replica,
    Row,
    SchemaMissing,
    SqlStatement,
    foreign,
    merge,
    schema,
    version_of,
)

from ..memory.records import Memory
from ..store import apply
from ..store.agent_store import AgentStore
from ..store.kinds import URGENT, kind_of
from ..store.records import memories, memory_rows
from .account import Account
from .databases import Connect, our_errors

T = TypeVar("T")
_MOST_TRIES: Final = 5


class RemoteMemory(msgspec.Struct, frozen=True):
    """A memory in a database, and the number of matching words."""

    id: str
    text: str
    category: str
    importance: float
    created_at: float
    access_count: int
    hits: int


class OtherDatabases:
    """Opens a database for one call.

    Every method raises `ThermoclineError` if it cannot be reached, or refuses.
    """

    def __init__(self, connect: Connect, device: Device) -> None:
        self._connect = connect
        self._device = device

    async def prepare(self, account: Account) -> None:
        await self._ask(account, lambda remote: Replica(remote, "default").prepare(time.time()))

    async def search(
        self, account: Account, agent: str, words: list[str], limit: int
    ) -> list[RemoteMemory]:
        return await self._ask(account, lambda remote: search(remote, agent, words, limit))

    async def send_critical(self, account: Account, agent: str, store: AgentStore) -> int:
        """Send the hot state and the categories of an agent; return the number of rows sent."""
        rows = await store.read(lambda db: list(apply.every(db, URGENT)))
        return await self._ask(account, lambda remote: self._send(remote, agent, rows))

    async def send_memories(
        self, account: Account, agent: str, store: AgentStore, ids: Sequence[str]
    ) -> int:
        """Send some memories of an agent; return the number of rows sent.

        A database that has EvoClaw's own table gets them there.
        """

        def load(db: sqlite3.Connection) -> tuple[list[Memory], list[Row]]:
            known = [memories.find(db, key) for key in ids]
            rows = (memory_rows.KIND.load(db, memory.id) for memory in known)
            return known, [row for row in rows if row is not None]

        known, rows = await store.read(load)

        async def send(remote: Remote) -> int:
            if await foreign.has_own_archive(remote):
                insert = (
                    "INSERT OR REPLACE INTO cold_memories (id, agent_id, text, category, importance"
                    ", created_at, access_count) VALUES (?, ?, ?, ?, ?, CAST(? AS INTEGER), ?)"
                )
                values = (
                    (m.id, agent, m.text, m.category, m.importance, m.created_at, m.access_count)
                    for m in known
                )
                await remote.batch([SqlStatement(insert, row) for row in values])
                return len(known)
            return await self._send(remote, agent, rows)

        return await self._ask(account, send)

    async def _send(self, remote: Remote, agent: str, rows: Sequence[Row]) -> int:
        replica = Replica(remote, agent)
        await replica.prepare(time.time())
        left = [Pending(row, version_of(row) or "", None) for row in rows]
        for _ in range(_MOST_TRIES):
            if not left:
                break
            await replica.push(await replica.batch(left), self._device, 0, time.time())
            left = [
                _over(pending, remote_row)
                for pending, remote_row in await replica.current_versions(left)
            ]
        return len(rows) - len(left)

    async def evoclaw(self, account: Account, agent: str) -> foreign.Foreign:
        """The content of EvoClaw's own tables for an agent, which are only read."""
        return await self._ask(account, lambda remote: foreign.read(remote, agent))

    async def _ask(self, account: Account, question: Callable[[Remote], Awaitable[T]]) -> T:
        with our_errors(account):
            remote = await self._connect(account)
            try:
                return await question(remote)
            finally:
                await remote.close()


async def search(remote: Remote, agent: str, words: list[str], limit: int) -> list[RemoteMemory]:
    """Memories in these rows and in EvoClaw's table, those with most of the words first."""
    hits = " + ".join(f"(instr(lower(text), ?{n}) > 0)" for n in range(3, len(words) + 3)) or "1"
    best: dict[str, RemoteMemory] = {}
    sources = [schema.MEMORIES]
    if await foreign.has_own_archive(remote):
        sources.append("SELECT * FROM cold_memories")
    for source in sources:
        sql = (
            "SELECT id, text, category, importance, created_at, access_count, hits FROM"
            f" (SELECT *, {hits} AS hits FROM ({source}) WHERE agent_id = ?1) WHERE hits > 0"
            " ORDER BY hits DESC, importance DESC, created_at DESC LIMIT ?2"
        )
        try:
            [result] = await remote.batch([SqlStatement(sql, (agent, limit, *words))])
        except SchemaMissing:
            continue
        names = RemoteMemory.__struct_fields__
        lines: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in result.rows]
        best |= {str(row["id"]): msgspec.convert(row, RemoteMemory, strict=False) for row in lines}
    order = sorted(best.values(), key=lambda item: (-item.hits, -item.importance, -item.created_at))
    return order[:limit]


def _over(pending: Pending, remote_row: object) -> Pending:
    """The row to send: merged with the row on the remote."""
    if not isinstance(remote_row, Received):
        return msgspec.structs.replace(pending, seen=getattr(remote_row, "version", None))
    row = merge(pending.row, remote_row.row, kind_of(pending.row.kind).sets)
    return Pending(row, version_of(row) or "", remote_row.version)
