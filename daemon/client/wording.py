"""Times, sizes and numbers of an answer as people read them."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from ..schemas.status import VectorStatus
    from ..schemas.sync import ReplicationStatus, UsageTotals, Verification

_DAY: Final = 86_400.0
_UNITS: Final = ((_DAY, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
# The source of a memory that a person stands for.
OWN_WORD: Final = "user-stated"
# One row of a kind, and several, where that is not its name.
_KINDS: Final = {
    "memory": ("memory", "memories"),
    "hot": ("hot entry", "hot entries"),
    "category": ("category", "categories"),
    "uses": ("count of uses", "counts of uses"),
    "metrics": ("set of counters", "sets of counters"),
    "entity": ("entity", "entities"),
    "watched": ("watched path", "watched paths"),
    "conflict": ("lost value", "lost values"),
}
# The states of the models.
MODEL_STATES: Final = {
    "off": "none, rules only",
    "ready": "ready",
    "failing": "failing, rules only until it answers",
    "spent": "budget spent, rules only",
    "missing": "litellm is not installed, rules only",
}


def names_of(kind: str) -> tuple[str, str]:
    """What people call one row of a kind, and several."""
    return _KINDS.get(kind, (kind, f"{kind}s"))


def heading_of(subject: str, text: str) -> str:
    """The subject to show before a text; "" if the text names it anyway."""
    return "" if subject.casefold() in text.casefold() else subject


def one_line(text: str) -> str:
    """A text with every stretch of white space as one blank."""
    return " ".join(text.split())


def number_of(number: float, single: str, several: str) -> str:
    """A number with the word that goes with it."""
    return f"{number:,.0f} {single if number == 1 else several}"


def span(seconds: float, *, fine: bool = True) -> str:
    """A length of time in its two largest units; unless `fine`, seconds only below a minute."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {rest} s" if fine else f"{minutes} min"
    return f"{rest} s"


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


def usage_of(used: UsageTotals, budget: int = 0) -> str:
    """What a database was used for; with a budget of rows also the share of it."""
    rows = used.rows_read + used.rows_written
    text = f"{used.rows_read:,} rows read, {used.rows_written:,} written"
    share = f" ({rows / budget:.0%} of sync.budget)" if budget else ""
    cost = f", {dollars(used.cost)} dollars" if used.cost else ""
    return f"{text}{share}, {size(used.bytes_sent + used.bytes_received)}{cost}"


def dollars(amount: float) -> str:
    """An amount with two digits: a day may cost less than a cent."""
    if amount >= 0.1:
        return f"{amount:,.2f}"
    return f"{amount:.2g}" if amount >= 0.0001 else "less than 0.0001"


def phase_of(status: ReplicationStatus, now: float | None = None) -> str:
    """What replication is doing, in a few words; in capitals where the user must act."""
    if status.replica == "none":
        return "off"
    now = time.time() if now is None else now
    if status.phase == "waiting":
        return f"waiting, next try {ago(max(status.next_try or now, now), now)}"
    if status.phase == "stopped":
        return "STOPPED until it is fixed"
    if status.held_until is not None:
        return f"slowed down by sync.budget, next {ago(max(status.held_until, now), now)}"
    if status.phase == "working" or status.last_success is None:
        return "running" if status.phase == "working" else "not started"
    return "changes to send" if status.queued else "up to date"


def encoded_of(vectors: VectorStatus) -> str:
    """How many texts are encoded, in a few words."""
    if not vectors.left:
        return f"{vectors.encoded:,} encoded"
    total = vectors.encoded + vectors.left
    until = f", {vectors.answers} answers until then" if vectors.answers else ""
    return f"{vectors.encoded:,} of {total:,} encoded{until}"


def proof_of(last: Verification | None, now: float | None = None) -> str:
    """The result of the last check that a restore would work."""
    if last is None:
        return "not verified yet"
    when = ago(last.at, now)
    if last.verified:
        return f"verified {when}, {number_of(last.rows, 'row', 'rows')}"
    return f"FAILED {when}: {'; '.join(last.faults)}"
