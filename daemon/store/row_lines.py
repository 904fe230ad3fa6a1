"""Rows as lines of JSON, the format of backups and exports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import msgspec

from thermocline.sync import Clocks, Row

from ..memory.records import is_outside

_MEMORY: Final = "memory"
_LONGEST_LINE: Final = 16_777_216


class _Line(msgspec.Struct):
    kind: str
    id: str
    clocks: Clocks
    data: dict[str, Any] | None = None


def line_of(row: Row, *, to_read: bool = False) -> bytes:
    """A row as one line of JSON; `to_read`: a memory from outside is marked with its source."""
    data, clocks = row.encoded()
    whole = {
        "kind": row.kind,
        "id": row.id,
        "data": None if data is None else msgspec.Raw(data.encode()),
        "clocks": msgspec.Raw(clocks.encode()),
    }
    source = row.data.get("source") if to_read and row.kind == _MEMORY else None
    if isinstance(source, str) and is_outside(source):
        whole["quoted_from"] = source
    return msgspec.json.encode(whole) + b"\n"


def rows_in(lines: BinaryIO) -> Iterator[Row | None]:
    """The row of each line; None for an invalid line."""
    while line := lines.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := lines.readline(_LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            yield None
        elif line.strip():
            yield row_of(line)


def row_of(line: bytes) -> Row | None:
    """The row in a line; None if it is not valid."""
    try:
        result = msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return Row(kind=result.kind, id=result.id, data=result.data or {}, clocks=result.clocks)
