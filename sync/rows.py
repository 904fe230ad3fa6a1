"""What travels between devices: rows with versions. What a row means is its owner's business."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

# The kind whose rows other tools read: they stand in a table of their own, with plain columns.
STATEMENT: Final = "memory"
# A version below every other: of what no device of ours has written.
UNVERSIONED: Final = (-1, "")


class View(msgspec.Struct, frozen=True):
    """What other tools read of a statement. `created_at` is in whole seconds since the epoch."""

    text: str
    category: str
    importance: float
    created_at: int
    access_count: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row at one version.

    A statement has two parts that change by themselves: what it says, and where it is put. Each
    has a version of its own, so that moving it on one device and changing it on another both
    survive. Every other kind has the first part alone.

    Attributes:
        data: JSON; None for a row that was deleted, or, with a `view`, for a statement that
            another tool has written, or, with a `place` too, for one that is only put elsewhere.
        clock, device: the version; of two rows the higher pair wins.
        place: JSON of the second part, with its version.
        view: for statements.
        seq: where the row stands in the remote's order, once it came from there.
    """

    kind: str
    id: str
    data: str | None
    clock: int
    device: str
    place: str | None = None
    place_clock: int = 0
    place_device: str = ""
    view: View | None = None
    seq: int = 0

    @property
    def deleted(self) -> bool:
        """Whether this is the trace of a deleted row."""
        return self.data is None and self.view is None

    @property
    def moved(self) -> bool:
        """Whether only the place of a statement is told."""
        return self.data is None and self.place is not None


class Mark(msgspec.Struct, frozen=True):
    """A row that has changed here since the remote last heard of it."""

    kind: str
    id: str
    clock: int


class Outgoing(msgspec.Struct, frozen=True):
    """A mark with the row as it stands; None where nothing is left of it to tell."""

    mark: Mark
    row: Row | None


def digest(data: str) -> str:
    """What shows that a row came back as it was sent: 16 hexadecimal digits of BLAKE2b."""
    return hashlib.blake2b(data.encode(), digest_size=8).hexdigest()
