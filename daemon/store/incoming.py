"""Taking over rows that came from the replica: of two versions of a row the later stays.

Nothing here makes a new version or tells the replica anything, but where a limit is exceeded
afterwards; so devices that have received the same rows hold the same, and are then silent.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from thermocline.sync import TOO_HIGH, Link, Merged, Row

from ..errors import InvalidInput, ThermoclineError
from ..memory.records import Memory, joined
from . import (
    arrived,
    files,
    hot_rows,
    key_values,
    link,
    memories,
    memory_rows,
    mending,
    merge_rows,
    merging,
    remote_rows,
    returning,
    tree_rows,
    understood,
    uses_rows,
    versions,
)
from .outgoing import METRIC_KIND
from .remote_rows import Note
from .transaction import Transaction

# What a row of the replica can cause that was damaged, or written by somebody else: other errors
# of SQLite's mean the disk.
_NONSENSE: Final = (
    ThermoclineError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RecursionError,
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)


def merge(tx: Transaction, rows: Sequence[Row], to: Link) -> Merged:
    """Merge rows into the memory, and note how far the replica was followed.

    No rows mean that all have come: what they have left untrue is then mended.
    """
    merged = _merge_all(tx, rows)
    if not rows:
        mending.mend(tx)
    link.save(tx, to)
    if rows:
        # So that a restart knows of a version above all that came, and the state files show one.
        tx.version()
    if merged.changed:
        tx.tell("replica.received", rows=merged.changed)
    return merged


def _merge_all(tx: Transaction, rows: Sequence[Row]) -> Merged:
    """Take over all rows together; where one makes no sense, one after the other."""
    try:
        with tx.undone_on_failure():
            return Merged(sum(_merge(tx, row) for row in rows))
    except _NONSENSE:
        return _merge_each(tx, rows)


def _merge_each(tx: Transaction, rows: Sequence[Row]) -> Merged:
    changed = refused = 0
    for row in rows:
        try:
            with tx.undone_on_failure():
                changed += _merge(tx, row)
        except _NONSENSE:
            refused += 1
    return Merged(changed, refused)


def _merge(tx: Transaction, row: Row) -> bool:
    """Take over one row; True: something changed."""
    if max(row.clock, row.place_clock) >= TOO_HIGH:
        raise InvalidInput(f"cannot take over '{row.id}': its version is none")
    tx.seen(max(row.clock, row.place_clock))
    if row.kind == memory_rows.KIND and row.data is None and row.view is not None:
        return _adopt(tx, row)
    if row.deleted:
        return _bury(tx, row)
    take = _TAKERS.get(row.kind)
    if take is None:
        raise InvalidInput(f"cannot take over '{row.id}': this release knows no '{row.kind}'")
    if row.kind not in _DIFFERENT and not versions.is_newer(tx, row):
        return False
    return take(tx, row)


def _bury(tx: Transaction, row: Row) -> bool:
    """Delete what a tombstone is newer than, and keep the tombstone."""
    if not versions.is_known(row.kind):
        return False
    if not versions.is_newer(tx, row):
        # It may be this device's own, which was sent at a place that was not heard of.
        tx.db.execute(
            "UPDATE tombstones SET seq = ? WHERE kind = ? AND id = ? AND clock = ? AND device = ?",
            (row.seq, row.kind, row.id, row.clock, row.device),
        )
        return False
    was = versions.here(tx, row.kind, row.id) != versions.NONE
    if was:
        remove(tx, row.kind, row.id)
    tx.db.execute(
        "INSERT OR REPLACE INTO tombstones (kind, id, deleted_at, clock, device, seq)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (row.kind, row.id, tx.now, row.clock, row.device, row.seq),
    )
    return was


def remove(tx: Transaction, kind: str, key: str) -> None:
    """Remove a row that other devices know is gone; no trace is left."""
    if kind == memory_rows.KIND:
        _remove_memory(tx, key)
        return
    if kind == uses_rows.KIND:
        uses_rows.drop(tx, *uses_rows.parts_of(key))
        return
    versions.erase(tx, kind, key)
    if kind == tree_rows.KIND:
        mending.category_gone(tx)
    _show(tx, kind)


def _remove_memory(tx: Transaction, key: str) -> None:
    gone: Memory | Note | None = memory_rows.fetch(tx.db, key)
    if isinstance(gone, Memory):
        row = memory_rows.row_of(tx, key)
        memory_rows.take_away(tx, gone)
        memory_rows.show(tx, row, gone, was_archived=gone.archived_at is not None)
    else:
        gone = remote_rows.find(tx.db, key)
        remote_rows.drop(tx, key)
    if gone is None:
        return
    mending.links_came(tx)
    tx.tell("memory.deleted", id=key, category=gone.category)


def _take_memory(tx: Transaction, row: Row) -> bool:
    """Join what came with what is here: what it says, and where it is filed, each at its latest."""
    buried = versions.buried(tx, row.kind, row.id)
    if (row.clock, row.device) <= buried:
        # The replica would not hold both, so it has lost the trace of the deletion.
        tx.changed(row.kind, row.id, buried[0])
        return False
    came = returning.decoded(tx.db, row)
    old = memory_rows.fetch(tx.db, row.id)
    note = None if old is not None else remote_rows.find(tx.db, row.id)
    if note is not None:
        remote_rows.seen(tx, note)
        came = returning.placed(came, note)
        if came.said <= note.said and came.archived_at is not None:
            return returning.refile(tx, row, came, note)
    if old is None:
        number = memory_rows.put_new(tx, came)
        if came.put == (row.place_clock, row.place_device):
            link.heard(tx, row)
        tx.tell("memory.stored", id=came.id, category=came.category, event=came.event)
    else:
        new = _join(old, came)
        if new.said == came.said and new.put == came.put:
            link.heard(tx, row)
        else:
            tx.changed(row.kind, row.id, max(new.clock, new.filed_clock))
        if (new.said, new.put) == (old.said, old.put):
            return False
        number = memory_rows.put_over(tx, old, new)
        came = new
        tx.tell("memory.updated", id=came.id, category=came.category, event=came.event)
    was_archived = old is not None and old.archived_at is not None
    memory_rows.show(tx, number, came, was_archived=was_archived)
    tree_rows.ensure(tx, came.category)
    if came.merged_into is not None or came.superseded_by is not None:
        mending.links_came(tx)
    return True


def _join(old: Memory, came: Memory) -> Memory:
    """Each part at its latest. What was counted before there were devices goes with the text."""
    later = came if came.said > old.said else old
    return msgspec.structs.replace(
        joined(old, came),
        access_count=later.access_count,
        last_accessed_at=later.last_accessed_at,
    )


def _adopt(tx: Transaction, row: Row) -> bool:
    """Take over what another tool has archived.

    A known id means that it has written over ours, of which it knows but a part: ours is sent
    again. One that was deleted here stays so.
    """
    known = memory_rows.fetch(tx.db, row.id)
    buried, _ = versions.buried(tx, row.kind, row.id)
    if known is not None or buried >= 0:
        version = buried if known is None else max(known.clock, known.filed_clock)
        tx.changed(row.kind, row.id, version)
        return False
    # Its place in the replica's order is a version below every one of ours: whichever device has
    # all of it, or has deleted it, goes before.
    adopted = arrived.adopted(row, tx.now)
    memories.insert(tx, msgspec.structs.replace(adopted, clock=max(1, row.seq), device=tx.device))
    return True


def _take_hot(tx: Transaction, row: Row) -> bool:
    section, name, entry = understood.entry(row)
    value = msgspec.json.encode(entry.value).decode()
    tx.db.execute(
        "INSERT OR REPLACE INTO hot VALUES (?, ?, ?, ?, ?, ?)",
        (section, name, value, entry.position, row.clock, row.device),
    )
    return _taken(tx, row)


def _take_node(tx: Transaction, row: Row) -> bool:
    node = understood.node(row)
    tx.db.execute(
        "INSERT INTO tree(path, desc, last_access, clock, device) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET desc = excluded.desc, clock = excluded.clock,"
        " device = excluded.device, last_access = max(last_access, excluded.last_access)",
        (row.id, node.desc, node.last_access, row.clock, row.device),
    )
    return _taken(tx, row)


def _take_pair(tx: Transaction, row: Row) -> bool:
    pair = understood.pair(row)
    tx.db.execute(
        "INSERT OR REPLACE INTO kv VALUES (?, ?, ?, ?, ?, ?)",
        (row.id, pair.value, pair.created_at, pair.updated_at, row.clock, row.device),
    )
    return _taken(tx, row)


def _take_merge(tx: Transaction, row: Row) -> bool:
    found = understood.merge(row)
    tx.db.execute(
        "INSERT INTO merges(id, kept, record, clock, device) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT(id) DO UPDATE SET kept = excluded.kept, record = excluded.record,"
        " clock = excluded.clock, device = excluded.device",
        (row.id, found.kept, bytes(found.record).decode(), row.clock, row.device),
    )
    return _taken(tx, row)


def _take_apart(tx: Transaction, row: Row) -> bool:
    tx.db.execute(
        "INSERT OR REPLACE INTO kept_apart VALUES (?, ?, ?)", (row.id, row.clock, row.device)
    )
    return _taken(tx, row)


def _take_use(tx: Transaction, row: Row) -> bool:
    """Take a device's count as it is now, and let the memory's sum follow."""
    memory, device, use = understood.use(row)
    uses_rows.take(tx, memory, device, use.count, use.last_at, row.clock)
    return _taken(tx, row)


def _take_metric(tx: Transaction, row: Row) -> bool:
    name, device, number = understood.metric(row)
    tx.db.execute(
        "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?)", (name, device, number, row.clock)
    )
    return _taken(tx, row)


def _take_file(tx: Transaction, row: Row) -> bool:
    """Take a file. Of what was edited here, and elsewhere in ignorance of it, nothing goes."""
    content = understood.file(row)
    version = (row.clock, row.device)
    if files.is_at_odds(tx, row.id, content, version):
        files.reconcile(tx, row.id, content, version)
    elif versions.is_newer(tx, row):
        files.put(tx, row.id, content, version)
    else:
        return False
    tx.tell("file.received", path=row.id)
    return _taken(tx, row)


def _taken(tx: Transaction, row: Row) -> bool:
    tx.alive(row.kind, row.id)
    _show(tx, row.kind)
    return True


def _show(tx: Transaction, kind: str) -> None:
    if kind == hot_rows.KIND:
        tx.settle_hot = True
        tx.faces.add("hot")
    elif kind == tree_rows.KIND:
        tx.settle_tree = True
        tx.faces.add("tree")
    elif kind == key_values.KIND:
        tx.faces.add("kv")
    elif kind == METRIC_KIND:
        tx.faces.add("metrics")
    elif kind == uses_rows.KIND:
        tx.faces.update({"warm", "hot"})


_TAKERS: Final[dict[str, Callable[[Transaction, Row], bool]]] = {
    memory_rows.KIND: _take_memory,
    hot_rows.KIND: _take_hot,
    tree_rows.KIND: _take_node,
    key_values.KIND: _take_pair,
    merge_rows.KIND: _take_merge,
    merging.APART: _take_apart,
    uses_rows.KIND: _take_use,
    METRIC_KIND: _take_metric,
    files.KIND: _take_file,
}
# A memory is compared part by part, and a file by what it was made from.
_DIFFERENT: Final = frozenset({memory_rows.KIND, files.KIND})
