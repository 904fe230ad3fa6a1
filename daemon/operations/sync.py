"""An agent's replica: its state, its devices, and the other databases of a call."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Annotated, Final

from msgspec import Meta

from thermocline.sync import Replica, SyncError
from thermocline.sync.ports import address

from ..cloud.account import OF_A_CALL, Account, Secret, plain
from ..cloud.databases import our_errors
from ..cloud.verify import last_verification
from ..errors import Conflict, InvalidInput, NotFound, ReplicaRefused, ThermoclineError
from ..memory.metadata import extract
from ..memory.records import Memory
from ..recall.query import parse
from ..recall.recall import Request, recall
from ..recall.sources import MEMORIES
from ..schemas import sync as schemas
from ..schemas.common import Limit, MemoryId, Offset, RecallLimit, Words, limited_by
from ..schemas.memory import ListQuery, MemoryPage
from ..schemas.recall import HitView
from ..store import outbox
from ..store.records import history
from ..store.records.selecting import Filters
from .memories import memory_page
from .operation import Operation, Scope
from .views import memory_as, memory_view, view_of

_SHORTEST_PREFIX: Final = 4
# EvoClaw's words, which its programs search for.
_BOTH: Final = "db-url and auth-token required"


@Operation("GET", "/api/sync")
async def show(scope: Scope) -> schemas.SyncStatus:
    """Show the state of the agent's replication."""
    replicas = scope.daemon.replicas
    async with scope.store() as store:
        if store.exists:
            await replicas.look_after(scope.agent)
        status = await replicas.status_of(scope.agent, store)
        lost, last = await store.read(
            lambda db: (history.conflicts(db), last_verification(db, status.url))
        )
    device = schemas.DeviceName(replicas.device.id, replicas.device.name)
    return view_of(
        schemas.SyncStatus,
        status,
        device=device,
        lost_values=lost,
        verification=last,
        rounds=[view_of(schemas.SyncRound, round_) for round_ in replicas.rounds(scope.agent)],
    )


@Operation("POST", "/api/sync", role="write")
async def sync(
    scope: Scope,
    url: schemas.Url | None = None,
    token: schemas.Token | None = None,
    critical: bool = False,
    memories: Annotated[tuple[MemoryId, ...], limited_by("limits.max_batch")] = (),
) -> schemas.Synced:
    """Send and receive now, everything, or if it is `critical` only the hot state and the tree.

    A database at a `url` other than the agent's own is sent only these, once, or in their place the
    named `memories`. It is opened for this call only, with the `token`, and needs the role `admin`,
    since the daemon connects to it.
    """
    account = await another(scope, url, token)
    started = time.perf_counter()
    daemon = scope.daemon
    async with scope.store() as store:
        if account is not None:
            where = (account, scope.agent, store)
            if memories:
                sent = await daemon.databases.send_memories(*where, memories)
            else:
                sent = await daemon.databases.send_critical(*where)
            return schemas.Synced(sent, 0, 0, 0, _since(started))
        if critical:
            tally = await daemon.replicas.sync(scope.agent, urgent_only=True)
        else:
            await daemon.workspaces.synchronise(store)
            tally = await daemon.replicas.sync(scope.agent)
            # The caller must find what was received.
            await daemon.workspaces.synchronise(store)
    return schemas.Synced(
        tally.sent, tally.received, tally.refused, tally.conflicts, _since(started)
    )


@Operation("POST", "/api/restore", role="admin")
async def verify(
    scope: Scope, verify: Annotated[bool, Meta(extra_json_schema={"const": True})]
) -> schemas.Verification:
    """Restore the agent into a temporary folder, and compare it with the live memory.

    To `verify` is all that a running daemon does; a restore itself needs none.
    """
    if not verify:
        raise InvalidInput(
            "cannot restore over a memory in use: only 'verify' works here",
            field="verify",
            hint="stop the daemon and run `thermocline restore`",
        )
    return await scope.daemon.verifier.verify(scope.agent)


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


@Operation("GET", "/api/devices")
async def devices(scope: Scope) -> schemas.DeviceList:
    """List the devices that share the agent's replica."""
    async with scope.store(exists=True) as store:
        seq = (await store.read(outbox.cursor)).seq
        return schemas.DeviceList(await _devices(scope, seq))


