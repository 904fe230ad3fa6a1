"""`/api/kv`: small named facts."""

from __future__ import annotations

from typing import Final

import msgspec

from ..memory import checks
from ..memory.records import Pair
from ..store import key_values
from .calls import Call, Reply, Route
from .memories import Limit, Offset, capped

_KEY_CHARS: Final = 256


class KvQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which pairs to list."""

    prefix: str = ""
    limit: Limit = 100
    offset: Offset = 0


class KvPage(msgspec.Struct):
    """A page of pairs in the order of their keys, and how many there are."""

    results: list[Pair]
    total: int


class NewValue(msgspec.Struct, forbid_unknown_fields=True):
    """The value to store; it may be empty."""

    value: str


class KvSet(msgspec.Struct):
    """The pair as it is now."""

    key: str
    value: str
    created_at: float
    updated_at: float
    updated: bool = True


class KvDeleted(msgspec.Struct):
    """The pair is gone."""

    key: str
    deleted: bool = True


async def index(call: Call) -> Reply:
    """List pairs."""
    query = call.query(KvQuery)
    limit = capped(call, query.limit)
    async with call.store() as store:
        found, total = await store.read(
            lambda db: key_values.page(db, query.prefix, limit, query.offset)
        )
    return Reply(KvPage(found, total))


async def show(call: Call) -> Reply:
    """One pair."""
    async with call.store() as store:
        return Reply(await store.read(lambda db: key_values.get(db, call.params["key"])))


async def put(call: Call) -> Reply:
    """Store a value under a key."""
    key = checks.check_text(call.params["key"], 4 * _KEY_CHARS, field="key")
    checks.check_short(key, "key", _KEY_CHARS)
    body = await call.body(NewValue)
    if body.value:
        _check_value(body.value, call.settings.limits.max_text_bytes)
    async with call.store(create=True) as store:
        pair = await store.write(lambda tx: key_values.put(tx, key, body.value))
    return Reply(KvSet(pair.key, pair.value, pair.created_at, pair.updated_at))


async def remove(call: Call) -> Reply:
    """Remove a pair."""
    key = call.params["key"]
    async with call.store() as store:
        await store.write(lambda tx: key_values.delete(tx, key))
    return Reply(KvDeleted(key))


def _check_value(value: str, limit: int) -> None:
    # A blank value is a value; only what cannot be stored is refused.
    checks.check_text(f"-{value}", limit + 1, field="value")


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/kv",
        handler=index,
        summary="List key-value pairs",
        query=KvQuery,
        answer=KvPage,
    ),
    Route(
        method="GET",
        path="/api/kv/{key}",
        handler=show,
        summary="Read a value",
        answer=Pair,
    ),
    Route(
        method="PUT",
        path="/api/kv/{key}",
        handler=put,
        summary="Store a value",
        role="write",
        body=NewValue,
        answer=KvSet,
    ),
    Route(
        method="DELETE",
        path="/api/kv/{key}",
        handler=remove,
        summary="Remove a value",
        role="write",
        answer=KvDeleted,
    ),
)
