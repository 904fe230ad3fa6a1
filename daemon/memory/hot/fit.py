"""Fits the hot state into its limits; everything removed is returned as statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeAlias, cast

import msgspec

from ...errors import TooLarge
from ..records import Json
from .displaced import Displaced, displaced_entry, displaced_values
from .document import RESERVED, document, document_size
from .entries import listed, named
from .shortening import FLOOR, shortened, texts, water_level
from .state import LISTS, HotLimits, HotState, Item, Section, importance_of, is_finished
from .update import checked

# A section, and the index in its list or the key in its object.
_Ref: TypeAlias = tuple[Section, int | str]

_NAMED: Final[tuple[Section, ...]] = ("extra", "context", "owner_profile", "identity")
# One value may take 1/N of the state, by the key of its update, and at least `_ALWAYS` bytes.
_SHARES: Final = {
    "identity": 4, "owner_profile": 4, "project": 4, "lesson": 10, "event": 10, "task": 10,
}  # fmt: skip
_ALWAYS: Final = 512
# Texts of more bytes than this are cut before a lesson is removed.
_LONG: Final = 256


class Fitted(msgspec.Struct, frozen=True):
    """A state within its limits, and what was removed or shortened, in that order."""

    state: HotState
    displaced: tuple[Displaced, ...]


class Trimmed(msgspec.Struct, frozen=True):
    """A value that is short enough for the hot state.

    Attributes:
        displaced: the full values that were cut.
        warnings: one line for each shortened value.
    """

    value: Json
    displaced: tuple[Displaced, ...] = ()
    warnings: tuple[str, ...] = ()


def trim(key: str, value: Json, limits: HotLimits) -> Trimmed:
    """The value of an `update`, with its longest texts cut to its share of the hot state.

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
        ref: _Ref = (cast(Section, key), name)
        taken = _cost(ref, inner)
        if taken <= most:
            continue
        values[name] = short = _level({ref: inner}, taken - most, FLOOR).get(ref, inner)
        whose = f"'{name}'" if named else f"the {key}"
        if _cost(ref, short) > most:
            raise TooLarge(
                f"shorten {whose}: it takes {taken:,} bytes, and may take {most:,}",
                field=key,
                hint="store it with `kv set` or as a memory, and refer to it here",
            )
        displaced += _lost(ref, inner, short)
        left = _cost(ref, short)
        warnings.append(
            f"shortened {whose} from {taken:,} to {left:,} bytes; a memory keeps the whole value"
        )
    return Trimmed(values if named else values[""], tuple(displaced), tuple(warnings))


def fit(state: HotState, limits: HotLimits) -> Fitted:
    """`state` within `limits`, whatever it holds.

    The limits of numbers come first: they remove the least important lessons (among equals the
    oldest), the oldest events, and finished then oldest tasks. If the document then exceeds
    `max_bytes`, values that could not stay even if all texts were cut are removed, largest first.
    Then, until it fits: texts of the profile, the identity, projects and unknown keys are cut to
    no less than 256 bytes; the least important lessons, the oldest events, finished then oldest
    tasks and finished projects are removed; the longest texts are cut further, those of projects
    last.
    """
    packing = _Packing(state)
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


def _remove(packing: _Packing, refs: Iterable[_Ref]) -> list[_Ref]:
    """Remove `refs` one by one; the iterator may depend on the size after the last removal."""
    gone = []
    for ref in refs:
        packing.remove(ref)
        gone.append(ref)
    return gone


def _left(gone: Sequence[_Ref], whole: Mapping[_Ref, Json]) -> Iterator[Displaced]:
    for section, group in groupby(gone, key=lambda ref: ref[0]):
        if section in _NAMED:
            yield from displaced_values(section, ((str(ref[1]), whole[ref]) for ref in group))
        else:
            for ref in group:
                yield from displaced_entry(section, whole[ref])


def _beyond_counts(packing: _Packing, limits: HotLimits) -> list[_Ref]:
    orders = (
        (_least_important(packing), limits.max_lessons),
        (list(packing.of("event")), limits.max_events),
        (_finished_first(packing), limits.max_tasks),
    )
    return [ref for order, most in orders for ref in order[: max(0, len(order) - most)]]


def _giving_way(packing: _Packing, max_bytes: int) -> Iterator[_Ref]:
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


def _least_important(packing: _Packing) -> list[_Ref]:
    lessons = packing.of("lesson")
    return sorted(lessons, key=lambda ref: importance_of(lessons[ref]))


def _finished_first(packing: _Packing) -> list[_Ref]:
    tasks = packing.of("task")
    return sorted(tasks, key=lambda ref: not is_finished(tasks[ref]))


