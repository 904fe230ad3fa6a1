"""The hot state as rows, one for each entry, so that devices merge it entry by entry."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from thermocline.sync import Row

from ..config.settings import Rules
from ..errors import InvalidInput
from ..memory import hot
from ..memory.hot import Displaced, Entry, EntryKey, HotState
from ..memory.metadata import extract
from ..memory.records import Json, Memory
from ..memory.scoring import HOT, score_of
from ..memory.similarity import exact_key
from . import memories, memory_rows, rows
from .kind import Kind
from .memory_table import SELECT, from_row
from .transaction import Transaction

# A hot state of 5 KB has room for at most about thirty promoted memories.
_PROMOTED_AT_MOST: Final = 40
_ROUNDING: Final = 1e-9


class HotEntry(msgspec.Struct, frozen=True):
    """The content of an entry's row."""

    value: Any
    position: int = 0


def load(db: sqlite3.Connection) -> HotState:
    """The hot state, without the memories promoted into it."""
    return hot.from_entries(entries(db))


def entries(db: sqlite3.Connection) -> dict[EntryKey, Entry]:
    """The entries, by section and key."""
    found: dict[EntryKey, Entry] = {}
    for name, data in rows.live_rows(db, KIND):
        section, _, key = name.partition("/")
        saved = msgspec.json.decode(data, type=HotEntry)
        found[section, key] = Entry(value=saved.value, position=saved.position)
    return found


def update(tx: Transaction, key: str, value: Json) -> tuple[str, ...]:
    """Merge `value` in as `key` asks, see `hot.update`; return a warning for each shortened part.

    Raises:
        InvalidInput: the key or the shape of the value is not valid.
        TooLarge: the value takes too much of the hot state.
    """
    trimmed = hot.trim(key, value, tx.rules.hot)
    save(tx, hot.update(load(tx.db), key, trimmed.value, tx.now), trimmed.displaced)
    return trimmed.warnings


def save(tx: Transaction, state: HotState, displaced: Iterable[Displaced] = ()) -> HotState:
    """Store `state` within its limits; displaced entries become ordinary memories."""
    fitted = hot.fit(state, tx.rules.hot)
    for given_up in (*displaced, *fitted.displaced):
        _remember(tx, given_up)
    changes = hot.diff(entries(tx.db), hot.entries(fitted.state))
    for (section, key), entry in changes.changed.items():
        data = {"value": entry.value, "position": entry.position}
        rows.write(tx, KIND, f"{section}/{key}", data)
    for section, key in changes.removed:
        rows.write(tx, KIND, f"{section}/{key}", None)
    tx.faces.add("hot")
    touched = {section for section, _ in (*changes.changed, *changes.removed)}
    if touched:
        tx.tell("hot.updated", sections=sorted(touched))
    return fitted.state


def promoted(db: sqlite3.Connection, now: float, rules: Rules) -> list[Memory]:
    """The warm memories that are hot and not superseded: pinned ones, then by score."""
    # Age only lowers a score, so its value without age is an upper bound.
    found = db.execute(
        f"{SELECT} WHERE archived_at IS NULL AND merged_into IS NULL AND superseded_by IS NULL"
        " AND (expires_at IS NULL OR expires_at > ?)"
        " AND (pinned OR importance * (1 + ? * access_count) > ?)",
        (now, rules.scoring.reinforcement_boost, HOT - _ROUNDING),
    )
    scored = [(score_of(memory, now, rules.scoring), memory) for memory in map(from_row, found)]
    best = sorted(
        (pair for pair in scored if pair[0] >= HOT), key=lambda pair: (not pair[1].pinned, -pair[0])
    )
    return [memory for _, memory in best[:_PROMOTED_AT_MOST]]


def document(db: sqlite3.Connection, now: float, rules: Rules) -> dict[str, Any]:
    """The hot document within its limits, promoted memories last.

    A wish that the owner's profile already has is not repeated.
    """
    state = load(db)
    wishes = state.owner_profile.get("preferences")
    listed = wishes if isinstance(wishes, list) else []
    told = {exact_key(one) for one in listed if isinstance(one, str)}
    new = [one for one in promoted(db, now, rules) if exact_key(one.text) not in told]
    return hot.document(state, new, rules.hot)


def _remember(tx: Transaction, displaced: Displaced) -> None:
    # The id is derived from the content, so that a repeatedly displaced entry is stored once.
    for part in _parts(displaced.text):
        digest = hashlib.sha256(f"{displaced.section}\0{part}".encode()).hexdigest()
        key = digest[:16]
        if memory_rows.fetch(tx.db, key) is not None:
            continue
        memories.insert(
            tx,
            Memory(
                id=key,
                text=part,
                event="hot_displaced",
                category=displaced.category,
                importance=displaced.importance,
                source=f"hot:{displaced.section}",
                metadata=extract(part),
                created_at=displaced.created_at or tx.now,
                updated_at=tx.now,
                writer="daemon",
            ),
        )


def _parts(text: str, limit: int = 60_000) -> Iterator[str]:
    """`text` in pieces of at most the size of a memory, in UTF-8 bytes."""
    raw = text.encode()
    while len(raw) > limit:
        # Back to the start of a character.
        cut = limit
        while raw[cut] & 0xC0 == 0x80:
            cut -= 1
        yield raw[:cut].decode()
        raw = raw[cut:]
    yield raw.decode()


def _applied(tx: Transaction, _before: Row | None, _after: Row) -> None:
    tx.settle_hot = True
    tx.faces.add("hot")


def _check(row: Row) -> None:
    section, _, _ = row.id.partition("/")
    if not hot.is_entry(section, msgspec.convert(row.data, HotEntry).value):
        raise InvalidInput(f"cannot take '{row.id}' into the hot state: it is not an entry")


KIND: Final = Kind(
    name="hot",
    fields=frozenset(HotEntry.__struct_fields__),
    vital=("value",),
    urgent=True,
    check=_check,
    applied=_applied,
)
