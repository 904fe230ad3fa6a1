"""Applying rows from elsewhere: a replica, an archive, an import, a damaged database.

Each is merged with the row that is here, so copies may arrive at any time, in any order, any number
of times. Rows as lines of JSON are the format of backups and exports.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final

import msgspec

from thermocline.sync import (
    ABSENT,
    TOO_HIGH,
    Applied,
    Clocks,
    Received,
    Row,
    merge,
    outlived,
    stamps,
)
from thermocline.sync import changed as changed_row

from ..errors import InvalidInput, StoreDamaged, ThermoclineError
from ..memory.records import is_outside
from .database import rows
from .database.connection import batches, column, scalar
from .database.rows import JoinResult, Kind
from .database.transaction import Transaction
from .kinds import KINDS, kind_of
from .records import history, memory_rows, merging, tree_rows
from .writer import OF_ONE_CALLER

# What a damaged or foreign row can cause; other errors of SQLite concern the disk.
INVALID_ROW_ERRORS: Final = (
    ThermoclineError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RecursionError,
    *OF_ONE_CALLER,
)
# The device in stamps of imported content, so that each device makes the same stamps.
IMPORT: Final = "import"
# After each statement SQLite walks through all pages kept for undoing a savepoint.
_AT_ONCE: Final = 32
_ADDED_AT_ONCE: Final = 256
# Fields that every change writes: devices always differ in them, and the lost value is not kept.
_INCIDENTAL: Final = frozenset(
    {"created_at", "updated_at", "modified_at", "position", "last_accessed_at"}
)


def apply(tx: Transaction, came: Sequence[Received | Row], *, why: str = "") -> Applied:
    """Merge rows into the memory.

    An invalid row is skipped; the rest is applied. `Received` rows are on the replica in this
    version, so only differing rows are marked for sending; plain rows come from anywhere else.
    """
    fresh, others = _parted(tx, came)
    result = Applied()
    for some in batches(others, _AT_ONCE):
        try:
            with tx.undone_on_failure():
                result += sum((_apply(tx, item, why) for item in some), Applied())
        except INVALID_ROW_ERRORS:
            result += sum((_apply_alone(tx, item, why) for item in some), Applied())
    for kind, items in fresh:
        result += _add(tx, kind, items, why)
    if result.changed:
        _repair_links(tx, came)
        tx.emit("rows.applied", rows=result.changed)
    return result


def every(db: sqlite3.Connection, kinds: Iterable[str] | None = None) -> Iterator[Row]:
    """Every row, deleted or of other releases' kinds too; `StoreDamaged` if not valid."""
    result = {*column(db, "SELECT DISTINCT kind FROM rows"), *KINDS}
    if None in result:
        raise StoreDamaged("cannot trust the rows: one is of no kind")
    for name in sorted(result if kinds is None else result & set(kinds)):
        kind = kind_of(name)
        yield from kind.table.every(db, name)


def counts(db: sqlite3.Connection) -> dict[str, int]:
    """The number of live rows of each kind."""
    result = dict(db.execute("SELECT kind, count(*) FROM rows WHERE live GROUP BY kind").fetchall())
    memory = scalar(db, "SELECT count(*) FROM memories")
    return {"memory": memory, **result} if memory else result


def _parted(
    tx: Transaction, came: Sequence[Received | Row]
) -> tuple[list[tuple[Kind, list[Received | Row]]], list[Received | Row]]:
    """Split rows into those that are live and new here, which need no merge, and the rest."""
    by_kind: dict[str, dict[str, Received | Row]] = {}
    later: list[Received | Row] = []
    repeated = set()
    for item in came:
        row = item if isinstance(item, Row) else item.row
        if by_kind.setdefault(row.kind, {}).setdefault(row.id, item) is not item:
            later.append(item)
            repeated.add(row.key)
    fresh: list[tuple[Kind, list[Received | Row]]] = []
    others: list[Received | Row] = []
    for name, items in by_kind.items():
        kind = kind_of(name)
        # A category is created by the first memory in it.
        is_tree = kind is tree_rows.KIND
        known = items if is_tree else kind.table.load_all(tx.db, name, [*items])
        new: list[Received | Row] = []
        for key, item in items.items():
            is_new = key not in known and kind.lives(_row(item)) and (name, key) not in repeated
            (new if is_new else others).append(item)
        fresh.append((kind, new))
    return fresh, others + later


