"""Rows whose fields carry the clock of their last change, and the merge of two versions.

A row is a set of cells: one for each field, and one for each element of a field that is a set. A
cell is a value, or its absence, with the stamp of its last change. Deleting a row is a stamp that
removes every cell that is not younger. Merging keeps the younger of two cells, and so is
commutative, associative and idempotent: any version of a row may be merged at any time, in any
order, any number of times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias

import msgspec

# When a cell was changed, and where: a hybrid logical clock and the id of a device.
Stamp: TypeAlias = tuple[int, str]
# The fields of a row; a missing field was never set, or was removed.
Fields: TypeAlias = dict[str, Any]
NO_SETS: Final[frozenset[str]] = frozenset()


class Clocks(msgspec.Struct, frozen=True, omit_defaults=True):
    """The stamps of a row's cells."""

    # The stamp of every cell that `fields` does not name; of a row without cells, when its deletion
    # was written.
    at: Stamp
    # Stamps of single cells, by field, or by field and element of a set (`tags:work`). A cell that
    # is named here and not in the data was removed.
    fields: dict[str, Stamp] = {}
    deleted: Stamp | None = None  # of the last deletion, which removed every cell not younger

    @property
    def latest(self) -> Stamp:
        return max(self.stamps)

    @property
    def stamps(self) -> Collection[Stamp]:
        """All stamps, in no order."""
        if not self.fields and self.deleted is None:
            return (self.at,)
        return [self.at, *self.fields.values(), self.deleted or self.at]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a row. `kind` and `id` name it within an agent's memory."""

    kind: str
    id: str
    data: Fields
    clocks: Clocks

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.id

    def encoded(self) -> tuple[str | None, str]:
        """Data and clocks as JSON. Data is None if the row was deleted and has no cells."""
        data = _encoder.encode(self.data).decode() if self.data else None
        return data, _encoder.encode(self.clocks).decode()


def decode_row(kind: str, id: str, data: str | None, clocks: str) -> Row:  # noqa: A002
    """The row whose `encoded` is given; `MsgspecError` or `ValueError` if it is not a row."""
    fields = _data_decoder.decode(data) if data is not None else {}
    return Row(kind=kind, id=id, data=fields, clocks=_clocks_decoder.decode(clocks))


def version_of(row: Row | None) -> str | None:
    """The digest of data and clocks, 32 hexadecimal digits; None for no row.

    It identifies a version. The youngest stamp does not: two merged rows can share it and differ.
    """
    if row is None:
        return None
    data = _encoder.encode(row.data) if row.data else b"None"
    return hashlib.blake2b(
        b"%b\n%b" % (data, _encoder.encode(row.clocks)), digest_size=16
    ).hexdigest()


def digest(data: str | None, clocks: str) -> str:
    """The digest of a row's two texts."""
    return hashlib.blake2b(f"{data}\n{clocks}".encode(), digest_size=16).hexdigest()


def merge(ours: Row, theirs: Row, sets: frozenset[str] = NO_SETS) -> Row:
    """The version that holds the younger of each cell of two versions of one row.

    The lists in the fields `sets` join element by element.
    """
    if ours == theirs:
        return ours
    deletions = [clocks.deleted for clocks in (ours.clocks, theirs.clocks) if clocks.deleted]
    deleted = max(deletions, default=None)
    cells = stamps(ours, sets)
    for name, cell in stamps(theirs, sets).items():
        have = cells.get(name)
        if have is None or _order(cell) > _order(have):
            cells[name] = cell
    if deleted is not None:
        cells = {name: cell for name, cell in cells.items() if cell[0] > deleted}
        if not cells:
            # The earlier, so that releases for which both stamps are one come to the same.
            written = [c.at for c in (ours.clocks, theirs.clocks) if c.deleted == deleted]
            return deletion(ours.key, deleted, min(written))
    return _row(ours.kind, ours.id, cells, deleted, sets)


def changed(
    row: Row | None, key: tuple[str, str], data: Fields, stamp: Stamp, sets: frozenset[str]
) -> Row:
    """The version of a row with exactly this `data`, its changed cells at `stamp`.

    `row` is the version that is replaced, if there was one; the stamp is younger than all of it.
    """
    if row is None and data and not any(name in data for name in sets):
        # The usual case: a new memory.
        kind, id_ = key
        return Row(kind=kind, id=id_, data=dict(sorted(data.items())), clocks=Clocks(at=stamp))
    cells = stamps(row, sets) if row is not None else {}
    target = _spread(data, sets)
    for name, value in target.items():
        have = cells.get(name)
        if have is None or have[1] != value:
            cells[name] = (stamp, value)
    for name in cells.keys() - target.keys():
        if cells[name][1] is not ABSENT:
            cells[name] = (stamp, ABSENT)
    deleted = row.clocks.deleted if row is not None else None
    return _row(*key, cells, deleted, sets)