def _hopeless(packing: _Packing, max_bytes: int) -> list[_Ref]:
    """The values that would not fit even if every text was cut and all else removed."""
    least = {
        ref: _cost(ref, _cut(ref, value, FLOOR)) + len(",") for ref, value in _staying(packing)
    }
    excess = document_size(document(HotState(), (), HotLimits())) + sum(least.values()) - max_bytes
    hopeless = []
    for ref in sorted(least, key=lambda ref: -least[ref]):
        if excess <= 0:
            break
        excess -= least[ref]
        hopeless.append(ref)
    return sorted(hopeless, key=lambda ref: ref[0])


def _staying(packing: _Packing) -> Iterator[tuple[_Ref, Json]]:
    for section in _NAMED:
        yield from packing.of(section).items()
    for ref, project in packing.of("project").items():
        if not is_finished(project):
            yield ref, project


def _shorten(packing: _Packing, sections: Sequence[Section], max_bytes: int, floor: int) -> None:
    """Cut the longest texts of `sections` to one length, no further than is needed."""
    if packing.size > max_bytes:
        values = {ref: value for section in sections for ref, value in packing.of(section).items()}
        for ref, value in _level(values, packing.size - max_bytes, floor).items():
            packing.replace(ref, value)


def _level(values: Mapping[_Ref, Json], excess: int, floor: int) -> dict[_Ref, Json]:
    """The shortened values, when `excess` bytes of texts are cut from `values`."""
    lengths = {ref: [length for *_, length in _texts(ref, values[ref])] for ref in values}
    level = water_level((length for found in lengths.values() for length in found), excess, floor)
    return {
        ref: _cut(ref, values[ref], level)
        for ref, found in lengths.items()
        if max(found, default=0) > level
    }


def _lost(ref: _Ref, whole: Json, short: Json) -> Iterator[Displaced]:
    section = ref[0]
    if section not in _NAMED and section != "project":
        yield from displaced_entry(section, whole)
        return
    pairs = zip(_texts(ref, whole), _texts(ref, short), strict=True)
    cut = [(path, text) for (path, text, _), (_, left, _) in pairs if text != left]
    name = whole.get("name", "") if section == "project" else ""
    yield from displaced_values(section, cut, name)


def _cut(ref: _Ref, value: Json, level: int) -> Json:
    whole = shortened(value, level)
    # The name of a project identifies it and is never cut.
    return whole | _name_of(value) if ref[0] == "project" else whole


def _texts(ref: _Ref, value: Json) -> Iterator[tuple[str, str, int]]:
    if ref[0] != "project":
        yield from texts(value, str(ref[1]))
        return
    for key, inner in value.items():
        if key != "name":
            yield from texts(inner, key)


def _name_of(project: Item) -> Item:
    return {"name": project["name"]} if "name" in project else {}


class _Packing:
    """The remaining entries of a state, and `size`, the bytes of their document.

    Removing or replacing an entry takes the time of encoding it.
    """

    def __init__(self, state: HotState) -> None:
        self.items: dict[_Ref, Json] = dict(_items(state))
        self.size = document_size(document(state, (), HotLimits()))
        self._members = Counter(section for section, _ in self.items)

    def of(self, section: Section) -> dict[_Ref, Json]:
        """The entries of one section, in order."""
        return {ref: value for ref, value in self.items.items() if ref[0] == section}

    def remove(self, ref: _Ref) -> None:
        """Remove an entry."""
        section = ref[0]
        # The values of these sections are beside other keys.
        comma = section in RESERVED or self._members[section] > 1
        self.size -= _cost(ref, self.items.pop(ref)) + comma
        self._members[section] -= 1

    def replace(self, ref: _Ref, value: Json) -> None:
        """Replace the value of an entry."""
        self.size += document_size(value) - document_size(self.items[ref])
        self.items[ref] = value

    def state(self) -> HotState:
        """The state of the remaining entries."""
        fields: dict[str, Json] = {
            section: {str(key): value for (_, key), value in self.of(section).items()}
            for section in _NAMED
        }
        for section, (field, _) in LISTS.items():
            fields[field] = tuple(self.of(section).values())
        return HotState(**fields)


def _cost(ref: _Ref, value: Json) -> int:
    """The bytes that an entry adds to the document, without its comma."""
    key = ref[1]
    return document_size(value) + (document_size(key) + 1 if isinstance(key, str) else 0)


def _items(state: HotState) -> Iterator[tuple[_Ref, Json]]:
    for section, values in named(state):
        reserved = RESERVED.get(section, frozenset())
        for key, value in values.items():
            if key not in reserved:
                yield (section, key), value
    for section, entries in listed(state):
        for index, entry in enumerate(entries):
            yield (section, index), entry
