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
    r"|\s(?=(?:although|though|because|since|so that|while|(?:but|and) (?:then )?(?:i|we|he|she"
    r"|they|it|you|this|that|the|my|our|(?-i:[A-Z])\w+)(?:['’]\w+)?)\s|weil |aber |parce que"
    r" |mais |porque |pero |но )",
    re.IGNORECASE,
)
_CONNECTOR: Final = re.compile(
    r"[\s,;:，、；：–—-]*(?:(?:but|and|so|then|although|though|because|since|while|also|aber|mais"
    r"|pero|но)\s+)?",
    re.IGNORECASE,
)
# What follows these only explains the clause before.
_EXPLAINS: Final = re.compile(
    r"\W*(?:although|though|because|since|so that|while|weil|parce que|porque|which|not)\s",
    re.IGNORECASE,
)
_POINTS_BACK: Final = re.compile(r"\W*(?:and |but )?(?:it|he|she|they|that|this)\b", re.IGNORECASE)
_EXPLAINING: Final = 0.4
_POINTING: Final = 2.0
_FIRST: Final = 0.5
_MOST: Final = 12
_LONGEST: Final = 2_000
_LEAST_BYTES: Final = 16
_LEAST_SHARE: Final = 0.4


def condensed(statement: str, room: int, measure: Measure = json_bytes, mark: str = "…") -> str:
    """`statement` in at most `room` bytes: its clauses that say most, else its beginning."""
    if measure(statement) <= room:
        return statement
    whole = best_clauses(statement, room, measure)
    best = whole or shortened(_from_best(statement), room, measure, mark)
    if measure(best) >= room * _LEAST_SHARE:
        return best
    return shortened(statement, room, measure, mark)


def best_clauses(statement: str, room: int, measure: Measure = json_bytes) -> str:
    """The run of clauses worth most that fits into `room`, with the clause that says most.

    Empty where none does: then the beginning of that clause says more than the others.
    """
    cuts = _cuts(statement)
    if not 2 < len(cuts) <= _MOST + 1:
        return ""
    gains = _gains(statement, cuts)
    peak = gains.index(max(gains))
    best, most = "", 0.0
    for first in range(peak + 1):
        for last in range(peak + 1, len(cuts)):
            run = _run(statement, cuts[first], cuts[last])
            gain = sum(gains[first:last])
            if gain > most and _LEAST_BYTES <= measure(run) <= room:
                best, most = run, gain
    return best


def _from_best(statement: str) -> str:
    """`statement` from the clause on that says most."""
    cuts = _cuts(statement)
    if not 2 < len(cuts) <= _MOST + 1:
        return statement
    gains = _gains(statement, cuts)
    return _run(statement, cuts[gains.index(max(gains))], len(statement))


def _cuts(statement: str) -> list[int]:
    if "? " in statement:
        return [0, len(statement)]  # A question and its answer.
    breaks = (match.start() for match in _BREAK.finditer(statement[:_LONGEST]))
    # "Decision: …" and a quotation are one.
    whole = (at for at in breaks if statement.count("`", 0, at) % 2 == 0 and " " in statement[:at])
    return [0, *whole, len(statement)]


def _gains(statement: str, cuts: list[int]) -> list[float]:
    return [_gain(statement, start, end) for start, end in pairwise(cuts)]


def _gain(statement: str, start: int, end: int) -> float:
    part = _run(statement, start, end)
    value = worth(part, signals_of(part))
    if start == 0:
        return value + _FIRST
    if _EXPLAINS.match(statement, start, end):
        return _EXPLAINING * value - _POINTING
    return value - _POINTING if _POINTS_BACK.match(statement, start, end) else value


def _run(statement: str, start: int, end: int) -> str:
    lead = _CONNECTOR.match(statement, start, end) if start else None
    run = statement[lead.end() if lead else start : end].rstrip(" ,;:-–—，、；：")
    return tidy(run) if end < len(statement) else run
