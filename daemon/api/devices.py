"""`/api/devices`: the devices that share an agent's replica."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from thermocline.sync import Replica

from ..errors import Conflict, NotFound, ReplicaRefused
from ..store import outbox
from .calls import Call, Reply, Route

_SHORTEST_PREFIX: Final = 4


class DeviceView(msgspec.Struct):
    """A device. Times are seconds since the epoch.

    `last_at` is its last contact with the replica. `behind` counts the rows of others that it
    had not received by then; None: it is retired, and waited for no longer. `this`: it is the
    device that answers.
    """

    id: str
    name: str
    first_at: int
    last_at: int
    retired_at: int | None
    this: bool
    behind: int | None


class Devices(msgspec.Struct):
    """Every device that was ever there, the latest contact first."""

    results: list[DeviceView]


class Retired(msgspec.Struct):
    """The device is counted no longer; what it has sent stays."""

    id: str
    name: str
    retired: bool = True


class Rejoined(msgspec.Struct):
    """This device is in use again; `rejoined` false: it was all along."""

    id: str
    rejoined: bool
    sent: int
    received: int


async def index(call: Call) -> Reply:
    """The devices of the agent."""
    async with call.store() as store:
        seq = (await store.read(outbox.link)).seq
        return Reply(Devices(await _devices(call, seq)))


async def retire(call: Call) -> Reply:
    """Wait for a device no longer: deletions are forgotten without it."""
    replicas = call.services.replicas
    async with call.store():
        device = _found(await _devices(call, 0), call.params["id"])
        await replicas.ask(call.agent, lambda replica: replica.retire(device.id, call.now))
        if device.this:
            # It notices at once, and stops.
            with suppress(ReplicaRefused):
                await replicas.sync(call.agent)
    return Reply(Retired(device.id, device.name))


async def rejoin(call: Call) -> Reply:
    """Take this device in again. Where it has missed deletions it compares everything."""
    replicas = call.services.replicas
    this = replicas.device.id

    async def take_in(replica: Replica) -> bool:
        found = await replica.devices(this, 0)
        retired = any(one.id == this and one.retired_at is not None for one in found)
        return retired and await replica.retire(this, None)

    async with call.store():
        rejoined = await replicas.ask(call.agent, take_in)
        tally = await replicas.sync(call.agent)
    return Reply(Rejoined(this, rejoined, tally.sent, tally.received))


async def _devices(call: Call, seq: int) -> list[DeviceView]:
    replicas = call.services.replicas
    this = replicas.device.id
    found = await replicas.ask(call.agent, lambda replica: replica.devices(this, seq))
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
            f"cannot tell which device '{key[:64]}' is: several are called so",
            field="id",
            hint="give more of its id",
        )
    return found[0]


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/devices",
        handler=index,
        summary="The devices that share the agent's replica",
        answer=Devices,
    ),
    Route(
        method="POST",
        path="/api/devices/rejoin",
        handler=rejoin,
        summary="Take this device in again after it was retired",
        role="admin",
        answer=Rejoined,
    ),
    Route(
        method="POST",
        path="/api/devices/{id}/retire",
        handler=retire,
        summary="Wait for a device no longer",
        role="admin",
        answer=Retired,
    ),
)
