"""The devices that share an agent's replica."""

from __future__ import annotations

from msgspec import Struct


class DeviceView(Struct):
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


class DeviceList(Struct):
    """Every device that ever replicated, the latest contact first."""

    results: list[DeviceView]


class DeviceRetired(Struct):
    """The device is retired; everything that it has sent stays."""

    id: str
    name: str
    retired: bool = True


class DeviceRejoined(Struct):
    """This device is in use again; `rejoined` is false if it was not retired."""

    id: str
    rejoined: bool
    sent: int
    received: int
