"""What the rows of a replica mean, once it is seen that they mean something.

The replica is written by other devices, by later releases and by other tools, and a disk or a
person may have spoilt it: one row must not keep the state files from being written, or the rest
from coming. Every function raises `MsgspecError`, `InvalidInput` or `RecursionError` for a row
that this release cannot hold.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from thermocline.sync import Row

from ..errors import InvalidInput
from ..memory import hot, workspace
from ..memory.checks import (
    CATEGORY_CHARS,
    check_category,
    check_data,
    check_importance,
    check_text,
    check_time,
)
from ..memory.records import Memory
from ..memory.tree import ROOT, one_line
from . import merge_rows, uses_rows
from .files import Content
from .outgoing import HotEntry, Merge, Pair, Place, TreeNode, Use

T = TypeVar("T")
# What came is not cut: other devices may be allowed longer texts.
_ANY_SIZE: Final = 1 << 62
_SHORT_TEXTS: Final = ("subject", "outcome", "source", "actor", "group", "writer", "event")
_TIMES: Final = ("created_at", "updated_at", "last_accessed_at", "expires_at", "archived_at")


def memory(row: Row) -> Memory:
    """A memory of ours, with those uses alone that it brought along from elsewhere."""
    said = _read(row, Memory)
    place = Place(said.category)
    if row.place is not None:
        place = msgspec.json.decode(row.place, type=Place)
    found = msgspec.structs.replace(
        said,
        id=row.id,
        category=check_category(place.category, CATEGORY_CHARS),
        original_category=place.original_category,
        archived_at=place.archived_at,
        clock=row.clock,
        device=row.device,
        filed_clock=row.place_clock,
        filed_device=row.place_device,
    )
    check_memory(found)
    return found


def check_memory(memory: Memory) -> None:
    """Refuse what could not be shown or scored."""
    check_text(memory.id, _ANY_SIZE, field="id")
    check_text(memory.text, _ANY_SIZE)
    check_importance(memory.importance)
    check_data(memory.data, _ANY_SIZE)
    for name in _TIMES:
        if (time := getattr(memory, name)) is not None:
            check_time(time, field=name)
    for name in _SHORT_TEXTS:
        if "\0" in getattr(memory, name):
            raise InvalidInput(f"remove the NUL character of '{name}'", field=name)


def entry(row: Row) -> tuple[str, str, HotEntry]:
    """An entry of the hot state, with its section and key."""
    found = _read(row, HotEntry)
    section, _, name = row.id.partition("/")
    if not hot.is_entry(section, found.value):
        raise InvalidInput(f"cannot take '{row.id}' into the hot state: it is no entry")
    return section, name, found


def node(row: Row) -> TreeNode:
    """A category."""
    found = _read(row, TreeNode)
    if row.id == ROOT or check_category(row.id, CATEGORY_CHARS, field="path") != row.id:
        raise InvalidInput(f"cannot take '{row.id}' for a category", field="path")
    check_time(found.last_access, field="last_access")
    return msgspec.structs.replace(found, desc=one_line(found.desc))


def pair(row: Row) -> Pair:
    """A key's value."""
    found = _read(row, Pair)
    check_text(row.id, _ANY_SIZE, field="key")
    check_time(found.created_at, field="created_at")
    check_time(found.updated_at, field="updated_at")
    return found


def merge(row: Row) -> Merge:
    """What undoing a merge needs."""
    found = _read(row, Merge)
    record = merge_rows.decode(bytes(found.record))
    if (record.retired, record.kept) != (row.id, found.kept):
        raise InvalidInput(f"cannot take the record of a merge of '{row.id}': it is of others")
    return found


def use(row: Row) -> tuple[str, str, Use]:
    """How often a device has used a memory, with the ids of both."""
    found = _read(row, Use)
    key, device = uses_rows.parts_of(row.id)
    if not key or not device or found.count < 0:
        raise InvalidInput(f"cannot count '{row.id}'")
    check_time(found.last_at, field="last_at")
    return key, device, found


def file(row: Row) -> Content:
    """What a file of the workspace says."""
    found = _read(row, Content)
    if not workspace.belongs(row.id) or len(found.text.encode()) > workspace.LARGEST:
        raise InvalidInput(f"cannot take '{row.id}' for a file of the workspace")
    check_time(found.modified_at, field="modified_at")
    return found


def metric(row: Row) -> tuple[str, str, float]:
    """A counter's name, the device that counts, and the number."""
    name, _, device = row.id.rpartition("/")
    if not name or not device or "@" in name:
        raise InvalidInput(f"cannot count '{row.id}'")
    return name, device, _read(row, float)


def _read(row: Row, kind: type[T]) -> T:
    return msgspec.json.decode(row.data or "null", type=kind)
