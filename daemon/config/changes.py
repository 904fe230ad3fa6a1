"""What a changed configuration means for a daemon that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from .faults import dotted
from .settings import Settings, leaves

if TYPE_CHECKING:
    from .kinds import Json, KeyPath

# Bound, opened or sized once, at the start. All other keys are looked up whenever they count.
AT_START: Final = {
    "agent_id": None,
    "agents": None,
    "socket": ("path", "mode", "group", "max_connections", "max_body_bytes"),
    "store": ("readers_per_agent", "cache_kb"),
    "sync": ("device_name",),
}


class Change(msgspec.Struct, frozen=True):
    """The dotted keys in which two configurations differ, by when they take effect."""

    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.applied or self.needs_restart)


def changed(old: Settings, new: Settings) -> Change:
    """What differs between two configurations, in the order of `new`, removed keys last."""
    before, after = _values(old), _values(new)
    paths = [path for path in {**after, **before} if _differs(path, before, after)]
    return Change(
        tuple(dotted(path) for path in paths if not _at_start(path)),
        tuple(dotted(path) for path in paths if _at_start(path)),
    )


def running(old: Settings, new: Settings) -> Settings:
    """What holds from now on: `new`, but what needs a restart as it is in `old`.

    Compare the next reload with the result, and what waits for a restart is named again.
    """
    kept = {}
    for name, keys in AT_START.items():
        section = getattr(old, name)
        if keys is not None:
            values = {key: getattr(section, key) for key in keys}
            section = msgspec.structs.replace(getattr(new, name), **values)
        kept[name] = section
    return msgspec.structs.replace(new, **kept)


def _values(settings: Settings) -> dict[KeyPath, Json]:
    return {path: value for path, value in leaves(settings) if value != {}}


def _differs(path: KeyPath, before: dict[KeyPath, Json], after: dict[KeyPath, Json]) -> bool:
    return path not in before or path not in after or before[path] != after[path]


def _at_start(path: KeyPath) -> bool:
    keys = AT_START.get(path[0], ())
    return keys is None or path[1] in keys
