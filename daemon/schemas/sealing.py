"""Sealed replicas: their keys, and devices that take part.

Times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Code = Annotated[
    str, Meta(min_length=12, max_length=32, description="the code that the inviting device shows")
]


class SealStatus(Struct, kw_only=True):
    """Whether replicas are sealed.

    Attributes:
        on: the setting `sync.seal`.
        keys: whether this device has the owner's keys; without them nothing is sent.
        epoch: the present epoch; each retired device begins another; 0 without keys.
        recovery: whether there is a recovery key.
        replicated: whether the agent has a replica; without one there is nothing to seal yet.
    """

    on: bool
    keys: bool
    epoch: int
    recovery: bool
    replicated: bool = False


class RecoveryKeyMade(Struct):
    """The new recovery key, which is shown this once: no device stores it."""

    recovery_key: str
    epoch: int


class Invited(Struct):
    """An open invitation: a code that works once, until `ends_at`."""

    code: str
    ends_at: float
    url: str | None = None
    token: str | None = None


class Visitor(Struct):
    """A device that has typed the code, and the words on its screen; None: none has yet."""

    device: str | None = None
    name: str | None = None
    words: tuple[str, ...] = ()


class VisitorAnswered(Struct):
    """The device that has the keys now, or was refused."""

    device: str
    name: str
    accepted: bool


class Knocked(Struct):
    """The inviting device, and the words on its screen."""

    device: str
    name: str
    words: tuple[str, ...]


class KeysTaken(Struct):
    """Whether this device has the keys now; the owner may not have answered yet."""

    joined: bool
