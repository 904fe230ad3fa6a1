"""Earlier versions of rows, and restoring them."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from .common import Json, Time


class HistoryQuery(Struct, forbid_unknown_fields=True):
    """The versions of one row, by its kind and id, or the latest of all rows.

    With `conflicts` only values that were lost because another device changed the same field.
    """

    kind: str = "memory"
    id: str | None = None
    conflicts: bool = False
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class VersionView(Struct):
    """A version that was replaced: when (`at`), by whom, on which device, and why.

    `data` is the whole version; `replaced` names the fields that the next change gave other values,
    and `after` has those values; a field missing there was removed.
    """

    number: int
    kind: str
    id: str
    at: float
    writer: str
    device: str
    why: str
    data: dict[str, Json]
    replaced: list[str]
    after: dict[str, Json] = {}


class VersionList(Struct):
    """Versions, latest first; of one row also the `device` that wrote the current version."""

    results: list[VersionView]
    device: str | UnsetType = UNSET


class UndoBody(Struct, forbid_unknown_fields=True):
    """What to undo: the last change of a row, or everything that a writer changed since a time.

    `number` names an earlier version of the row. With `dry_run` nothing is changed.
    """

    id: str | None = None
    kind: str = "memory"
    number: int | None = None
    by: str | None = None
    since: Time | None = None
    dry_run: bool = False


class RowName(Struct):
    """A row by its kind and id."""

    kind: str
    id: str


class Undone(Struct):
    """The rows that were restored or, if the change created them, deleted."""

    results: list[RowName]
    done: bool
