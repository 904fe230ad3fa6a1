"""`/api/sync`: how an agent's replication goes, and replicating now."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from ..restore.verify import last_verification
from ..shapes.restore import Verification
from ..shapes.sync import ReplicationStatus
from ..store import history
from .calls import Call, Reply, Route
from .databases import Database, another


class DeviceName(msgspec.Struct, frozen=True):
    """This device, as the others see it."""

    id: str
    name: str


class SyncStatus(ReplicationStatus, frozen=True, kw_only=True):
    """How replication goes.

    Attributes:
        device: this one.
        lost_values: how many values lost because another device changed the same field, or note;
            `GET /api/history?conflicts=true` shows them.
        verification: the last proof that a restore would work.
    """

    device: DeviceName
    lost_values: int
    verification: Verification | None


class SyncWish(Database, kw_only=True, forbid_unknown_fields=True):
    """What to replicate now: everything, or, with `critical`, the hot state and the tree alone.

    Another database than the agent's own is sent only these; it is not followed.
    """

    critical: bool = False


class Synced(msgspec.Struct):
    """What was done. `refused` rows came in and made no sense."""

    sent: int
    received: int
    refused: int
    conflicts: int
    took_ms: float
    synced: bool = True


async def show(call: Call) -> Reply:
    """How replication goes."""
    replicas = call.services.replicas
    async with call.store() as store:
        await replicas.look_after(call.agent)
        status = await replicas.status_of(call.agent, store)
        lost, last = await store.read(lambda db: (history.conflicts(db), last_verification(db)))
    fields: dict[str, Any] = msgspec.structs.asdict(status)
    device = DeviceName(replicas.device.id, replicas.device.name)
    return Reply(SyncStatus(**fields, device=device, lost_values=lost, verification=last))


async def sync(call: Call) -> Reply:
    """Replicate, and answer once it is done."""
    wish = await call.body(SyncWish) if call.request.body_exists else SyncWish()
    account = await another(call, wish)
    started = time.perf_counter()
    services = call.services
    async with call.store() as store:
        if account is not None:
            sent = await services.databases.send_critical(account, call.agent, store)
            return Reply(Synced(sent, 0, 0, 0, _since(started)))
        if wish.critical:
            tally = await services.replicas.sync(call.agent, urgent_only=True)
        else:
            await services.workspaces.keep(store)
            tally = await services.replicas.sync(call.agent)
            # What has come is to be found when the caller looks.
            await services.workspaces.keep(store)
    return Reply(
        Synced(tally.sent, tally.received, tally.refused, tally.conflicts, _since(started))
    )


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/sync",
        handler=show,
        summary="How the agent's replication goes",
        answer=SyncStatus,
    ),
    Route(
        method="POST",
        path="/api/sync",
        handler=sync,
        summary="Send and receive now; with a url, the critical state to another database",
        role="write",
        body=SyncWish,
        answer=Synced,
    ),
)
