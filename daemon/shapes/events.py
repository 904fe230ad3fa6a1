"""What happens, as server-sent events."""

from __future__ import annotations

from msgspec import Struct


class EventsQuery(Struct, forbid_unknown_fields=True):
    """Which types to hear of: whole ones, or a first part such as `memory`. None: all."""

    types: tuple[str, ...] = ()
