"""The registry: every kind of row, once."""

from __future__ import annotations

from typing import Final

from . import (
    agent_entries,
    entity_rows,
    experiences,
    full_text,
    history,
    hot_rows,
    index_backlog,
    key_values,
    memory_rows,
    metrics,
    notes,
    sessions,
    tree_rows,
    uses,
    watched,
)
from .rows import Kind, unknown
from .transaction import Transaction

KINDS: Final = {
    kind.name: kind
    for kind in (
        memory_rows.KIND,
        hot_rows.KIND,
        tree_rows.KIND,
        key_values.PAIRS.kind,
        notes.KIND,
        experiences.EXPERIENCES.kind,
        sessions.SESSIONS.kind,
        sessions.ANSWERS.kind,
        entity_rows.KIND,
        uses.KIND,
        metrics.KIND,
        watched.PATHS.kind,
        history.LOST,
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
    agent_entries.clear(tx)
    index_backlog.clear(tx)
    full_text.note_current(tx.db)