@Operation("POST", "/api/devices/{id}/retire", role="admin")
async def retire(scope: Scope, id: str) -> schemas.DeviceRetired:
    """Retire a device from the database: deletions no longer wait until it has received them.

    Also from those of the other agents of which the caller is an admin. From a sealed replica it
    cannot read what is written from now on.
    """
    replicas = scope.daemon.replicas
    async with scope.store():
        device = _device_named(await _devices(scope, 0), id)
        is_sealed = replicas.sealing.is_on and not device.this
        if is_sealed:
            remote = await replicas.remote(scope.agent)
            with our_errors():
                await (await replicas.sealing.keychain()).retire(remote, device.id)
        others = await others_of(scope)
        try:
            await replicas.ask_each(
                scope.agent, others, lambda replica: replica.retire(device.id, scope.now)
            )
        finally:
            if is_sealed:
                replicas.keys_changed()
        if device.this:
            # It notices at once, and stops.
            with suppress(ReplicaRefused):
                await replicas.sync(scope.agent)
    return schemas.DeviceRetired(device.id, device.name, sealed=is_sealed)


@Operation("POST", "/api/devices/rejoin", role="admin")
async def rejoin(scope: Scope) -> schemas.DeviceRejoined:
    """Use this device again after it was retired, as far as the caller is an admin.

    If it has missed deletions, it compares everything.
    """
    replicas = scope.daemon.replicas
    this = replicas.device.id

    async def take_in(replica: Replica) -> bool:
        # A device without the present key stays retired: it could not replicate.
        await replica.publish_keys()
        return await replica.retire(this, None)

    async with scope.store():
        others = await others_of(scope)
        rejoined = await replicas.ask_each(scope.agent, others, take_in)
        tally = await replicas.sync(scope.agent)
        await replicas.wake(others)
    return schemas.DeviceRejoined(this, any(rejoined), tally.sent, tally.received)


async def others_of(scope: Scope) -> list[str]:
    """The other agents of which the caller is an admin."""
    names, gate = await asyncio.to_thread(scope.daemon.agents.names), scope.daemon.gate
    return [n for n in names if n != scope.agent and gate.role(scope.peer, n) == "admin"]


async def _devices(scope: Scope, seq: int) -> list[schemas.DeviceView]:
    replicas = scope.daemon.replicas
    this = replicas.device.id
    records = await replicas.ask(scope.agent, lambda replica: replica.devices(this, seq))
    if not replicas.sealing.is_on:
        return [view_of(schemas.DeviceView, each, this=each.id == this) for each in records]
    keychain = await replicas.sealing.keychain()
    present, epochs = await replicas.ask(
        scope.agent, lambda replica: keychain.epochs(replica.remote)
    )
    is_blind = epochs.get(this, 0) < present
    return [
        view_of(
            schemas.DeviceView,
            each,
            this=each.id == this,
            # Without the present key this device cannot tell what the others have.
            epoch=None if is_blind and each.id != this else epochs.get(each.id, 0),
            can_read=None if is_blind and each.id != this else epochs.get(each.id) == present,
        )
        for each in records
    ]


def _device_named(devices: list[schemas.DeviceView], key: str) -> schemas.DeviceView:
    """The device with this id, or the only one with this name or whose id begins with `key`.

    A prefix has 4 characters or more. Of devices with the same name that in use is chosen.
    """
    matches = [device for device in devices if device.id == key]
    if not matches:
        matches = [device for device in devices if device.name == key]
        matches = [device for device in matches if device.retired_at is None] or matches
    if not matches and len(key) >= _SHORTEST_PREFIX:
        matches = [device for device in devices if device.id.startswith(key)]
    if not matches:
        raise NotFound(
            f"no device has the id or name '{key[:64]}'",
            field="id",
            hint="see thermocline devices; 4 characters of an id are enough",
        )
    if len(matches) > 1:
        raise Conflict(
            f"'{key[:64]}' names several devices", field="id", hint="give more of its id"
        )
    return matches[0]


