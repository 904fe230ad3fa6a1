"""The formats that can be imported, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from .found import Document, Found, GivenPath, Reading
from .systems import (
    basic_memory,
    chatgpt,
    claude,
    claude_code,
    claude_mem,
    codex,
    evoclaw,
    jsonl,
    mcp_memory,
    mem0,
    openclaw,
    profclaw,
    scalyclaw,
    tinyclaw,
)


class SystemFormat(msgspec.Struct, frozen=True):
    """One system whose memory can be imported.

    Attributes:
        about: what PATH is, in a few words.
        detect: whether a path is of this format; changes nothing.
        entries: what is found; faults are noted.
    """

    name: str
    about: str
    detect: Callable[[GivenPath], bool]
    entries: Callable[[GivenPath], Iterator[Found | Document]]

    def read(self, look: GivenPath) -> Reading:
        """The entries and the faults, as they are found."""
        return look.reading(self.entries(look))


# In the order of detection: a format that could be mistaken for another comes first.
FORMATS: Final = tuple(
    SystemFormat(module.NAME, about, module.detect, module.read)
    for module, about in (
        (jsonl, "lines of an export, or an archive of `thermocline backup`"),
        (claude_mem, "claude-mem.db, or its folder"),
        (scalyclaw, "its SQLite database"),
        (tinyclaw, "the engine's SQLite database, or a folder with reflections.jsonl"),
        (profclaw, "its SQLite database"),
        (chatgpt, "the export: its zip, folder or conversations.json"),
        (claude, "the export of claude.ai: its zip, folder or conversations.json"),
        (mcp_memory, "the JSON lines of the server-memory"),
        (codex, "~/.codex, or a session"),
        (claude_code, "~/.claude, a project below it, or a transcript"),
        (mem0, "get_all() saved as JSON"),
        (basic_memory, "a folder of notes, or a note"),
        (evoclaw, "a workspace, a state file, MEMORY.md, or a database"),
        (openclaw, "a workspace"),
    )
)
NAMES: Final = tuple(sorted(one.name for one in FORMATS))


def format_of(look: GivenPath, name: str | None = None) -> SystemFormat | None:
    """The format with this name, or the first that matches."""
    if name is not None:
        return next((one for one in FORMATS if one.name == name), None)
    return next((one for one in FORMATS if one.detect(look)), None)
