"""The health of the daemon, in a word."""

from __future__ import annotations

from typing import NamedTuple

from thermocline.daemon.client.wording import number_of

from .feed import Snapshot


class Verdict(NamedTuple):
    """A mark, a word, and the theme's colour for it; the word alone says it."""

    mark: str
    word: str
    color: str


def verdict(snapshot: Snapshot) -> Verdict:
    """The health of the daemon in a snapshot."""
    if not snapshot.connected:
        if not snapshot.trouble:
            return Verdict("○", "connecting", "secondary")
        return Verdict("✗", "no daemon", "error")
    status = snapshot.status
    if status is None or not status.ready:
        return Verdict("○", "starting", "warning")
    lasting = sum(problem.lasting for problem in status.problems)
    if lasting:
        return Verdict("✗", number_of(lasting, "problem", "problems"), "error")
    if status.problems:
        return Verdict("!", number_of(len(status.problems), "remark", "remarks"), "warning")
    return Verdict("✓", "healthy", "success")
