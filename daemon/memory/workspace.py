"""The files of a workspace that belong to a memory, and the names of their copies."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

# The folder of a workspace that belongs to the memory.
FOLDER: Final = "memory"
LARGEST: Final = 262_144
LONGEST_PATH: Final = 1_000
_LONGEST_NAME: Final = 255
# Leaves room for two suffixes with device and digest in the name of a copy.
_LONGEST_STEM: Final = 160
_ENDINGS: Final = frozenset({".md", ".markdown", ".txt", ".jsonl"})
_LOG: Final = ".jsonl"
SKILL_INDEX: Final = "memory/skills/index.json"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


def belongs(path: str) -> bool:
    """Whether a file with this path belongs to the memory: a visible text file below `memory/`."""
    if path == SKILL_INDEX:
        return True
    first, *rest = path.split("/")
    if first != FOLDER or not rest or len(path.encode(errors="replace")) > LONGEST_PATH:
        return False
    # A leading dot means hidden, and also excludes "." and "..".
    plain = all(
        name and not name.startswith(".") and len(name.encode(errors="replace")) <= _LONGEST_NAME
        for name in rest
    )
    printable = not any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF for char in path)
    return plain and printable and PurePosixPath(path).suffix.lower() in _ENDINGS


def is_log(path: str) -> bool:
    """Whether each line of the file is a separate entry."""
    return PurePosixPath(path).suffix.lower() == _LOG


def copy_path(path: str, device: str, digest: str) -> str:
    """The name of a conflict copy beside `path`: `note.conflict-<device>-<digest>.md`."""
    file = PurePosixPath(path)
    stem = file.stem.encode()[:_LONGEST_STEM].decode(errors="ignore")
    word = f"{_NOT_IN_NAMES.sub('', device)[:8]}-{digest}"
    copy = file.with_name(f"{stem}.conflict-{word}{file.suffix}")
    return str(copy) if belongs(str(copy)) else f"{FOLDER}/{copy.name}"
