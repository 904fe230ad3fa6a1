"""The port to the local store: what a replicator needs of one device's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from .rows import Mark, Outgoing, Row


class Link(msgspec.Struct, frozen=True):
    """How far this device has followed one remote. It is kept with the rows themselves.

    Attributes:
        epoch: which remote: another one, or one begun anew, has another.
        statements: the order and id of the last statement received.
        objects: the order, kind and id of the last row of the other kinds.
        seen: everything up to here has been received.
        critical: the version of the critical state written or read last.
        unpublished: whether rows were sent that the critical state there does not show yet.
    """

    epoch: str = ""
    statements: tuple[int, str] = (0, "")
    objects: tuple[int, str, str] = (0, "", "")
    seen: int = 0
    critical: int = 0
    unpublished: bool = False


class Merged(msgspec.Struct, frozen=True):
    """What came of merging received rows.

    Attributes:
        changed: how many changed something here.
        refused: how many cannot be understood, and were passed over.
    """

    changed: int = 0
    refused: int = 0


class Local(Protocol):
    """The rows of one agent on this device. A call that has returned is durable."""

    async def link(self) -> Link:
        """How far the remote was followed."""

    async def relink(self, link: Link) -> None:
        """Begin with another remote: every row is marked as changed."""

    async def outgoing(self, kinds: frozenset[str] | None, limit: int) -> list[Outgoing]:
        """Marked rows, the oldest marks first; of some kinds alone, or of all."""

    async def sent(self, marks: Sequence[Mark], seq: int, link: Link) -> None:
        """The remote has these rows now, at `seq`; marks made again meanwhile stay."""

    async def merge(self, rows: Sequence[Row], link: Link) -> Merged:
        """Take over what is newer in `rows`, and remember `link` with the last of them.

        This may be done in several transactions; done again, it comes to the same.

        A mark whose row the remote has as new as this device is taken away. A statement of
        another tool is taken over unless its id is known; then it is marked, since the other
        tool has overwritten it.
        """

    async def forget_before(self, seq: int) -> None:
        """Drop the traces of rows whose deletion every device knows."""

    async def sweep(self, keep: frozenset[tuple[str, str]]) -> int:
        """Remove the rows that the remote has not, but for what was changed here since.

        This is done in several transactions; done again, it goes on. No trace is left.

        Args:
            keep: kind and id of every row that the remote has.

        Returns:
            How many went.
        """

    async def critical(self) -> str:
        """The critical state as a JSON object, for those who read it as a whole."""

    async def adopt_critical(self, data: str) -> bool:
        """Take over what another tool has written as the critical state; False: unreadable."""
