"""The hot state: a small JSON document that is always in the agent's context."""

from .entries import Changes, Entry, EntryKey, diff, entries, from_entries, is_entry
from .fit import Displaced, Fitted, check_share, fit
from .state import HotLimits, HotState, Section, document, document_size
from .update import remove, update

__all__ = [
    "Changes", "Displaced", "Entry", "EntryKey", "Fitted", "HotLimits", "HotState", "Section",
    "check_share", "diff", "document", "document_size", "entries", "fit", "from_entries",
    "is_entry", "remove", "update",
]  # fmt: skip
