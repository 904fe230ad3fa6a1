"""The registry: every kind of row, once."""

from __future__ import annotations

from typing import Final

from . import (
    entity_rows,
    experiences,
    full_text,
    hot_rows,
    key_values,
    memory_rows,
    metrics,
    notes,
    own_entries,
    sessions,
    tree_rows,
    uses,
    watched,
)
from .kind import Kind, unknown
from .transaction import Transaction

KINDS: Final = {
    kind.name: kind
    for kind in (
        memory_rows.KIND,
        hot_rows.KIND,
        tree_rows.KIND,
        key_values.KIND,
        notes.KIND,
        experiences.KIND,
        sessions.KIND,
        sessions.ANSWERS,
        entity_rows.KIND,
        uses.KIND,
        metrics.KIND,
        watched.KIND,
    )
}
# The kinds that make up the critical state.
URGENT: Final = frozenset(kind.name for kind in KINDS.values() if kind.urgent)


def kind_of(name: str) -> Kind:
    """The kind of a row; that of another release is kept and passed on unchanged."""
    return KINDS.get(name) or unknown(name)


def rebuild_indexes(tx: Transaction) -> None:
    """Rebuild the full-text indexes of all kinds."""
    for kind in KINDS.values():
        if kind.reindex is not None:
            kind.reindex(tx)
    own_entries.clear(tx)
    full_text.note_current(tx)