def restamped(row: Row, device: str, known: Collection[Stamp], sets: frozenset[str]) -> Row:
    """The version of a row whose stamps are those of a `device`, except those that are `known`."""
    if all(stamp in known for stamp in row.clocks.stamps):
        return row

    def of(stamp: Stamp) -> Stamp:
        return stamp if stamp in known else (stamp[0], device)

    cells = {name: (of(stamp), value) for name, (stamp, value) in stamps(row, sets).items()}
    deleted = None if row.clocks.deleted is None else of(row.clocks.deleted)
    return _row(row.kind, row.id, cells, deleted, sets)


def deletion(key: tuple[str, str], stamp: Stamp, written: Stamp | None = None) -> Row:
    """The version of a row that was deleted at `stamp`, without any data.

    `written` is when, if that was later: a change between the two outlives the deletion.
    """
    kind, id_ = key
    return Row(kind=kind, id=id_, data={}, clocks=Clocks(at=written or stamp, deleted=stamp))


def lives(row: Row | None, liveness_fields: Collection[str] = ()) -> bool:
    """Whether a row was not deleted, or one of its `liveness_fields` was changed since.

    Without these any field counts.
    """
    if row is None or not row.data:
        return False
    return not liveness_fields or not row.data.keys().isdisjoint(liveness_fields)


def outlived(merged: Row, *versions: Row) -> Fields:
    """The fields that a row lost although it outlived its deletion.

    The merging device writes these fields again, under a fresh stamp: they belong to the value that
    was changed after the deletion.
    """
    if merged.clocks.deleted is None:
        return {}
    lost: Fields = {}
    for version in sorted(versions, key=lambda row: row.clocks.latest):
        lost |= {name: value for name, value in version.data.items() if name not in merged.data}
    removed = merged.clocks.fields.keys()
    return {name: value for name, value in lost.items() if name not in removed}


def stamps(row: Row, sets: frozenset[str] = NO_SETS) -> dict[str, _Cell]:
    """Stamp and value of each cell by its name; `ABSENT` for a removed cell."""
    clocks = row.clocks
    spread = _spread(row.data, sets)
    cells = {name: (clocks.fields.get(name, clocks.at), value) for name, value in spread.items()}
    for name, stamp in clocks.fields.items():
        if name not in spread:
            cells[name] = (stamp, ABSENT)
    return cells


def patched(data: Fields, cells: Mapping[str, Any], sets: frozenset[str] = NO_SETS) -> Fields:
    """Data with single cells changed; `ABSENT` removes one. Names are those of `stamps`."""
    spread = _spread(data, sets) | dict(cells)
    present = {name: ((0, ""), value) for name, value in spread.items() if value is not ABSENT}
    return _row("", "", present, None, sets).data


class _Absent:
    """The value of a cell that was removed."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
_Cell: TypeAlias = tuple[Stamp, Any]
_encoder: Final = msgspec.json.Encoder(order="sorted")
_data_decoder: Final = msgspec.json.Decoder(dict[str, Any])
_clocks_decoder: Final = msgspec.json.Decoder(Clocks)
_BETWEEN: Final = ":"


def _spread(data: Fields, sets: frozenset[str]) -> Fields:
    """Data with a cell for each element of a set, which is a list of strings."""
    if not any(name in data for name in sets):
        return data
    spread: Fields = {}
    for name, value in data.items():
        if name in sets and isinstance(value, list) and all(isinstance(e, str) for e in value):
            spread |= {f"{name}{_BETWEEN}{element}": True for element in value}
        else:
            spread[name] = value
    return spread


def _row(
    kind: str, id_: str, cells: Mapping[str, _Cell], deleted: Stamp | None, sets: frozenset[str]
) -> Row:
    """Encode cells in a normal form, so that equal rows have equal digests."""
    if not cells:
        at = deleted or (0, "")
        return Row(kind=kind, id=id_, data={}, clocks=Clocks(at=at, deleted=deleted))
    at = min(stamp for stamp, _ in cells.values())
    data: Fields = {}
    for name in sorted(cells):
        value = cells[name][1]
        if value is ABSENT:
            continue
        field, between, element = name.partition(_BETWEEN)
        if between and field in sets and value is True:
            data.setdefault(field, []).append(element)
        else:
            data[name] = value
    named = {
        name: stamp for name, (stamp, value) in cells.items() if stamp != at or value is ABSENT
    }
    return Row(kind=kind, id=id_, data=data, clocks=Clocks(at, named, deleted))


def _order(cell: _Cell) -> tuple[Stamp, bool, bytes]:
    """Equal stamps with different values only come from damage; even these merge alike."""
    stamp, value = cell
    return stamp, value is not ABSENT, b"" if value is ABSENT else _encoder.encode(value)
