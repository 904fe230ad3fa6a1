"""What a replicator asks of the rows on this device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from .rows import Row


class Link(msgspec.Struct, frozen=True):
    """How far this device has followed one agent's rows on a remote.

    Attributes:
        epoch: of the remote's order; empty before the first contact.
        seq: up to where everything was received.
    """

    epoch: str = ""
    seq: int = 0


class Pending(msgspec.Struct, frozen=True):
    """A row that the remote does not have in this version.

    Attributes:
        row: as it stands.
        version: its digest.
        seen: the digest of the version that the remote had when this device saw it last; None:
            the remote had none. A push only replaces this version.
    """

    row: Row
    version: str
    seen: str | None


class Received(msgspec.Struct, frozen=True):
    """A row from the remote, with the digest of it that stands there."""

    row: Row
    version: str


class Applied(msgspec.Struct, frozen=True):
    """What applying rows did.

    Attributes:
        changed: rows that said something new.
        refused: rows that make no sense here and were left out.
        conflicts: rows in which another device had changed a field that was changed here too.
        copied: whether a row has a stamp of this device that this device never gave: its folder
            was copied, and it has to take another id.
        ahead: devices whose clock is more than a day ahead of this one's.
    """

    changed: int = 0
    refused: int = 0
    conflicts: int = 0
    copied: bool = False
    ahead: tuple[str, ...] = ()

    def __add__(self, other: Applied) -> Applied:
        """What both did together."""
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
        """How far the remote was followed."""

    async def pending(
        self, kinds: frozenset[str] | None, limit: int, max_bytes: int
    ) -> list[Pending]:
        """Rows that the remote does not have, the oldest change first; one at least, if any.

        Args:
            kinds: of these kinds alone; None: of all.
            limit: maximum number of rows.
            max_bytes: of their JSON; a single row may be larger.
        """

    async def taken(self, rows: Sequence[Pending], link: Link) -> None:
        """The remote has these versions now. A row that has changed since stays pending."""

    async def apply(self, rows: Sequence[Received], link: Link) -> Applied:
        """Merge what the remote has, and note how far it was followed.

        A row whose merged version differs from the remote's becomes pending over that version.
        """

    async def over(self, rows: Sequence[Pending]) -> None:
        """The remote has the version `seen` in the place of these rows, or nothing.

        Nothing can be made of that version: the next push goes over it.
        """

    async def set_aside(self, row: Pending, reason: str) -> None:
        """The remote cannot take this version: it is reported, and pending again once changed."""

    async def offer_all(self, link: Link) -> None:
        """Another remote, or one that was set back: every row is pending, and `link` begins."""
