"""The theme and tab of the last session, in the XDG state folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec


class Remembered(msgspec.Struct, frozen=True):
    """The last theme and tab; "" for the defaults."""

    theme: str = ""
    tab: str = ""


def place(env: Mapping[str, str]) -> Path:
    """The file, by the XDG rules."""
    base = Path(env.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():
        base = Path.home() / ".local" / "state"
    return base / "thermocline" / "tui.json"


def recalled(path: Path) -> Remembered:
    """The file's content; the defaults if it is missing or unreadable."""
    with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(path.read_bytes(), type=Remembered)
    return Remembered()


def remember(path: Path, what: Remembered) -> None:
    """Write the file; a failure to write is ignored."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_bytes(msgspec.json.encode(what))
        fresh.replace(path)
