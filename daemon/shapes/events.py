"""What happens, as server-sent events."""

from __future__ import annotations

from msgspec import Struct


class EventsQuery(Struct, forbid_unknown_fields=True):
    """The types to receive: full names, or a prefix such as `memory`. None: all."""

    types: tuple[str, ...] = ()
