"""The hot state: a small JSON document that is always in the agent's context."""

from .displaced import Displaced
from .document import document, document_size
from .entries import Changes, Entry, EntryKey, diff, entries, from_entries, is_entry
from .fit import Fitted, Trimmed, fit, trim
from .state import HotLimits, HotState, Section
from .update import remove, update

__all__ = [
    "Changes", "Displaced", "Entry", "EntryKey", "Fitted", "HotLimits", "HotState", "Section",
    "Trimmed", "diff", "document", "document_size", "entries", "fit", "from_entries", "is_entry",
    "remove", "trim", "update",
]  # fmt: skip
