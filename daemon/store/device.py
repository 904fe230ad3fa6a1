"""Who this device is: an id made once, kept beside the agents."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path

from . import atomic


def device_id(state_dir: Path) -> str:
    """The id in `<state-dir>/device.json`; made, durably, if there is none.

    A damaged file is set aside and a new id made: versions stay ordered by their clock, and
    the old id only names where older rows came from.
    """
    path = state_dir / "device.json"
    if path.exists():
        found = _read(path)
        if found:
            return found
        atomic.set_aside(path, "corrupt", time.strftime("%Y%m%dT%H%M%S", time.gmtime()))
    atomic.remove_unfinished(state_dir, path.name)
    made = secrets.token_hex(6)
    atomic.write(path, json.dumps({"device": made, "created_at": int(time.time())}).encode())
    return made


def _read(path: Path) -> str | None:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    device = found.get("device") if isinstance(found, dict) else None
    return device if isinstance(device, str) and device else None
