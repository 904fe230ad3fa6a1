"""The id of this device, created once and kept beside the agents."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path

from . import atomic


class DeviceId:
    """The id of this device, in `<state-dir>/device.json`; created, durably, if missing.

    A damaged file is set aside and a new id made: stamps stay ordered by their clock, and the old
    id only names the origin of older changes.

    Args:
        state_dir: the folder, which exists.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "device.json"
        self.id = self._found() or self.renew()

    def renew(self) -> str:
        """Take another id because another device uses this one. Blocking."""
        atomic.remove_unfinished(self._path.parent, self._path.name)
        made = secrets.token_hex(6)
        content = {"device": made, "created_at": int(time.time())}
        atomic.write(self._path, json.dumps(content).encode())
        self.id = made
        return made

    def _found(self) -> str | None:
        if not self._path.exists():
            return None
        found = _read(self._path)
        if found is None:
            atomic.set_aside(self._path, "corrupt")
        return found


def _read(path: Path) -> str | None:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    device = found.get("device") if isinstance(found, dict) else None
    return device if isinstance(device, str) and device else None
