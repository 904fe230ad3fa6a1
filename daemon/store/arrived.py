"""What a statement that came from a replica says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from thermocline.sync import Row

from ..errors import InvalidInput
from ..memory.checks import check_category
from ..memory.metadata import extract
from ..memory.records import DEFAULT_CATEGORY, Memory
from ..memory.variants.values import moment
from . import understood


def shown(rows: Iterable[Row], now: float) -> Iterator[Memory]:
    """The memories in `rows`, for showing them; what cannot be understood is passed over.

    Their uses are counted up to when each row was sent.
    """
    for row in rows:
        try:
            memory = adopted(row, now) if row.data is None else understood.memory(row)
        except (msgspec.MsgspecError, InvalidInput, RecursionError):
            continue
        if row.view is not None:
            memory = msgspec.structs.replace(memory, access_count=max(0, row.view.access_count))
        yield memory


def adopted(row: Row, now: float) -> Memory:
    """The memory that another tool has archived; it has no version.

    Raises:
        InvalidInput: it is none.
    """
    assert row.view is not None
    view = row.view
    created_at = moment(view.created_at)
    created_at = now if created_at is None else created_at
    memory = Memory(
        id=row.id,
        text=view.text,
        category=_category(view.category),
        importance=min(1.0, max(0.0, view.importance)),
        access_count=max(0, view.access_count),
        metadata=extract(view.text),
        created_at=created_at,
        updated_at=created_at,
        archived_at=now,
        source="evoclaw",
        writer="replica",
    )
    understood.check_memory(memory)
    return memory


def _category(text: str) -> str:
    try:
        return check_category(text)
    except InvalidInput:
        return DEFAULT_CATEGORY
