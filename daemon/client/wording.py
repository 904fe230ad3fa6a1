"""Times, sizes and numbers of an answer as people read them."""

from __future__ import annotations

import time
from typing import Final

_DAY: Final = 86_400.0
_UNITS: Final = ((_DAY, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
# One row of each kind, and several.
_KINDS: Final = {
    "memory": ("memory", "memories"),
    "hot": ("hot entry", "hot entries"),
    "category": ("category", "categories"),
    "pair": ("pair", "pairs"),
    "uses": ("count of uses", "counts of uses"),
    "metrics": ("set of counters", "sets of counters"),
    "note": ("note", "notes"),
    "experience": ("experience", "experiences"),
    "session": ("session", "sessions"),
    "answer": ("answer of a session", "answers of sessions"),
    "entity": ("entity", "entities"),
    "watched": ("watched path", "watched paths"),
}


def names_of(kind: str) -> tuple[str, str]:
    """What people call one row of a kind, and several."""
    return _KINDS.get(kind, (f"{kind} row", f"{kind} rows"))


def number_of(number: float, one: str, several: str) -> str:
    """A number with the word that goes with it."""
    return f"{number:,.0f} {one if number == 1 else several}"


def ago(seconds: float | None, now: float | None = None) -> str:
    """A time as its distance from now, in its largest unit: `3 min ago`, `in 2 h`, `never`.

    Without a `now` the clock says it.
    """
    if seconds is None:
        return "never"
    now = time.time() if now is None else now
    distance = abs(now - seconds)
    if distance < 1:
        return "now"
    length, unit = next(pair for pair in _UNITS if distance >= pair[0])
    text = f"{int(distance // length)} {unit}"
    return f"{text} ago" if seconds < now else f"in {text}"


def moment(seconds: float | None, now: float | None = None) -> str:
    """A local time as in `ls -l`: with the hour while it is near, else with the year; see `ago`."""
    if seconds is None:
        return "never"
    now = time.time() if now is None else now
    near = -_DAY < now - seconds < 180 * _DAY
    return time.strftime("%b %d %H:%M" if near else "%b %d  %Y", time.localtime(seconds))


def size(count: float) -> str:
    """A number of bytes, in steps of 1024."""
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.1f} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1024
    return f"{count:.1f} GB"
