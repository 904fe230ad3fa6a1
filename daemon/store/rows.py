"""A memory as a row of the table `memories`, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ..memory.records import Memory, Metadata
from ..memory.warm import record_size

# `group` is a word of SQL's; its column is `grp`.
FIELDS: Final = tuple("grp" if name == "group" else name for name in Memory.__struct_fields__)
SELECT: Final = f"SELECT {', '.join(FIELDS)} FROM memories"
INSERT: Final = (
    f"INSERT INTO memories ({', '.join(FIELDS)}, size) "
    f"VALUES ({', '.join('?' * (len(FIELDS) + 1))})"
)
UPDATE: Final = (
    f"UPDATE memories SET {', '.join(f'{name} = ?' for name in FIELDS)}, size = ? WHERE id = ?"
)

_TAGS = FIELDS.index("tags")
_METADATA = FIELDS.index("metadata")
_DATA = FIELDS.index("data")
_NO_METADATA = "{}"


def to_row(memory: Memory) -> list[Any]:
    """The values for `INSERT`, the size in the warm file last."""
    row: list[Any] = [getattr(memory, name) for name in Memory.__struct_fields__]
    row[_TAGS] = _json(memory.tags)
    row[_METADATA] = _metadata_json(memory.metadata)
    row[_DATA] = None if memory.data is None else _json(memory.data)
    row.append(record_size(memory))
    return row


def from_row(row: Sequence[Any]) -> Memory:
    """The memory in a row of `SELECT`."""
    values = list(row)
    tags = values[_TAGS]
    values[_TAGS] = () if tags == "[]" else tuple(msgspec.json.decode(tags))
    metadata = values[_METADATA]
    values[_METADATA] = (
        Metadata() if metadata == _NO_METADATA else msgspec.json.decode(metadata, type=Metadata)
    )
    if values[_DATA] is not None:
        values[_DATA] = msgspec.json.decode(values[_DATA])
    return Memory(**dict(zip(Memory.__struct_fields__, values, strict=True)))


def _metadata_json(metadata: Metadata) -> str:
    if not (metadata.urls or metadata.commands or metadata.paths):
        return _NO_METADATA
    return _json(metadata)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