def _add(tx: Transaction, kind: Kind, came: Sequence[Received | Row], why: str) -> Applied:
    """Add live rows of one kind that are new here."""
    result = Applied()
    items, values = [], []
    for item in came:
        try:
            value, ahead = _checked(tx, kind, _row(item))
        except INVALID_ROW_ERRORS:
            result += Applied(refused=1)
            continue
        items.append(item)
        values.append(value)
        if ahead:
            result += Applied(ahead=ahead)
    for start in range(0, len(items), _ADDED_AT_ONCE):
        some = items[start : start + _ADDED_AT_ONCE]
        try:
            with tx.undone_on_failure():
                copied = _insert(tx, kind, some, values[start : start + _ADDED_AT_ONCE])
            result += Applied(changed=len(some), copied=copied)
        except INVALID_ROW_ERRORS:
            result += sum((_apply_alone(tx, item, why) for item in some), Applied())
    return result


def _insert(
    tx: Transaction, kind: Kind, items: Sequence[Received | Row], values: Sequence[Any]
) -> bool:
    """Write them; True: one has a stamp of this device."""
    new = list(map(_row, items))
    kind.table.add(tx, new, values)
    if kind.applied is not None:
        for row in new:
            kind.applied(tx, None, row)
    for item in items:
        if isinstance(item, Row):
            rows.mark(tx, kind, item.id, None, None)
    return any(_own_stamps(row, tx.device) for row in new)


def _row(received: Received | Row) -> Row:
    return received.row if isinstance(received, Received) else received


def _checked(
    tx: Transaction, kind: Kind, row: Row, *, live: bool = True
) -> tuple[Any, tuple[str, ...]]:
    """What `check` returns for a row, and the device whose clock is too far ahead, if any."""
    stamps_ = row.clocks.stamps
    for clock, _ in stamps_:
        if not 0 <= clock < TOO_HIGH:
            raise InvalidInput(f"cannot take '{row.id}': it was changed beyond the year 2200")
    value = kind.check(row) if kind.check is not None and live else None
    youngest, by = max(stamps_)
    return value, () if tx.observe(youngest) else (by,)


def _apply_alone(tx: Transaction, received: Received | Row, why: str) -> Applied:
    try:
        with tx.undone_on_failure():
            return _apply(tx, received, why)
    except INVALID_ROW_ERRORS:
        return Applied(refused=1)


def _apply(tx: Transaction, received: Received | Row, why: str) -> Applied:
    theirs = _row(received)
    kind = kind_of(theirs.kind)
    _, ahead = _checked(tx, kind, theirs, live=kind.lives(theirs))
    ours = kind.load(tx.db, theirs.id)
    merged = theirs if ours is None else merge(ours, theirs, kind.sets)
    join_result = _resolve(tx, kind, ours, theirs, merged) if ours is not None else JoinResult()
    if join_result.lost is not None:
        if kind.join is None:
            history.record_lost(tx, kind, join_result.lost)
        else:
            # The other devices have it in a copy of the file.
            device = join_result.lost.clocks.latest[1]
            rows.save_version(tx, kind, join_result.lost, why=history.CONFLICT, device=device)
    if ours is not None and kind.lives(merged) and (lost := outlived(merged, ours, theirs)):
        # It was edited after another device had deleted it: its other fields are restored too.
        merged = changed_row(merged, merged.key, lost | merged.data, tx.stamp(merged), kind.sets)
    copied = bool(
        _own_stamps(merged, tx.device)
        & _own_stamps(theirs, tx.device) - _own_stamps(ours, tx.device)
    )
    changed = merged != ours
    number = None
    if changed:
        number = rows.save_version(tx, kind, ours, why=why, device=theirs.clocks.latest[1])
        rows.put(tx, kind, ours, merged)
    if isinstance(received, Received):
        _agree(tx, kind, received, merged)
    elif changed:
        rows.mark(tx, kind, theirs.id, ours, number)
    if join_result.data is not None:
        rows.write(tx, kind, theirs.id, merged.data | join_result.data, why="joined")
    return Applied(int(changed), 0, int(join_result.lost is not None), copied, ahead)


