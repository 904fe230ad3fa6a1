"""The port to the rows on this device, as a replicator uses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from .rows import Row


class Link(msgspec.Struct, frozen=True):
    """The position up to which this device has received one agent's rows from a remote.

    Attributes:
        epoch: of the remote's order; empty before the first contact.
        seq: up to where everything was received.
    """

    epoch: str = ""
    seq: int = 0


class Pending(msgspec.Struct, frozen=True):
    """A row that the remote does not have in this version.

    Attributes:
        row: this version.
        version: its digest.
        seen: the digest of the version that the remote had when this device last saw it; None: the
            remote had none. A push only replaces this version.
    """

    row: Row
    version: str
    seen: str | None


class Received(msgspec.Struct, frozen=True):
    """A row from the remote, with its digest there."""

    row: Row
    version: str


class Applied(msgspec.Struct, frozen=True):
    """What applying rows did.

    Attributes:
        changed: rows that were new or newer.
        refused: rows that are unreadable here, and left out.
        conflicts: rows in which another device had changed a field that was changed here too.
        copied: whether a row has a stamp of this device that this device never issued: its folder
            was copied, and it must take another id.
        ahead: devices whose clock is more than a day ahead of this one's.
    """

    changed: int = 0
    refused: int = 0
    conflicts: int = 0
    copied: bool = False
    ahead: tuple[str, ...] = ()

    def __add__(self, other: Applied) -> Applied:
        """The sum of both."""
        return Applied(
            self.changed + other.changed,
            self.refused + other.refused,
            self.conflicts + other.conflicts,
            self.copied or other.copied,
            tuple(sorted({*self.ahead, *other.ahead})),
        )


class Local(Protocol):
    """One agent's rows on this device. Each call is one durable transaction."""

    async def link(self) -> Link:
        """The position up to which the remote was received."""

    async def pending(
        self, kinds: frozenset[str] | None, limit: int, max_bytes: int
    ) -> list[Pending]:
        """Rows that the remote lacks, the oldest change first; at least one, if any.

        Args:
            kinds: only these kinds; None: all.
            limit: maximum number of rows.
            max_bytes: of their JSON; a single row may be larger.
        """

    async def taken(self, rows: Sequence[Pending], link: Link) -> None:
        """The remote has these versions now. A row that has changed since stays pending."""

    async def apply(self, rows: Sequence[Received], link: Link) -> Applied:
        """Merge rows of the remote, and store the new position.

        A row whose merged version differs from the remote's becomes pending over that version.
        """

    async def over(self, rows: Sequence[Pending]) -> None:
        """The remote has the version `seen` in the place of these rows, or nothing.

        That version is unreadable: the next push replaces it.
        """

    async def set_aside(self, row: Pending, reason: str) -> None:
        """The remote cannot take this version: it is reported, and pending again once changed."""

    async def offer_all(self, link: Link) -> None:
        """For another remote, or one that was set back: mark every row as pending, reset `link`."""
