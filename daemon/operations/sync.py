"""An agent's replica: its state, replicating now, its devices, and other databases of a call."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

from thermocline.sync import Replica, SyncError
from thermocline.sync.address import address

from ..errors import Conflict, InvalidInput, NotFound, ReplicaRefused, ThermoclineError
from ..replication.account import OF_A_CALL, Account, Secret, plain
from ..restore.verify import last_verification
from ..shapes import sync as shapes
from ..shapes.cold import DatabaseBody
from ..store import history, outbox
from .operation import Operation
from .scope import Scope
from .views import view_of

_SHORTEST_PREFIX: Final = 4
# EvoClaw's words, which its programs search for.
_BOTH: Final = "db-url and auth-token required"


@Operation("GET", "/api/sync")
async def show(scope: Scope) -> shapes.SyncStatus:
    """Show the state of the agent's replication."""
    replicas = scope.daemon.replicas
    async with scope.store() as store:
        if store.exists:
            await replicas.look_after(scope.agent)
        status = await replicas.status_of(scope.agent, store)
        lost, last = await store.read(lambda db: (history.conflicts(db), last_verification(db)))
    device = shapes.DeviceName(replicas.device.id, replicas.device.name)
    return view_of(
        shapes.SyncStatus,
        status,
        device=device,
        lost_values=lost,
        verification=last,
        rounds=[view_of(shapes.SyncRound, one) for one in replicas.rounds(scope.agent)],
    )


@Operation("POST", "/api/sync", role="write")
async def sync(scope: Scope, body: shapes.SyncBody | None = None) -> shapes.Synced:
    """Send and receive now; with a url, the critical state to another database."""
    request = body or shapes.SyncBody()
    account = await another(scope, request)
    started = time.perf_counter()
    daemon = scope.daemon
    async with scope.store() as store:
        if account is not None:
            sent = await daemon.databases.send_critical(account, scope.agent, store)
            return shapes.Synced(sent, 0, 0, 0, _since(started))
        if request.critical:
            tally = await daemon.replicas.sync(scope.agent, urgent_only=True)
        else:
            await daemon.workspaces.keep(store)
            tally = await daemon.replicas.sync(scope.agent)
            # The caller must find what was received.
            await daemon.workspaces.keep(store)
    return shapes.Synced(
        tally.sent, tally.received, tally.refused, tally.conflicts, _since(started)
    )


@Operation("POST", "/api/restore", role="admin")
async def verify(scope: Scope, body: shapes.RestoreBody) -> shapes.Verification:
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


@Operation("GET", "/api/devices")
async def devices(scope: Scope) -> shapes.DeviceList:
    """List the devices that share the agent's replica."""
    async with scope.store(exists=True) as store:
        seq = (await store.read(outbox.link)).seq
        return shapes.DeviceList(await _devices(scope, seq))


@Operation("POST", "/api/devices/{id}/retire", role="admin")
async def retire(scope: Scope, id: str) -> shapes.DeviceRetired:  # noqa: A002 - the part of the path
    """Retire a device: deletions no longer wait until it has received them."""
    replicas = scope.daemon.replicas
    async with scope.store():
        device = _found(await _devices(scope, 0), id)
        await replicas.ask(scope.agent, lambda replica: replica.retire(device.id, scope.now))
        if device.this:
            # It notices at once, and stops.
            with suppress(ReplicaRefused):
                await replicas.sync(scope.agent)
    return shapes.DeviceRetired(device.id, device.name)


@Operation("POST", "/api/devices/rejoin", role="admin")
async def rejoin(scope: Scope) -> shapes.DeviceRejoined:
    """Use this device again after it was retired.

    If it has missed deletions, it compares everything.
    """
    replicas = scope.daemon.replicas
    this = replicas.device.id

    async def take_in(replica: Replica) -> bool:
        found = await replica.devices(this, 0)
        retired = any(one.id == this and one.retired_at is not None for one in found)
        return retired and await replica.retire(this, None)

    async with scope.store():
        rejoined = await replicas.ask(scope.agent, take_in)
        tally = await replicas.sync(scope.agent)
    return shapes.DeviceRejoined(this, rejoined, tally.sent, tally.received)


async def _devices(scope: Scope, seq: int) -> list[shapes.DeviceView]:
    replicas = scope.daemon.replicas
    this = replicas.device.id
    found = await replicas.ask(scope.agent, lambda replica: replica.devices(this, seq))
    return [view_of(shapes.DeviceView, one, this=one.id == this) for one in found]


def _found(devices: list[shapes.DeviceView], key: str) -> shapes.DeviceView:
    """The device with this id, or the only one with this name or whose id begins with `key`.

    A prefix has 4 characters or more. Of devices with the same name the one in use is chosen.
    """
    found = [device for device in devices if device.id == key]
    if not found:
        found = [device for device in devices if device.name == key]
        found = [device for device in found if device.retired_at is None] or found
    if not found and len(key) >= _SHORTEST_PREFIX:
        found = [device for device in devices if device.id.startswith(key)]
    if not found:
        raise NotFound(
            f"no device has the id or name '{key[:64]}'",
            field="id",
            hint="see thermocline devices; 4 characters of an id are enough",
        )
    if len(found) > 1:
        raise Conflict(
            f"'{key[:64]}' names several devices",
            field="id",
            hint="give more of its id",
        )
    return found[0]


async def another(scope: Scope, named: DatabaseBody) -> Account | None:
    """The database that a call names; None: the agent's own replica.

    Raises:
        InvalidInput: the URL is not usable, or it or the token is missing.
        Forbidden: the caller may not name another database.
    """
    if not named.url:
        if named.token:
            raise InvalidInput(_BOTH, field="url", hint="name the database that the token opens")
        return None
    if await _is_own(scope, named):
        return None
    scope.require("admin")
    try:
        place = address(named.url)
    except SyncError as error:
        raise InvalidInput(error.message, field="url", hint=error.hint or None) from None
    if not named.token:
        raise InvalidInput(
            _BOTH, field="token", hint="only that of the agent's own replica may be left out"
        )
    return Account(place.geturl(), Secret(named.token.strip()), OF_A_CALL)


async def account_of(scope: Scope, named: DatabaseBody) -> Account:
    """The database that a call means, the agent's own replica included.

    Raises:
        NotFound: it names none, and the agent has no replica.
        ThermoclineError: as for `another`.
    """
    account = await another(scope, named) or await scope.daemon.replicas.account(scope.agent)
    if account is None:
        raise NotFound(
            f"'{scope.agent}' is not replicated", hint="name a database, or set sync.url"
        )
    return account


async def _is_own(scope: Scope, named: DatabaseBody) -> bool:
    try:
        own = await scope.daemon.replicas.account(scope.agent)
    except ThermoclineError:
        if not named.token:
            raise
        # A fault of the agent's own database does not concern another one.
        return False
    if own is None or plain(own.url) != plain(named.url or ""):
        return False
    return not named.token or own.token == Secret(named.token.strip())
