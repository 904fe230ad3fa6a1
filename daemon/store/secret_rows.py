"""Secrets in rows other than memories, and in earlier versions of rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from ..language.secrets import cleared, secrets_in
from . import history, key_values, notes, rows
from .kinds import KINDS, kind_of
from .transaction import Transaction


class Held(msgspec.Struct, frozen=True):
    """A row that holds a secret, or (`where` is history) held it in an earlier version."""

    where: str
    kind: str
    id: str


def holding(db: sqlite3.Connection, written: Sequence[str]) -> list[Held]:
    """Where secrets are, apart from memories; `written` are the notes that the daemon writes."""
    helds: list[Held] = []
    for kind in (kind for kind in KINDS.values() if kind.clears_secrets):
        for key, data in rows.live_rows(db, kind):
            if secrets_in(_told(key, msgspec.json.decode(data))):
                helds.append(Held(kind.name, kind.name, key))
    for path in written:
        note = rows.load(db, notes.KIND, path)
        if note is not None and secrets_in(note.data["text"].splitlines()):
            helds.append(Held("note", notes.KIND.name, path))
    seen: set[tuple[str, str]] = set()
    ours = f"kind <> ? OR id IN ({', '.join('?' * len(written))})"
    for version in history.read(db, ours, notes.KIND.name, *written):
        key = (version.kind, version.id)
        data = version.row.data
        if key not in seen and data and secrets_in(_told(version.id, data)):
            seen.add(key)
            helds.append(Held("history", *key))
    return helds


def remove(tx: Transaction, held: Held) -> None:
    """Delete a pair; replace a secret in any other row by a mark; delete all earlier versions."""
    kind = kind_of(held.kind)
    row = rows.load(tx.db, kind, held.id)
    if row is not None and held.where == "pair":
        key_values.delete(tx, held.id)
    elif row is not None and held.where == "note":
        lines = cleared(row.data["text"].split("\n"))
        rows.write(tx, kind, held.id, {**row.data, "text": "\n".join(lines)}, why="secret")
    elif row is not None and held.where != "history":
        name = _name(held.id)
        data = {field: cleared({name: value})[name] for field, value in row.data.items()}
        rows.write(tx, kind, held.id, data, why="secret")
    rows.erase(tx, kind, held.id)


def _told(key: str, data: dict[str, object]) -> list[object]:
    """The values of a row, by the name of the row, which may indicate a secret."""
    return [data, *({_name(key): value} for value in data.values())]


def _name(key: str) -> str:
    return key.rpartition("/")[2]
