"""When a memory expires: a duration, a moment, or never."""

from __future__ import annotations

import re
from typing import Final

from ..errors import InvalidInput
from .checks import TIME_END, check_time, shown

# A year is 365 days. There are no months, since `m` is a minute.
SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}

_HINT: Final = "a duration such as '7d', '12h' or '1d12h' (s m h d w y), or a time in the future"
_PART: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([smhdwy])\s*", re.IGNORECASE)
_LONGEST: Final = 64


def parse_expiry(value: float | str | None, now: float, *, field: str = "expires") -> float | None:
    """The time of `value` in seconds since the epoch; None for never.

    `value` is a duration from `now` ("7d", "12h", "30m", "45s", "2w", "1y", "1d12h"), a time (ISO
    8601, or seconds since the epoch), or empty (None or a blank string).

    Raises:
        InvalidInput: it is malformed, not after `now`, or after the year 9999.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    seconds = _duration(value) if isinstance(value, str) else None
    try:
        moment = check_time(value if seconds is None else now + seconds, field=field)
    except InvalidInput as error:
        raise InvalidInput(
            f"cannot read '{field}' {shown(value)} as a duration or a time up to the year 9999",
            field=field,
            hint=_HINT,
        ) from error
    if moment <= now:
        raise InvalidInput(
            f"give '{field}' a time in the future: {shown(value)} is not", field=field, hint=_HINT
        )
    return moment


def parse_since(value: float | str, now: float, *, field: str = "since") -> float:
    """The time of `value`: a duration before `now` ("2h", "7d"), or a time.

    Raises:
        InvalidInput: it is malformed.
    """
    seconds = _duration(value) if isinstance(value, str) else None
    return check_time(value, field=field) if seconds is None else max(0.0, now - seconds)


def _duration(text: str) -> float | None:
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    seconds, position = 0.0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            return None
        seconds += float(part[1]) * SECONDS[part[2].lower()]
        position = part.end()
    return min(seconds, TIME_END)
