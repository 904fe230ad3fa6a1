"""What the full-text index holds of a text beside its words: its concepts and its dates."""

from __future__ import annotations

import datetime as dt

from .dates import date_codes
from .thesaurus import thesaurus


def index_codes(text: str, told_at: float | None) -> str:
    """The codes of the concepts and dates in a text, each once.

    Args:
        text: as it was written.
        told_at: the time that "tomorrow" is relative to, in seconds since the epoch; None: words
            relative to a time mean no date.
    """
    zone = dt.datetime.fromtimestamp(told_at or 0.0).astimezone().tzinfo
    assert zone is not None
    return thesaurus().codes_of(text) + date_codes(text, told_at, zone)
