"""What calls do with memories that the replica alone holds: search, fetch and take them back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from thermocline.sync import Row

from ..errors import InvalidInput, NotFound
from ..memory.records import Memory
from ..recall.query import parse
from ..recall.recall import Request
from ..recall.tree_search import search as search_tree
from ..replication.asking import Asked, Asking
from ..store import memories, remote_rows, returning, tree_rows
from ..store.agent_store import AgentStore
from ..store.remote_rows import OnReplicaAlone
from ..store.writer import Operation
from .calls import Call

T = TypeVar("T")
# So many of the best by their words take part in the ranking; more for a longer answer.
_GUESTS: Final = 50
_MOST_GUESTS: Final = 200
# A call names two memories at most.
_MOST_TRIES: Final = 3


class Remote(msgspec.Struct):
    """The memories that are on the replica alone, and whether they could be searched.

    `why` says in a sentence why they were not, where somebody might have expected it.
    """

    memories: int
    asked: bool
    answered: bool
    took_ms: float
    why: str | msgspec.UnsetType = msgspec.UNSET


class Visit(msgspec.Struct, frozen=True):
    """The memories that take part in a search from elsewhere, and what is said of them."""

    guests: tuple[Memory, ...] = ()
    remote: Remote | msgspec.UnsetType = msgspec.UNSET

    @property
    def unsearched(self) -> int:
        """How many memories were not searched, for the replica did not."""
        remote = self.remote
        return 0 if remote is msgspec.UNSET or remote.answered else remote.memories

    @property
    def why(self) -> str:
        """The end of a sentence on why nothing was found."""
        if self.remote is msgspec.UNSET or self.remote.why is msgspec.UNSET:
            return ""
        return f"; {self.remote.why}"


async def visit(call: Call, store: AgentStore, request: Request) -> Visit:
    """Ask the replica for what it alone holds that may answer, within the deadline.

    Where there is no such memory, nothing is asked of anybody.
    """
    number = await store.elsewhere()
    if not number:
        return Visit()
    asked = await _asked(call, store, request)
    guests = await store.read(partial(_decoded, rows=asked.rows))
    remote = Remote(number, asked.asked, asked.answered, asked.took_ms)
    if asked.why:
        remote.why = f"{number} memories are on the replica alone, and {asked.why}"
    return Visit(tuple(guests), remote)


async def found(call: Call, store: AgentStore, key: str) -> Memory:
    """The living memory with this id, or the only one that begins so, from wherever it is.

    Raises:
        NotFound: there is none, or it has expired.
        Conflict: several ids begin so.
        OnReplicaAlone: the replica did not answer in time.
    """
    try:
        return await store.read(partial(memories.find_living, key=key, now=call.now))
    except OnReplicaAlone as absent:
        row = await _fetched(call, absent.id)
    for memory in await store.read(partial(_decoded, rows=[row])):
        if not memory.expired(call.now):
            return memory
    raise _lost(row.id)


async def at_hand(call: Call, store: AgentStore, operation: Operation[T]) -> T:
    """Run an operation in a commit; memories that it needs in full come back here first.

    Raises:
        OnReplicaAlone: the replica did not answer in time; nothing was changed.
        ThermoclineError: what the operation raised.
    """
    for _ in range(_MOST_TRIES):
        try:
            return await store.write(operation)
        except OnReplicaAlone as absent:
            row = await _fetched(call, absent.id)
            await store.write(partial(returning.take_back, row=row))
    return await store.write(operation)


def _asking(call: Call) -> Asking:
    seconds = call.settings.sync.recall_deadline_ms / 1000
    return Asking(call.services.replicas, call.agent, seconds)


async def _asked(call: Call, store: AgentStore, request: Request) -> Asked:
    if request.mode == "tree":
        ids = await store.read(partial(_filed, request=request))
        return await _asking(call).fetch(ids) if ids else Asked(answered=True)
    words = parse(request.text, request.now, request.local).words
    latest = await store.read(remote_rows.latest)
    if not words or latest is None:
        return Asked(answered=True)
    until = latest if request.filters.until is None else min(latest, request.filters.until)

    async def choose(ids: Sequence[str]) -> Sequence[str]:
        noted = await store.read(partial(remote_rows.among, ids=ids))
        return noted[: _wanted(request)]

    return await _asking(call).search(words, until, choose)


def _wanted(request: Request) -> int:
    return min(_MOST_GUESTS, max(_GUESTS, request.limit))


def _filed(db: sqlite3.Connection, request: Request) -> list[str]:
    """The ids of what is filed in the categories that a query names."""
    paths = search_tree(tree_rows.load(db), request.text, request.now)
    limit = _wanted(request)
    ids = [key for path in paths for key in remote_rows.filed_under(db, path.path, limit)]
    return list(dict.fromkeys(ids))[:limit]


def _decoded(db: sqlite3.Connection, rows: Sequence[Row]) -> list[Memory]:
    """The memories in rows, as far as they can be understood and are not here by now."""
    decoded: list[Memory] = []
    for row in rows:
        try:
            if remote_rows.find(db, row.id) is not None:
                decoded.append(returning.decoded(db, row))
        except (msgspec.MsgspecError, InvalidInput):
            continue
    return decoded


async def _fetched(call: Call, key: str) -> Row:
    asked = await _asking(call).fetch([key])
    if not asked.answered:
        raise OnReplicaAlone(key, asked.why)
    for row in asked.rows:
        return row
    raise _lost(key)


def _lost(key: str) -> NotFound:
    return NotFound(
        f"the memory '{key}' was on the replica only, which does not have it any more", field="id"
    )