def _own_stamps(row: Row | None, device: str) -> set[int]:
    """The stamps of a device's own changes that are still visible in a version.

    Deletions do not count: the next memory under the name of a forgotten agent lacks them.
    """
    if row is None or not row.data:
        return set()
    deleted = row.clocks.deleted
    return {stamp[0] for stamp in row.clocks.stamps if stamp[1] == device and stamp != deleted}


def _agree(tx: Transaction, kind: Kind, received: Received, merged: Row) -> None:
    """Record the replica's version of a row, and whether to send ours."""
    if merged == received.row:
        tx.db.execute("DELETE FROM outbox WHERE kind = ? AND id = ?", merged.key)
        return
    tx.outgoing.add(merged.kind)
    # The next version there will be based on this one.
    base = rows.version_number(tx, kind, received.row) if kind.join is not None else None
    tx.db.execute(
        "INSERT INTO outbox VALUES (?, ?, ?, ?, NULL)"
        " ON CONFLICT DO UPDATE SET seen = excluded.seen, base = excluded.base, refused = NULL",
        (*merged.key, received.version, base),
    )


def _resolve(tx: Transaction, kind: Kind, ours: Row, theirs: Row, merged: Row) -> JoinResult:
    """Resolve fields that both sides changed: join what can be joined, keep the lost value."""
    if not kind.history or not kind.lives(ours) or not kind.lives(theirs) or ours == theirs:
        return JoinResult()
    waiting = column(tx.db, "SELECT base FROM outbox WHERE kind = ? AND id = ?", *ours.key)
    if not waiting or waiting[0] == rows.UNCHANGED:
        return JoinResult()
    based_on = history.read(tx.db, "number = ?", waiting[0])
    base = based_on[0].row if based_on else None
    clashing = _clashes(kind, base, ours, theirs)
    if not clashing or _is_known(tx, kind, theirs, clashing):
        return JoinResult()
    joined = kind.join(tx, base, ours, theirs) if kind.join is not None else None
    lost = theirs if merged.data.get(clashing[0]) == ours.data.get(clashing[0]) else ours
    return joined or JoinResult(lost=lost)


def _is_known(tx: Transaction, kind: Kind, theirs: Row, fields: Iterable[str]) -> bool:
    """Whether ours is based on their version, as after a push whose answer was lost."""
    other = stamps(theirs, kind.sets)
    known = [stamps(v.row, kind.sets) for v in history.versions(tx.db, kind, theirs.id)]
    return all(any(was.get(name) == other[name] for was in known) for name in fields)


def _clashes(kind: Kind, base: Row | None, ours: Row, theirs: Row) -> list[str]:
    was = stamps(base, kind.sets) if base is not None else {}
    mine, other = stamps(ours, kind.sets), stamps(theirs, kind.sets)
    nothing: tuple[Any, Any] = (None, ABSENT)
    return [
        name
        for name in mine.keys() & other.keys()
        if name not in _INCIDENTAL
        and mine[name][1] != other[name][1]
        # An import knows what an earlier one brought; two copies of a device may know less.
        and {mine[name][0][1], other[name][0][1]} != {IMPORT}
        and was.get(name, nothing)[0] not in {mine[name][0], other[name][0]}
    ]


def _repair_links(tx: Transaction, came: Sequence[Received | Row]) -> None:
    """Repair links between rows that are each valid but inconsistent together."""
    memories = [row.data for row in map(_row, came) if row.kind == memory_rows.KIND.name]
    # A deleted memory may leave a link dangling, a new link may close a circle.
    if any(not data or data.keys() & {"merged_into", "superseded_by"} for data in memories):
        merging.repair_links(tx)
    if any(row.kind == tree_rows.KIND.name and not row.data for row in map(_row, came)):
        filed = "SELECT DISTINCT category FROM memories"
        for category in column(tx.db, f"{filed} WHERE category NOT IN (SELECT path FROM tree)"):
            tree_rows.ensure(tx, category)


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
    source = row.data.get("source") if to_read and row.kind == memory_rows.KIND.name else None
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
