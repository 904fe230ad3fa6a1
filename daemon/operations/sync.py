"""The state of an agent's replication, replicating now, and rehearsing a restore."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from ..errors import InvalidInput
from ..restore.verify import last_verification
from ..shapes.restore import RestoreBody, Verification
from ..shapes.sync import DeviceName, SyncBody, Synced, SyncRound, SyncStatus
from ..store import history
from .databases import another
from .operation import operation
from .scope import Scope


async def show(scope: Scope) -> SyncStatus:
    """Show the state of the agent's replication."""
    replicas = scope.daemon.replicas
    async with scope.store() as store:
        if store.exists:
            await replicas.look_after(scope.agent)
        status = await replicas.status_of(scope.agent, store)
        lost, last = await store.read(lambda db: (history.conflicts(db), last_verification(db)))
    fields: dict[str, Any] = msgspec.structs.asdict(status)
    device = DeviceName(replicas.device.id, replicas.device.name)
    rounds = [SyncRound(**msgspec.structs.asdict(one)) for one in replicas.rounds(scope.agent)]
    return SyncStatus(**fields, device=device, lost_values=lost, verification=last, rounds=rounds)


async def sync(scope: Scope, body: SyncBody | None = None) -> Synced:
    """Send and receive now; with a url, the critical state to another database."""
    request = body or SyncBody()
    account = await another(scope, request)
    started = time.perf_counter()
    daemon = scope.daemon
    async with scope.store() as store:
        if account is not None:
            sent = await daemon.databases.send_critical(account, scope.agent, store)
            return Synced(sent, 0, 0, 0, _since(started))
        if request.critical:
            tally = await daemon.replicas.sync(scope.agent, urgent_only=True)
        else:
            await daemon.workspaces.keep(store)
            tally = await daemon.replicas.sync(scope.agent)
            # The caller must find what was received.
            await daemon.workspaces.keep(store)
    return Synced(tally.sent, tally.received, tally.refused, tally.conflicts, _since(started))


async def verify(scope: Scope, body: RestoreBody) -> Verification:
    """Restore the agent into a temporary folder, and compare it with the live memory.

    A restore itself needs no running daemon.
    """
    if not body.verify:
        raise InvalidInput(
            "cannot restore over a memory in use: only 'verify' works here",
            field="verify",
            hint="stop the daemon and run `thermocline restore`",
        )
    return await scope.daemon.verifier.verify(scope.agent)


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


OPERATIONS: Final = (
    operation("GET", "/api/sync", show),
    operation("POST", "/api/sync", sync, role="write"),
    operation("POST", "/api/restore", verify, role="admin"),
)
