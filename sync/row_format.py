"""How the rows of an agent are written on a remote; `sync/sealing/` has those it cannot read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from .clock import TOO_HIGH
from .rows import Row, decode_row, digest

Value: TypeAlias = str | int | float | None
# Kind, id, the version seen, the version, data and clocks.
Columns: TypeAlias = tuple[str, str, str | None, str, str | None, str]
# What `RowFormat.received` takes.
COLUMNS: Final = "kind, id, version, data, clocks"


class Pending(msgspec.Struct, frozen=True):
    """A row that the remote does not have in this version."""

    row: Row
    version: str  # its digest
    # The digest of the version that the remote had when this device last saw it; None: the remote
    # had none. A push only replaces this version.
    seen: str | None
    # Its data and clocks, if they are known, as `Row.encoded` returns them.
    encoded: tuple[str | None, str] | None = None
    # The number of the memory's state in which it was read, if states have one.
    as_of: int | None = None

    @property
    def texts(self) -> tuple[str | None, str]:
        """Its data and clocks as JSON."""
        return self.encoded or self.row.encoded()


class Received(msgspec.Struct, frozen=True):
    """A row from the remote, with its digest there."""

    row: Row
    version: str


class Unreadable(msgspec.Struct, frozen=True):
    """A row on the remote that is invalid, or too large for an answer."""

    kind: str
    id: str
    version: str | None  # the version on the remote, if known, as it is for `Pending.seen`
    reason: str  # what is wrong with it


class RowFormat:
    """The rows of one agent as they are: whoever can read the remote can read them."""

    page: str = COLUMNS  # the SQL of the columns that `listed` reads

    def __init__(self, agent: str) -> None:
        self.agent = agent  # what stands for the agent there

    @property
    def epoch(self) -> int:
        """In which rows are sealed; 0: they are not."""
        return 0

    def key(self, kind: str, key: str) -> tuple[str, str]:
        """What stands for the kind and the id of a row there."""
        return kind, key

    def version(self, version: str | None) -> str | None:
        """What stands for a version there."""
        return version

    def columns(self, row: Pending) -> Columns:
        """A row as it is written there."""
        return (*row.row.key, row.seen, row.version, *row.texts)

    def size(self, row: Pending) -> int:
        """About the bytes that a row takes in a push; `ValueError` says why it cannot be sent.

        A sealed one, which is compressed, takes two thirds of that, and seldom up to half as much
        again: to know it, the row would have to be sealed twice.
        """
        return size_of(row)

    def received(self, line: Sequence[Value]) -> Received | Unreadable:
        """A row as received: kind, id, version, data, clocks. Any program may have written it.

        `KeyMissing`: it was sealed in a later epoch than the last one known here.
        """
        kind, key, version, data, clocks = line
        if (
            not isinstance(kind, str)
            or not isinstance(key, str)
            or not isinstance(version, str)
            or not isinstance(data, str | None)
            or not isinstance(clocks, str)
        ):
            return self.unreadable(line[:3], "it has columns of the wrong type")
        row = read_row(kind, key, data, clocks)
        if isinstance(row, str):
            return self.unreadable(line[:3], row)
        if version != digest(data, clocks):
            return self.unreadable(line[:3], "it is damaged: its digest differs")
        return Received(row, version)

    def listed(self, line: Sequence[Value]) -> Received | Unreadable | None:
        """A row of a page; None: ask for it with all that `received` takes; errors as there."""
        return self.received(line)

    def unreadable(self, line: Sequence[Value], reason: str) -> Unreadable:
        """A row of which only kind, id and version were received."""
        kind, key, version = line
        return Unreadable(str(kind), str(key), None if version is None else str(version), reason)

    def conceal(self, place: str, text: str) -> str:  # noqa: ARG002 - for those that seal
        """A text about something else than a row, such as the name of a device, for one place."""
        return text

    def reveal(self, place: str, written: str) -> str:  # noqa: ARG002 - likewise
        """That text; empty if it cannot be read, or is for another place."""
        return written


def size_of(pending: Pending) -> int:
    """The bytes that a plain row takes in a push, with the name of a device.

    `ValueError` says why it cannot be sent as it is.
    """
    if "\0" in pending.row.kind or "\0" in pending.row.id:
        raise ValueError("its name holds a NUL character")
    try:
        written = (*pending.row.key, pending.seen, pending.version, *pending.texts)
        return 70 + len(msgspec.json.encode(written))
    except (ValueError, TypeError, RecursionError):
        raise ValueError("it cannot be written as JSON") from None


def read_row(kind: str, key: str, data: str | None, clocks: str) -> Row | str:
    """The row in these texts, or what is wrong with them."""
    try:
        row = decode_row(kind, key, data, clocks)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "its data or its clocks are invalid"
    return row if has_valid_clocks(row) else "its clock is beyond the year 2200"


def has_valid_clocks(row: Row) -> bool:
    """Whether all stamps of a row lie between 1970 and 2200."""
    clocks = row.clocks
    if not clocks.fields and clocks.deleted is None:
        return 0 <= clocks.at[0] < TOO_HIGH
    return all(0 <= stamp < TOO_HIGH for stamp, _ in clocks.stamps)
