"""`/api/sync`: how an agent's replication stands, and replicating now."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from thermocline.sync import Tally

from ..errors import InvalidInput
from ..replication.account import Account
from ..replication.following import Standing
from ..restoring.rehearsal import Rehearsal, last_rehearsal
from ..store import link
from .calls import Call, Reply, Route
from .databases import Database, elsewhere

_MOST_MEMORIES: Final = 100


class DeviceName(msgspec.Struct, frozen=True):
    """This device, as the others see it."""

    id: str
    name: str


class SyncStanding(Standing, frozen=True, kw_only=True):
    """How replication stands.

    Attributes:
        device: this one.
        queued_kinds: the rows still to be sent, by their kind.
        rehearsal: the last rehearsal of a restore; None: there was none.
    """

    device: DeviceName
    queued_kinds: dict[str, int]
    rehearsal: Rehearsal | None


class SyncWish(Database, kw_only=True, forbid_unknown_fields=True):
    """What to replicate now: everything, or, with `critical`, the hot state and the tree alone.

    Another database than the agent's own is sent either these or some `memories`, by their ids
    or the beginnings of them; it is not followed. `dry_run` only tells whether this may be
    asked for, and goes nowhere.
    """

    critical: bool = False
    dry_run: bool = False
    memories: Annotated[tuple[str, ...], Meta(max_length=_MOST_MEMORIES)] = ()


class Synced(msgspec.Struct):
    """What was done; nothing where it was to be tried alone.

    `refused` rows came in, and made no sense.
    """

    sent: int
    received: int
    refused: int
    took_ms: float
    synced: bool


async def show(call: Call) -> Reply:
    """How replication stands."""
    replicas = call.services.replicas
    async with call.store() as store:
        await replicas.look_after(call.agent)
        queued, rehearsal = await store.read(lambda db: (link.queued(db), last_rehearsal(db)))
    standing: dict[str, Any] = msgspec.structs.asdict(replicas.standing(call.agent))
    standing["queued"] = sum(queued.values())
    device = DeviceName(replicas.device.id, replicas.device.name)
    return Reply(SyncStanding(**standing, device=device, queued_kinds=queued, rehearsal=rehearsal))


async def sync(call: Call) -> Reply:
    """Replicate, and answer once it is done."""
    wish = await call.body(SyncWish) if call.request.body_exists else SyncWish()
    account = await elsewhere(call, wish)
    if account is not None and not (wish.critical or wish.memories):
        raise InvalidInput(
            "say what to send to another database: 'critical' or 'memories'",
            field="critical",
            hint="to replicate everything there, make it the agent's own: sync.url",
        )
    started = time.perf_counter()
    tally = Tally() if wish.dry_run else await _done(call, wish, account)
    took = round((time.perf_counter() - started) * 1000, 3)
    return Reply(Synced(tally.sent, tally.received, tally.refused, took, not wish.dry_run))


async def _done(call: Call, wish: SyncWish, account: Account | None) -> Tally:
    if account is None:
        async with call.store() as store:
            if wish.critical:
                return await call.services.replicas.sync(call.agent, critical_only=True)
            await call.services.workspaces.keep(store)
            tally = await call.services.replicas.sync(call.agent)
            # What has come is to be found when the caller looks.
            await call.services.workspaces.keep(store)
            return tally
    if wish.critical:
        return await call.services.one_offs.send_critical(call.agent, account)
    return await call.services.one_offs.send(call.agent, account, wish.memories)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/sync",
        handler=show,
        summary="How the agent's replication stands",
        answer=SyncStanding,
    ),
    Route(
        method="POST",
        path="/api/sync",
        handler=sync,
        summary="Send and receive now; with a url, send to another database",
        role="write",
        body=SyncWish,
        answer=Synced,
    ),
)
