"""A hot state taken apart, with the exact size of its document at every moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from ..records import Json
from .document import CONTEXT_KEYS, TOP_KEYS, document, document_size
from .state import HotLimits, HotState, Item, Section

# A section, and the place in its list or the key in its object.
Ref: TypeAlias = tuple[Section, int | str]

# The named values of these sections stand beside other keys, so each has its comma.
_BESIDE_OTHERS: Final = frozenset({"extra", "context"})


class Packing:
    """The entries of a state that are still in, and `size`, the bytes of their document.

    Removing or replacing one entry costs no more than encoding that entry.
    """

    def __init__(self, state: HotState) -> None:
        self.items: dict[Ref, Json] = dict(_items(state))
        self.size = document_size(document(state, (), HotLimits()))
        self._members = Counter(section for section, _ in self.items)

    def of(self, section: Section) -> dict[Ref, Json]:
        """The entries of one section, in their order."""
        return {ref: value for ref, value in self.items.items() if ref[0] == section}

    def remove(self, ref: Ref) -> None:
        """Take one entry out."""
        section = ref[0]
        comma = section in _BESIDE_OTHERS or self._members[section] > 1
        self.size -= cost(ref, self.items.pop(ref)) + comma
        self._members[section] -= 1

    def replace(self, ref: Ref, value: Json) -> None:
        """Put `value` in the place of an entry."""
        self.size += document_size(value) - document_size(self.items[ref])
        self.items[ref] = value

    def state(self) -> HotState:
        """The state of what is still in."""
        return HotState(
            identity=self._named("identity"),
            owner_profile=self._named("owner_profile"),
            projects=self._listed("project"),
            events=self._listed("event"),
            tasks=self._listed("task"),
            lessons=self._listed("lesson"),
            extra=self._named("extra"),
            context=self._named("context"),
        )

    def _named(self, section: Section) -> Item:
        return {str(key): value for (_, key), value in self.of(section).items()}

    def _listed(self, section: Section) -> tuple[Item, ...]:
        return tuple(self.of(section).values())


def cost(ref: Ref, value: Json) -> int:
    """The bytes that an entry adds to the document, its comma apart."""
    key = ref[1]
    return document_size(value) + (document_size(key) + 1 if isinstance(key, str) else 0)


def _items(state: HotState) -> Iterator[tuple[Ref, Json]]:
    named: Mapping[Section, Item] = {
        "identity": state.identity,
        "owner_profile": state.owner_profile,
        "extra": {key: value for key, value in state.extra.items() if key not in TOP_KEYS},
        "context": {key: value for key, value in state.context.items() if key not in CONTEXT_KEYS},
    }
    listed: Mapping[Section, tuple[Item, ...]] = {
        "project": state.projects,
        "event": state.events,
        "task": state.tasks,
        "lesson": state.lessons,
    }
    for section, values in named.items():
        for key, value in values.items():
            yield (section, key), value
    for section, entries in listed.items():
        for index, entry in enumerate(entries):
            yield (section, index), entry
