"""What the full-text index holds of a text beside its words: its concepts and its dates."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

from .dates import date_codes
from .facets import tells_change
from .thesaurus import thesaurus

# The code of a statement that may tell that something is no longer as it was.
CHANGE: Final = "\ue1a0"
# A longer text, or one of several sentences, is no single statement.
_LONGEST: Final = 100
_SEVERAL: Final = re.compile(r"[^\W\d_]{4}[.…]\s+\S|。.|[!?！？]")


def index_codes(text: str, told_at: float | None, *, is_turn: bool = False) -> str:
    """The codes of the concepts and dates in a text, each once, and whether it tells a change.

    Args:
        text: as it was written.
        told_at: the time that "tomorrow" is relative to, in seconds since the epoch; None: words
            relative to a time mean no date.
        is_turn: whether it is a turn of a conversation, which replaces no statement.
    """
    zone = dt.datetime.fromtimestamp(told_at or 0.0).astimezone().tzinfo
    assert zone is not None
    codes = thesaurus().codes_of(text) + date_codes(text, told_at, zone)
    is_statement = not is_turn and len(text) <= _LONGEST and not _SEVERAL.search(text)
    states_change = is_statement and tells_change(text)
    return CHANGE + codes if states_change else codes
