"""The formats that can be imported, by name."""

from __future__ import annotations

from itertools import islice
from typing import Final

from .source import Format, SourcePath
from .systems import databases, evoclaw, exports, json_files, pages, tinyclaw, transcripts

# In the order of detection: a format that could be mistaken for another comes first. The daemon
# makes TinyClaw's files in every workspace.
FORMATS: Final = (
    json_files.JSONL,
    databases.CLAUDE_MEM,
    databases.SCALYCLAW,
    databases.PROFCLAW,
    exports.CHATGPT,
    exports.CLAUDE,
    json_files.MCP_MEMORY,
    transcripts.CODEX,
    transcripts.CLAUDE_CODE,
    json_files.MEM0,
    pages.BASIC_MEMORY,
    transcripts.AIDER,
    evoclaw.EVOCLAW,
    pages.OPENCLAW,
    tinyclaw.TINYCLAW,
    json_files.TEXTS,
)
NAMES: Final = tuple(sorted(format_.name for format_ in FORMATS))


def named(name: str) -> Format:
    """The format with this name."""
    return next(format_ for format_ in FORMATS if format_.name == name)


def detected(source: SourcePath) -> list[Format]:
    """The formats of a path: a folder may have several, a file has one at most."""
    matching = (format_ for format_ in FORMATS if format_.detect(source))
    return list(matching if source.is_folder else islice(matching, 1))
