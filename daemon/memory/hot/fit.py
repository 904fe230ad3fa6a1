"""Keeping the hot state within its limits without losing anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, cast

import msgspec

from ...errors import TooLarge
from ..records import Json
from .displaced import Displaced, displaced_entry, displaced_values
from .document import document, document_size
from .packing import Packing, Ref, cost
from .shortening import FLOOR, shortened, texts, water_level
from .state import HotLimits, HotState, Item, Section, importance_of, is_finished
from .update import checked

_NAMED: Final[tuple[Section, ...]] = ("extra", "context", "owner_profile", "identity")
# The part of the state that one value may take, by the key of its update; but always so many bytes.
_SHARES: Final = {
    "identity": 4, "owner_profile": 4, "project": 4, "lesson": 10, "event": 10, "task": 10,
}  # fmt: skip
_ALWAYS: Final = 512
# Longer texts of what stays give way before a lesson does.
_LONG: Final = 256


class Fitted(msgspec.Struct, frozen=True):
    """A state within its limits, and what had to leave it or was shortened, in that order."""

    state: HotState
    displaced: tuple[Displaced, ...]


class Trimmed(msgspec.Struct, frozen=True):
    """A value that is short enough for the hot state.

    Attributes:
        displaced: what was cut, in full.
        warnings: a line for each value that was shortened.
    """

    value: Json
    displaced: tuple[Displaced, ...] = ()
    warnings: tuple[str, ...] = ()


def trim(key: str, value: Json, limits: HotLimits) -> Trimmed:
    """The value of an `update`, with its longest texts cut so that it leaves room for others.

    A value of the identity or profile, and a project, may take a quarter of `max_bytes`; a
    lesson, event or task a tenth.

    Raises:
        InvalidInput: as `update`.
        TooLarge: cutting its texts is not enough.
    """
    if key not in _SHARES:
        return Trimmed(value)
    given = checked(key, value)
    named = key in _NAMED
    values = dict(given.items()) if named else {"": given}
    most = max(_ALWAYS, limits.max_bytes // _SHARES[key])
    displaced: list[Displaced] = []
    warnings: list[str] = []
    for name, inner in values.items():
        ref: Ref = (cast(Section, key), name)
        taken = cost(ref, inner)
        if taken <= most:
            continue
        values[name] = short = _level({ref: inner}, taken - most, FLOOR).get(ref, inner)
        whose = f"'{name}'" if named else f"the {key}"
        if cost(ref, short) > most:
            raise TooLarge(
                f"shorten {whose}: it takes {taken:,} bytes, and may take {most:,}",
                field=key,
                hint="keep it with `kv set` or as a memory, and name that here",
            )
        displaced += _lost(ref, inner, short)
        left = cost(ref, short)
        warnings.append(
            f"shortened {whose} from {taken:,} to {left:,} bytes; a memory keeps it whole"
        )
    return Trimmed(values if named else values[""], tuple(displaced), tuple(warnings))


def fit(state: HotState, limits: HotLimits) -> Fitted:
    """`state` within `limits`, whatever it holds.

    The counts come first: the least important lessons (of equals the oldest), the oldest
    events, finished then oldest tasks. Then, until the document fits `max_bytes`, one after
    another: texts of the profile, the identity, projects and unknown keys are cut to no less than
    256 bytes; the least important lesson, the oldest event, finished then oldest tasks, finished
    projects leave; last, the longest texts are cut further, those of projects after the others.
    Values that could not stay even alone with the rest so cut leave before all of that, largest
    first.
    """
    packing = Packing(state)
    whole = dict(packing.items)
    gone = _remove(packing, _beyond_counts(packing, limits))
    if packing.size > limits.max_bytes:
        gone += _remove(packing, _hopeless(packing, limits.max_bytes))
        _shorten(packing, (*_NAMED, "project"), limits.max_bytes, _LONG)
        gone += _remove(packing, _giving_way(packing, limits.max_bytes))
        _shorten(packing, _NAMED, limits.max_bytes, FLOOR)
        _shorten(packing, ("project",), limits.max_bytes, FLOOR)
    displaced = [*_left(gone, whole)]
    for ref, value in packing.items.items():
        if value is not whole[ref]:
            displaced += _lost(ref, whole[ref], value)
    return Fitted(packing.state(), tuple(displaced)) if displaced else Fitted(state, ())


def _remove(packing: Packing, refs: Iterable[Ref]) -> list[Ref]:
    """Take out `refs` as they come; one iterator may look at the size left by the last."""
    gone = []
    for ref in refs:
        packing.remove(ref)
        gone.append(ref)
    return gone


def _left(gone: Sequence[Ref], whole: Mapping[Ref, Json]) -> Iterator[Displaced]:
    for section, group in groupby(gone, key=lambda ref: ref[0]):
        if section in _NAMED:
            yield from displaced_values(section, ((str(ref[1]), whole[ref]) for ref in group))
        else:
            for ref in group:
                yield from displaced_entry(section, whole[ref])


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


def _shorten(packing: Packing, sections: Sequence[Section], max_bytes: int, floor: int) -> None:
    """Cut the longest texts of `sections` to one length, no further than is needed."""
    if packing.size > max_bytes:
        values = {ref: value for section in sections for ref, value in packing.of(section).items()}
        for ref, value in _level(values, packing.size - max_bytes, floor).items():
            packing.replace(ref, value)


def _level(values: Mapping[Ref, Json], excess: int, floor: int) -> dict[Ref, Json]:
    """Those of `values` that lose something when `excess` bytes of texts are cut."""
    lengths = {ref: [length for *_, length in _texts(ref, values[ref])] for ref in values}
    level = water_level((length for found in lengths.values() for length in found), excess, floor)
    return {
        ref: _cut(ref, values[ref], level)
        for ref, found in lengths.items()
        if max(found, default=0) > level
    }


def _lost(ref: Ref, whole: Json, short: Json) -> Iterator[Displaced]:
    """The statements for what was cut from an entry."""
    section = ref[0]
    if section not in _NAMED and section != "project":
        yield from displaced_entry(section, whole)
        return
    pairs = zip(_texts(ref, whole), _texts(ref, short), strict=True)
    cut = [(path, text) for (path, text, _), (_, left, _) in pairs if text != left]
    name = whole.get("name", "") if section == "project" else ""
    yield from displaced_values(section, cut, name)


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
