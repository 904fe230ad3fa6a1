"""The hot state as single entries with stable keys, which devices merge one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, cast, get_args

import msgspec

from ..records import Json
from .state import LISTS, OBJECTS, RESERVED, Cleaning, HotState, Item, Section, number

EntryKey: TypeAlias = tuple[str, str]

_Rank: TypeAlias = tuple[int, float, str]

_SECTIONS: Final = frozenset(get_args(Section))
_FIRST: Final[_Rank] = (-1, float("inf"), "")


class Entry(msgspec.Struct, frozen=True):
    """The value of an entry, and its position in its section."""

    value: Json
    position: int


class Changes(msgspec.Struct, frozen=True):
    """The entries to write and to delete to turn one set of entries into another."""

    changed: dict[EntryKey, Entry]
    removed: tuple[EntryKey, ...]


def entries(state: HotState) -> dict[EntryKey, Entry]:
    """Every entry of `state`, under a key that is the same on all devices.

    The key is that of an identity, profile or unknown value, the name of a project, a hash of
    the text of a lesson or task, or a hash of text and time of an event. Entries with an equal
    key are numbered. `from_entries` restores exactly the same state.
    """
    entries: dict[EntryKey, Entry] = {}
    for section, values in named(state):
        for position, (key, value) in enumerate(values.items()):
            entries[section, key] = Entry(value, position)
    for section, items in listed(state):
        for position, (key, item) in enumerate(_keyed(section, items)):
            entries[section, key] = Entry(item, position)
    return entries


def from_entries(entries: Mapping[tuple[str, str], Entry]) -> HotState:
    """The state that consists of the entries `found`.

    Entries at equal positions, which come from two devices, are ordered by time, then by key:
    the same on each device. Sections of a later version are ignored, and so are values of a list
    section that are not objects.
    """
    sections: dict[str, list[tuple[str, Json]]] = {section: [] for section in _SECTIONS}
    for (section, key), entry in sorted(entries.items(), key=_rank):
        if section in sections:
            sections[section].append((key, entry.value))
    fields: dict[str, Json] = {section: dict(sections[section]) for section in OBJECTS}
    for section, (field, _) in LISTS.items():
        values = (value for _, value in sections[section])
        fields[field] = tuple(value for value in values if type(value) is dict)
    for section, reserved in RESERVED.items():
        fields[section] = {k: v for k, v in fields[section].items() if k not in reserved}
    return HotState(**fields)


def is_entry(section: str, value: Json) -> bool:
    """Whether an entry is valid in this release; a later release may have written it."""
    if section not in _SECTIONS:
        return False
    cleaning = Cleaning()
    cleaning.clean(value, section, depth=1)
    if cleaning.faults:
        return False
    if section in OBJECTS:
        return True
    name = value.get(LISTS[cast(Section, section)][1]) if isinstance(value, dict) else None
    return isinstance(name, str) and bool(name.strip())


def diff(old: Mapping[EntryKey, Entry], new: Mapping[EntryKey, Entry]) -> Changes:
    """The changes that turn the entries `old` into the state of `new`.

    An entry that only moved up because others were removed keeps its position and is no change;
    an appended entry gets a position after all others. With the changes applied to `old`,
    `from_entries` returns the same state as for `new`.
    """
    changed: dict[EntryKey, Entry] = {}
    last: dict[str, _Rank] = {}
    for key, entry in sorted(new.items(), key=_rank):
        before = old.get(key)
        previous = last.get(key[0], _FIRST)
        placed = Entry(entry.value, previous[0] + 1 if before is None else before.position)
        if _rank((key, placed)) <= previous:
            placed = Entry(entry.value, previous[0] + 1)
        last[key[0]] = _rank((key, placed))
        # Encoded, since Python takes True for 1 and 1 for 1.0.
        if before is None or msgspec.json.encode(before) != msgspec.json.encode(placed):
            changed[key] = placed
    return Changes(changed, tuple(key for key in old if key not in new))


def named(state: HotState) -> Iterator[tuple[Section, Item]]:
    """The sections that are objects."""
    return ((section, getattr(state, section)) for section in OBJECTS)


def listed(state: HotState) -> Iterator[tuple[Section, tuple[Item, ...]]]:
    """The sections that are lists."""
    return ((section, getattr(state, field)) for section, (field, _) in LISTS.items())


def _keyed(section: Section, items: tuple[Item, ...]) -> Iterator[tuple[str, Item]]:
    used: set[str] = set()
    repeats: dict[str, int] = {}
    for item in items:
        base = key = _key(section, item)
        while key in used:
            repeats[base] = repeats.get(base, 1) + 1
            key = f"{base}#{repeats[base]}"
        used.add(key)
        yield key, item


def _key(section: Section, item: Item) -> str:
    name = item.get(LISTS[section][1])
    if not isinstance(name, str):
        return _hash(msgspec.json.encode(item, order="sorted"))
    if section == "project":
        return name
    if section == "event":
        return _hash(msgspec.json.encode([name, number(item.get("timestamp"))]))
    return _hash(name.encode())


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _rank(pair: tuple[tuple[str, str], Entry]) -> _Rank:
    (_, key), entry = pair
    time = number(entry.value.get("timestamp")) if isinstance(entry.value, dict) else None
    return entry.position, time or 0.0, key
