"""The hot state as rows, one for each entry, so that devices merge it entry by entry."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection
from typing import Any, Final

import msgspec

from thermocline.sync import Row

from ...config.settings import Rules
from ...errors import InvalidInput
from ...memory import hot
from ...memory.hot import Displaced, Entry, EntryKey, HotState
from ...memory.hot.state import OBJECTS
from ...memory.metadata import extract
from ...memory.records import Json, Memory
from ...memory.scoring import HOT, score_of
from ...memory.similarity import exact_key
from ..database import rows
from ..database.rows import Kind
from ..database.transaction import Transaction
from . import memories, memory_rows
from .memory_rows import SELECT, from_row

# A hot state of 5 KB has room for at most about thirty promoted memories.
_PROMOTED_AT_MOST: Final = 40
_ROUNDING: Final = 1e-9


class HotEntry(msgspec.Struct, frozen=True):
    """The content of an entry's row.

    What was set `by_hand` is never replaced by what a conversation says.
    """

    value: Any
    position: int = 0
    by_hand: bool = False


def load(db: sqlite3.Connection) -> HotState:
    """The hot state, without the memories promoted into it."""
    return hot.from_entries(entries(db))


def entries(db: sqlite3.Connection) -> dict[EntryKey, Entry]:
    """The entries, by section and key."""
    entries: dict[EntryKey, Entry] = {}
    for name, data in rows.live_rows(db, KIND):
        section, _, key = name.partition("/")
        saved = msgspec.json.decode(data, type=HotEntry)
        entries[section, key] = Entry(value=saved.value, position=saved.position)
    return entries


def update(tx: Transaction, key: str, value: Json, *, by_hand: bool = False) -> None:
    """Merge `value` in as `key` asks; errors as `hot.update` and `hot.check_share`.

    With `by_hand` a person asks: the values of the owner and the agent are marked so.
    """
    hot.check_share(key, value, tx.rules.hot)
    names = value if by_hand and key in OBJECTS and isinstance(value, dict) else ()
    state = hot.update(load(tx.db), key, value, tx.now)
    save(tx, state, by_hand={(key, name) for name in names})


def is_by_hand(db: sqlite3.Connection, section: str, name: str) -> bool:
    """Whether a person has set a value of the owner or the agent."""
    row = rows.load(db, KIND, f"{section}/{name}")
    return row is not None and row.data.get("by_hand") is True


def save(tx: Transaction, state: HotState, *, by_hand: Collection[EntryKey] = ()) -> HotState:
    """Store `state` within its limits; displaced entries become ordinary memories.

    The entries `by_hand` are marked as such, and those that were stay so.
    """
    fitted = hot.fit(state, tx.rules.hot)
    for displaced in fitted.displaced:
        _remember(tx, displaced)
    new = hot.entries(fitted.state)
    changes = hot.diff(entries(tx.db), new)
    unmarked = [key for key in by_hand if key in new and not is_by_hand(tx.db, *key)]
    written = changes.changed | {key: new[key] for key in unmarked}
    for (section, key), entry in written.items():
        data = {"value": entry.value, "position": entry.position}
        if (section, key) in by_hand or is_by_hand(tx.db, section, key):
            data["by_hand"] = True
        rows.write(tx, KIND, f"{section}/{key}", data)
    for section, key in changes.removed:
        rows.write(tx, KIND, f"{section}/{key}", None)
    tx.state_files.add("hot")
    touched = {section for section, _ in (*changes.changed, *changes.removed)}
    if touched:
        tx.emit("hot.updated", sections=sorted(touched))
    return fitted.state


def promoted(db: sqlite3.Connection, now: float, rules: Rules) -> list[Memory]:
    """The warm memories that are hot and not superseded: pinned ones, then by score.

    Nothing that came from outside is among them, whatever its fields say.
    """
    # Age only lowers a score, so its value without age is an upper bound.
    result = db.execute(
        f"{SELECT} WHERE archived_at IS NULL AND merged_into IS NULL AND superseded_by IS NULL"
        " AND (expires_at IS NULL OR expires_at > ?)"
        " AND (pinned OR importance * (1 + ? * access_count) > ?)",
        (now, rules.scoring.reinforcement_boost, HOT - _ROUNDING),
    )
    scored = [
        (score_of(memory, now, rules.scoring), memory)
        for memory in map(from_row, result)
        if not memory.is_outside
    ]
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
    listed_keys = {exact_key(item) for item in listed if isinstance(item, str)}
    new = [
        memory for memory in promoted(db, now, rules) if exact_key(memory.text) not in listed_keys
    ]
    return hot.document(state, new, rules.hot)


def _remember(tx: Transaction, displaced: Displaced) -> None:
    """Keep it as a memory, once: an entry that leaves again replaces what its memory says."""
    key = _memory_id(displaced.section, displaced.name or displaced.text)
    known = memory_rows.fetch(tx.db, key)
    if known is not None and known.merged_into is not None:
        key = _memory_id(displaced.section, displaced.text)
        known = memory_rows.fetch(tx.db, key)
    if known is not None:
        if known.text != displaced.text:
            changed = {"text": displaced.text, "metadata": extract(displaced.text)}
            changed_now = msgspec.structs.replace(known, **changed, updated_at=tx.now)
            memories.replace(tx, known, changed_now)
        return
    memories.insert(
        tx,
        Memory(
            id=key,
            text=displaced.text,
            event="hot_displaced",
            category=displaced.category,
            importance=displaced.importance,
            source=f"hot:{displaced.section}",
            metadata=extract(displaced.text),
            created_at=displaced.created_at or tx.now,
            updated_at=tx.now,
            writer="daemon",
        ),
    )


def _memory_id(section: str, name: str) -> str:
    return hashlib.sha256(f"{section}\0{name}".encode()).hexdigest()[:16]


def _applied(tx: Transaction, _before: Row | None, _after: Row) -> None:
    tx.enforce_hot = True
    tx.state_files.add("hot")


def _check(row: Row) -> None:
    section, _, _ = row.id.partition("/")
    if not hot.is_entry(section, msgspec.convert(row.data, HotEntry).value):
        raise InvalidInput(f"cannot take '{row.id}' into the hot state: it is not an entry")


KIND: Final = Kind(
    name="hot",
    clears_secrets=True,
    fields=frozenset(HotEntry.__struct_fields__),
    liveness_fields=("value",),
    urgent=True,
    check=_check,
    applied=_applied,
)