async def another(scope: Scope, url: str | None, token: str | None) -> Account | None:
    """The database that a call names, if the caller may; None: the agent's own replica.

    `InvalidInput`: the URL is not usable, or it or the token is missing.
    """
    if not url:
        if token:
            raise InvalidInput(_BOTH, field="url", hint="name the database that the token opens")
        return None
    if await _is_own(scope, url, token):
        return None
    scope.require("admin")
    url = url_of(url)
    if not token:
        raise InvalidInput(
            _BOTH, field="token", hint="only that of the agent's own replica may be left out"
        )
    return Account(url, Secret(token.strip()), OF_A_CALL)


def url_of(text: str) -> str:
    """A usable URL of a database, in its usual form; else raises `InvalidInput`."""
    try:
        return address(text).geturl()
    except SyncError as error:
        raise InvalidInput(error.message, field="url", hint=error.hint or None) from None


async def account_of(scope: Scope, url: str | None, token: str | None) -> Account:
    """As `another`, the agent's own replica included; `NotFound` if it has none."""
    account = await another(scope, url, token) or await scope.daemon.replicas.account(scope.agent)
    if account is None:
        raise NotFound(
            f"'{scope.agent}' is not replicated",
            hint=f"name a database, or set {scope.settings.key_to_replicate}",
        )
    return account


async def _is_own(scope: Scope, url: str, token: str | None) -> bool:
    try:
        own = await scope.daemon.replicas.account(scope.agent)
    except ThermoclineError:
        if not token:
            raise
        # A fault of the agent's own database does not concern another one.
        return False
    if own is None or plain(own.url) != plain(url):
        return False
    return not token or own.token == Secret(token.strip())


# The archive, here and in a database


_ARCHIVED: Final = Filters(archived=True)
# The database is searched for each of them, in every text.
_MOST_WORDS: Final = 12
_METHOD: Final = "cold"


@Operation("GET", "/api/cold")
async def list_archive(
    scope: Scope, query: str = "", limit: Limit = 10, offset: Offset = 0
) -> MemoryPage:
    """List the archive, by words or the newest first.

    With words, only the best matches are examined: `recall.candidates`, or up to the end of the
    page; `total` counts those.
    """
    if not query.strip():
        return await memory_page(scope, _ARCHIVED, ListQuery(limit=limit, offset=offset))
    end, tuning = offset + scope.page_limit(limit), scope.settings.recall
    request = Request(
        text=query,
        sources=frozenset({MEMORIES.name}),
        min_relevance=0.0,
        filters=_ARCHIVED,
        limit=max(tuning.candidates, end),
        weights=tuning.weights,
        preset=tuning.preset,
        scoring=scope.settings.scoring,
        now=scope.now,
    )
    answer = await scope.read(lambda db: recall(db, request, tuning), timed=True)
    views = [memory_view(scope, hit.memory) for hit in answer.hits[offset:end]]
    return MemoryPage(views, len(answer.hits))


@Operation("POST", "/api/cold/init", role="write")
async def init_database(
    scope: Scope, url: schemas.Url | None = None, token: schemas.Token | None = None
) -> schemas.Initialized:
    """Make the tables of the replica, or of another database, that are missing."""
    await scope.daemon.databases.prepare(await account_of(scope, url, token))
    return schemas.Initialized()


@Operation("POST", "/api/cold/search")
async def search_database(
    scope: Scope,
    query: Words = "",
    limit: RecallLimit = 10,
    url: schemas.Url | None = None,
    token: schemas.Token | None = None,
) -> schemas.ColdFound:
    """Search all memories that the replica, or another database, holds.

    Without words, the most important memories.
    """
    words = list(parse(query).telling[:_MOST_WORDS])
    account = await account_of(scope, url, token)
    if scope.daemon.replicas.sealing.is_on and account.source != OF_A_CALL:
        raise Conflict(
            "cannot search the replica: it is sealed",
            hint="search here: thermocline cold --query TEXT",
        )
    rows = await scope.daemon.databases.search(account, scope.agent, words, limit)
    hits = []
    for row in rows:
        memory = Memory(
            id=row.id,
            text=row.text,
            category=row.category,
            importance=row.importance,
            metadata=extract(row.text),
            created_at=row.created_at,
            updated_at=row.created_at,
            access_count=row.access_count,
        )
        share = row.hits / len(words) if words else 0.0
        relevance = round(share, 6)
        hits.append(memory_as(HitView, scope, memory, relevance=relevance, search_method=_METHOD))
    return schemas.ColdFound(hits)
