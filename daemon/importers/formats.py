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
        detect: whether a path is of this format; changes nothing.
        entries: what is found; faults are noted.
    """

    name: str
    detect: Callable[[GivenPath], bool]
    entries: Callable[[GivenPath], Iterator[Found | Document]]

    def read(self, look: GivenPath) -> Reading:
        """The entries and the faults, as they are found."""
        return look.reading(self.entries(look))


# In the order of detection: a format that could be mistaken for another comes first.
FORMATS: Final = tuple(
    SystemFormat(module.NAME, module.detect, module.read)
    for module in (
        jsonl,
        claude_mem,
        scalyclaw,
        tinyclaw,
        profclaw,
        chatgpt,
        claude,
        mcp_memory,
        codex,
        claude_code,
        mem0,
        basic_memory,
        evoclaw,
        openclaw,
    )
)
NAMES: Final = tuple(sorted(one.name for one in FORMATS))


def format_of(look: GivenPath, name: str | None = None) -> SystemFormat | None:
    """The format with this name, or the first that matches."""
    if name is not None:
        return next((one for one in FORMATS if one.name == name), None)
    return next((one for one in FORMATS if one.detect(look)), None)
