"""The hot state: a small JSON document that is always in the agent's context."""

from .fit import Displaced, Fitted, check_share, fit
from .state import (
    Changes,
    Entry,
    EntryKey,
    HotLimits,
    HotState,
    Section,
    diff,
    document,
    document_size,
    entries,
    from_entries,
    is_entry,
)
from .update import remove, update

__all__ = [
    "Changes", "Displaced", "Entry", "EntryKey", "Fitted", "HotLimits", "HotState", "Section",
    "check_share", "diff", "document", "document_size", "entries", "fit", "from_entries",
    "is_entry", "remove", "update",
]  # fmt: skip
