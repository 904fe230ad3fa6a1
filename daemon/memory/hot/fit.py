"""Keeping the hot state within its limits without losing anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from ..records import Json
from .displaced import Displaced, displaced_entry, displaced_values
from .document import document, document_size
from .packing import Packing, Ref, cost
from .shortening import FLOOR, shortened, texts, water_level
from .state import HotLimits, HotState, Item, Section, importance_of, is_finished

_NAMED: Final[tuple[Section, ...]] = ("extra", "context", "owner_profile", "identity")


class Fitted(msgspec.Struct, frozen=True):
    """A state within its limits, and what had to leave it or was shortened, in that order."""

    state: HotState
    displaced: tuple[Displaced, ...]


def fit(state: HotState, limits: HotLimits) -> Fitted:
    """`state` within `limits`, whatever it holds.

    The counts come first: the least important lessons (of equals the oldest), the oldest
    events, finished then oldest tasks. Then, until the document fits `max_bytes`, one after
    another: the least important lesson, the oldest event, finished then oldest tasks,
    finished projects; last, the longest texts of the profile, the identity and unknown keys,
    then of the projects, are cut to one common length. Values that could not stay even alone
    with the rest so cut leave before all of that, largest first.
    """
    packing = Packing(state)
    displaced = [*_remove(packing, _beyond_counts(packing, limits))]
    if packing.size > limits.max_bytes:
        displaced += _remove(packing, _hopeless(packing, limits.max_bytes))
        displaced += _remove(packing, _giving_way(packing, limits.max_bytes))
        displaced += _shorten(packing, _NAMED, limits.max_bytes)
        displaced += _shorten(packing, ("project",), limits.max_bytes)
    return Fitted(packing.state(), tuple(displaced)) if displaced else Fitted(state, ())


def _remove(packing: Packing, refs: Sequence[Ref] | Iterator[Ref]) -> Iterator[Displaced]:
    """Take out `refs` as they come; one iterator may look at the size left by the last."""
    gone = []
    for ref in refs:
        gone.append((ref, packing.items[ref]))
        packing.remove(ref)
    for section, group in groupby(gone, key=lambda removed: removed[0][0]):
        if section in _NAMED:
            yield from displaced_values(section, ((str(ref[1]), value) for ref, value in group))
        else:
            for _, entry in group:
                yield from displaced_entry(section, entry)


def _beyond_counts(packing: Packing, limits: HotLimits) -> list[Ref]:
    orders = (
        (_least_important(packing), limits.max_lessons),
        (list(packing.of("event")), limits.max_events),
        (_finished_first(packing), limits.max_tasks),
    )
    return [ref for order, most in orders for ref in order[: max(0, len(order) - most)]]


def _giving_way(packing: Packing, max_bytes: int) -> Iterator[Ref]:
    order = [
        *_least_important(packing),
        *packing.of("event"),
        *_finished_first(packing),
        *(ref for ref, project in packing.of("project").items() if is_finished(project)),
    ]
    for ref in order:
        if packing.size <= max_bytes:
            return
        yield ref


def _least_important(packing: Packing) -> list[Ref]:
    lessons = packing.of("lesson")
    return sorted(lessons, key=lambda ref: importance_of(lessons[ref]))


def _finished_first(packing: Packing) -> list[Ref]:
    tasks = packing.of("task")
    return sorted(tasks, key=lambda ref: not is_finished(tasks[ref]))


def _hopeless(packing: Packing, max_bytes: int) -> list[Ref]:
    """What would have to leave even if all that may give way had, and every text were cut."""
    least = {ref: cost(ref, _cut(ref, value, FLOOR)) + len(",") for ref, value in _staying(packing)}
    excess = document_size(document(HotState(), (), HotLimits())) + sum(least.values()) - max_bytes
    hopeless = []
    for ref in sorted(least, key=lambda ref: -least[ref]):
        if excess <= 0:
            break
        excess -= least[ref]
        hopeless.append(ref)
    return sorted(hopeless, key=lambda ref: ref[0])


def _staying(packing: Packing) -> Iterator[tuple[Ref, Json]]:
    for section in _NAMED:
        yield from packing.of(section).items()
    for ref, project in packing.of("project").items():
        if not is_finished(project):
            yield ref, project


def _shorten(packing: Packing, sections: Sequence[Section], max_bytes: int) -> Iterator[Displaced]:
    """Cut the longest texts of `sections` to one length, no further than is needed."""
    if packing.size <= max_bytes:
        return
    values = [(ref, value) for section in sections for ref, value in packing.of(section).items()]
    lengths = [length for ref, value in values for _, _, length in _texts(ref, value)]
    level = water_level(lengths, packing.size - max_bytes)
    for ref, value in values:
        cut = [(path, text) for path, text, length in _texts(ref, value) if length > level]
        if cut:
            packing.replace(ref, _cut(ref, value, level))
            name = value.get("name", "") if ref[0] == "project" else ""
            yield from displaced_values(ref[0], cut, name)


def _cut(ref: Ref, value: Json, level: int) -> Json:
    whole = shortened(value, level)
    # A project is found by its name, which therefore stays as it is.
    return whole | _name_of(value) if ref[0] == "project" else whole


def _texts(ref: Ref, value: Json) -> Iterator[tuple[str, str, int]]:
    if ref[0] != "project":
        yield from texts(value, str(ref[1]))
        return
    for key, inner in value.items():
        if key != "name":
            yield from texts(inner, key)


def _name_of(project: Item) -> Item:
    return {"name": project["name"]} if "name" in project else {}
