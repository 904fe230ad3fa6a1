"""Making what was distilled fit into a number of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from ..records import Distilled
from ..similarity import fold
from .clauses import best_clauses, condensed
from .distilled import ONGOING, distilled_size
from .feelings import NEUTRAL
from .plain import printable
from .shortening import json_bytes, utf8_bytes

# Below these a fact says too little to give way to what belongs to it.
_FACT_BYTES: Final = 50
_LEAST_FACT_BYTES: Final = 40
_CLAUSE_BYTES: Final = 24
_MAX_ACTIONS, _MAX_TOPICS, _MAX_PEOPLE = 2, 3, 3


def fitted(distilled: Distilled, max_bytes: int) -> Distilled:
    """`distilled` with a `distilled_size` of at most `max_bytes`.

    What gives way, in this order: actions beyond 2, topics and people beyond 3; actions and
    topics that the fact names anyway; the fact down to 50 bytes, or to its most telling
    clauses; actions, topics, people, the last first; the first of two emotions, then the
    other; the outcome. The fact gets the room that the others leave. The limit always holds
    where it is 16 bytes or more.
    """
    if distilled_size(distilled) <= max_bytes:
        return distilled
    leanest = distilled
    for leanest, floor in _ever_leaner(distilled):
        room = _room(leanest, max_bytes)
        if room >= min(json_bytes(distilled.fact), floor):
            break
        if floor < json_bytes(distilled.fact) and room >= _CLAUSE_BYTES:
            clauses = best_clauses(distilled.fact, room)
            if json_bytes(clauses) >= _CLAUSE_BYTES:
                return _refilled(replace(leanest, fact=clauses), distilled, max_bytes)
    fact = condensed(distilled.fact, _room(leanest, max_bytes))
    return _refilled(replace(leanest, fact=fact), distilled, max_bytes)


def no_longer(distilled: Distilled, text: str, max_bytes: int) -> Distilled:
    """`distilled`, with the text itself as the fact where the fact is longer than the text."""
    if utf8_bytes(distilled.fact) <= len(text.encode("utf-8", "replace")):
        return distilled
    return fitted(replace(distilled, fact=" ".join(printable(text).split())), max_bytes)


def _refilled(at: Distilled, whole: Distilled, max_bytes: int) -> Distilled:
    """`at` with the people and topics that a fact shorter than its room leaves room for."""
    for field, most in (("people", _MAX_PEOPLE), ("topics", _MAX_TOPICS)):
        values: tuple[str, ...] = getattr(whole, field)
        for end in range(len(getattr(at, field)) + 1, len(values[:most]) + 1):
            fuller = replace(at, **{field: values[:end]})
            if distilled_size(fuller) > max_bytes:
                break
            at = fuller
    return at


def _room(distilled: Distilled, max_bytes: int) -> int:
    """The bytes that are left for the fact beside the rest."""
    return max_bytes - distilled_size(replace(distilled, fact="x")) + 1


def _ever_leaner(distilled: Distilled) -> Iterator[tuple[Distilled, int]]:
    """Ever less beside the fact, each with the bytes of the fact for which it may stay."""
    at = replace(
        distilled,
        actions=distilled.actions[:_MAX_ACTIONS],
        topics=distilled.topics[:_MAX_TOPICS],
        people=distilled.people[:_MAX_PEOPLE],
    )
    whole = json_bytes(distilled.fact)
    yield at, whole
    folded = fold(distilled.fact)
    for field in ("actions", "topics"):
        values: tuple[str, ...] = getattr(at, field)
        for value in reversed([value for value in values if fold(value) in folded]):
            at = _without(at, field, value)
            yield at, whole
    yield at, _FACT_BYTES
    for field in ("actions", "topics", "people"):
        for value in reversed(getattr(at, field)):
            at = _without(at, field, value)
            yield at, _FACT_BYTES
    yield replace(at, emotion=at.emotion.rsplit(" ", 1)[-1]), _LEAST_FACT_BYTES
    yield replace(at, emotion=NEUTRAL), _LEAST_FACT_BYTES
    yield replace(at, emotion=NEUTRAL, outcome=ONGOING), 0


def _without(distilled: Distilled, field: str, left_out: str) -> Distilled:
    values: tuple[str, ...] = getattr(distilled, field)
    return replace(distilled, **{field: tuple(value for value in values if value != left_out)})
