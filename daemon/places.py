"""Where the daemon keeps and offers things, when nobody said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def default_state_dir(env: Mapping[str, str]) -> Path:
    """`$STATE_DIRECTORY` of systemd (the first, if several), else the user's state folder."""
    given = env.get("STATE_DIRECTORY", "").split(":")[0]
    if given:
        return Path(given)
    home = env.get("XDG_STATE_HOME")
    base = Path(home) if home else Path(env.get("HOME", "/root")) / ".local" / "state"
    return base / "thermocline"


def default_socket(env: Mapping[str, str]) -> Path:
    """In `$RUNTIME_DIRECTORY` of systemd, else in the user's run-time folder, else in /run."""
    given = env.get("RUNTIME_DIRECTORY", "").split(":")[0]
    if given:
        return Path(given) / "thermocline.sock"
    runtime = env.get("XDG_RUNTIME_DIR")
    base = Path(runtime) if runtime else Path("/run")
    return base / "thermocline" / "thermocline.sock"
