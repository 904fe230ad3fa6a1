"""The devices that share an agent's replica."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from thermocline.sync import Replica

from ..errors import Conflict, NotFound, ReplicaRefused
from ..shapes.devices import DeviceList, DeviceRejoined, DeviceRetired, DeviceView
from ..store import outbox
from .operation import operation
from .scope import Scope

_SHORTEST_PREFIX: Final = 4


async def index(scope: Scope) -> DeviceList:
    """List the devices that share the agent's replica."""
    async with scope.store(exists=True) as store:
        seq = (await store.read(outbox.link)).seq
        return DeviceList(await _devices(scope, seq))


async def retire(scope: Scope, id: str) -> DeviceRetired:  # noqa: A002 - the part of the path
    """Retire a device: deletions no longer wait until it has received them."""
    replicas = scope.daemon.replicas
    async with scope.store():
        device = _found(await _devices(scope, 0), id)
        await replicas.ask(scope.agent, lambda replica: replica.retire(device.id, scope.now))
        if device.this:
            # It notices at once, and stops.
            with suppress(ReplicaRefused):
                await replicas.sync(scope.agent)
    return DeviceRetired(device.id, device.name)


async def rejoin(scope: Scope) -> DeviceRejoined:
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
    return DeviceRejoined(this, rejoined, tally.sent, tally.received)


async def _devices(scope: Scope, seq: int) -> list[DeviceView]:
    replicas = scope.daemon.replicas
    this = replicas.device.id
    found = await replicas.ask(scope.agent, lambda replica: replica.devices(this, seq))
    return [DeviceView(**msgspec.structs.asdict(one), this=one.id == this) for one in found]


def _found(devices: list[DeviceView], key: str) -> DeviceView:
    """The device with this id, or the only one with this name or whose id begins so.

    A beginning has 4 characters or more. Of devices with the same name one in use is meant.
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


OPERATIONS: Final = (
    operation("GET", "/api/devices", index),
    operation("POST", "/api/devices/rejoin", rejoin, role="admin"),
    operation("POST", "/api/devices/{id}/retire", retire, role="admin"),
)
