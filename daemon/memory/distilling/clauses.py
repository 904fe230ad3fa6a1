"""The clauses of a statement, and which of them to keep when there is no room for all."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from .shortening import Measure, json_bytes, shortened, tidy
from .signals import signals_of
from .weighing import worth

_BREAK: Final = re.compile(
    r"[;:,](?=\s)|[，、；：]|\s[-–—]+(?=\s)|—"
    r"|\s(?=(?:but|although|though|because|since|so that|while|and (?:then )?(?:i|we|he|she|they|it"
    r"|that|the|my|our)(?:['’]\w+)?)\s|weil |aber |parce que |mais |porque |pero |но )",
    re.IGNORECASE,
)
_CONNECTOR: Final = re.compile(
    r"[\s,;:，、；：–—-]*(?:(?:but|and|so|then|although|though|because|since|while|also|aber|mais"
    r"|pero|но)\s+)?",
    re.IGNORECASE,
)
_MOST: Final = 12
_LONGEST: Final = 2_000
_LEAST_BYTES: Final = 16


def condensed(statement: str, room: int, measure: Measure = json_bytes, mark: str = "…") -> str:
    """`statement` in at most `room` bytes: its clauses that say most, else its beginning."""
    if measure(statement) <= room:
        return statement
    return best_clauses(statement, room, measure) or shortened(statement, room, measure, mark)


def best_clauses(statement: str, room: int, measure: Measure = json_bytes) -> str:
    """The run of clauses worth most that fits into `room`; empty where none does."""
    breaks = (match.start() for match in _BREAK.finditer(statement[:_LONGEST]))
    outside_code = (at for at in breaks if statement.count("`", 0, at) % 2 == 0)
    cuts = [0, *outside_code, len(statement)]
    if not 2 < len(cuts) <= _MOST + 1:
        return ""
    gains = [worth(part, signals_of(part)) for part in _parts(statement, cuts)]
    best, most = "", 0.0
    for first in range(len(cuts) - 1):
        for last in range(first + 1, len(cuts)):
            run = _run(statement, cuts[first], cuts[last])
            gain = sum(gains[first:last])
            if gain > most and _LEAST_BYTES <= measure(run) <= room:
                best, most = run, gain
    return best


def _parts(statement: str, cuts: list[int]) -> list[str]:
    return [_run(statement, start, end) for start, end in pairwise(cuts)]


def _run(statement: str, start: int, end: int) -> str:
    lead = _CONNECTOR.match(statement, start, end) if start else None
    run = statement[lead.end() if lead else start : end].rstrip(" ,;:-–—，、；：")
    return tidy(run) if end < len(statement) else run
