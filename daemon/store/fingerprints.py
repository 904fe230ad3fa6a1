"""What a row says and of which version it is, in 16 bytes: to compare memories by.

Only what this release keeps of a row counts, and not in which words of JSON it was written.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from thermocline.sync import Row

from ..memory.records import Memory
from ..memory.tree import one_line
from . import (
    files,
    hot_rows,
    key_values,
    link,
    memory_rows,
    merge_rows,
    merging,
    tree_rows,
    understood,
    uses_rows,
)
from .outgoing import KINDS, METRIC_KIND, HotEntry, Merge, Pair, TreeNode, Use, row_of
from .rows import FIELDS, from_row

_BITS: Final = 128
_SIZE: Final = _BITS // 8
_ACCESSES: Final = Memory.__struct_fields__.index("access_count")
_LAST_ACCESS: Final = Memory.__struct_fields__.index("last_accessed_at")


class Standing(msgspec.Struct, frozen=True):
    """A row as it stands in a memory.

    Attributes:
        fingerprint: empty where there is no row: it was deleted, or the replica alone has it.
        said, put: the versions of what it says and of where it is filed.
        text: of a memory.
    """

    kind: str
    id: str
    fingerprint: bytes
    said: tuple[int, str]
    put: tuple[int, str] = (0, "")
    text: str = ""
    deleted: bool = False


def of_received(row: Row) -> bytes:
    """The fingerprint that a row has once it is taken over.

    Raises:
        MsgspecError, InvalidInput: it cannot be taken over.
    """
    if row.kind == memory_rows.KIND and row.data is not None:
        return _of_memory(understood.memory(row), 0)
    return _of_object(row)


def of_text(key: str, text: str) -> bytes:
    """The fingerprint of a statement that another tool wrote, which has no version."""
    return _hashed(("text", key, text))


def total(fingerprints: Iterable[bytes]) -> str:
    """One fingerprint of many, whatever their order, in hexadecimal digits."""
    return hexadecimal(sum(int.from_bytes(one, "big") for one in fingerprints))


def hexadecimal(total: int) -> str:
    """The digits for a sum of fingerprints, taken as numbers."""
    return f"{total % (1 << _BITS):0{_SIZE * 2}x}"


def everything(db: sqlite3.Connection) -> Iterator[Standing]:
    """Every row that travels, as it stands; of those that were deleted the traces."""
    rows = db.execute(
        "SELECT (SELECT coalesce(sum(count), 0) FROM uses WHERE uses.id = memories.id),"
        f" {', '.join(FIELDS)} FROM memories"
    )
    for uses, *values in rows:
        yield _standing_memory(from_row(values), int(uses))
    others = link.every(db, KINDS - {memory_rows.KIND})
    others += db.execute(
        "SELECT kind, id FROM tombstones WHERE kind = ?1 UNION SELECT ?1, id FROM remote_only",
        (memory_rows.KIND,),
    ).fetchall()
    for kind, key in others:
        found = row_of(db, kind, key)
        if found is not None:
            yield _standing(found)


def _standing_memory(memory: Memory, uses: int) -> Standing:
    return Standing(
        memory_rows.KIND,
        memory.id,
        _of_memory(memory, uses),
        (memory.clock, memory.device),
        (memory.filed_clock, memory.filed_device),
        memory.text,
    )


def _standing(row: Row) -> Standing:
    return Standing(
        row.kind,
        row.id,
        _of_object(row) if row.data is not None else b"",
        (row.clock, row.device),
        (row.place_clock, row.place_device),
        deleted=row.deleted,
    )


def _of_memory(memory: Memory, uses: int) -> bytes:
    """Uses travel by themselves: here those alone count that it brought along."""
    values = list(msgspec.structs.astuple(memory))
    values[_ACCESSES] -= uses
    values[_LAST_ACCESS] = None
    return _hashed((memory_rows.KIND, *values))


def _of_object(row: Row) -> bytes:
    value: Any = None
    if row.data is not None:
        value = msgspec.json.decode(row.data, type=_SHAPES.get(row.kind, Any))
    if isinstance(value, TreeNode):
        # Each device keeps the latest use that it knows of, whatever the row's version.
        value = one_line(value.desc)
    return _hashed((row.kind, row.id, value, row.clock, row.device))


def _hashed(parts: tuple[Any, ...]) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=_SIZE).digest()


class _Nothing(msgspec.Struct):
    """What a row says that says nothing but that it is there."""


_SHAPES: Final[dict[str, type[Any]]] = {
    hot_rows.KIND: HotEntry,
    tree_rows.KIND: TreeNode,
    key_values.KIND: Pair,
    merge_rows.KIND: Merge,
    merging.APART: _Nothing,
    uses_rows.KIND: Use,
    METRIC_KIND: float,
    files.KIND: files.Content,
}
