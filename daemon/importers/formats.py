"""The formats that can be imported, by name."""

from __future__ import annotations

import json
import zipfile
from itertools import islice
from typing import Final

from . import state_files
from .source import LARGEST_FILE, Format, SourcePath
from .sqlite_copy import Copy
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
# What a path of each format is, for a message.
NEEDS: Final = {
    **{format_: f"a file such as {name}" for name, format_ in state_files.FILES.items()},
    "memory-md": "a page such as MEMORY.md",
    "rows": json_files.JSONL.needs,
    **{format_.name: format_.needs for format_ in FORMATS},
}
_OWN_TABLES: Final = {"memories", "rows", "outbox"}


def named(name: str) -> Format:
    """The format with this name."""
    return next(format_ for format_ in FORMATS if format_.name == name)


def detected(source: SourcePath) -> list[Format]:
    """The formats of a path: a folder may have several, a file has one at most."""
    matching = (format_ for format_ in FORMATS if format_.detect(source))
    return list(matching if source.is_folder else islice(matching, 1))


def kind_of(source: SourcePath) -> str:
    """What a path is that no format detects, for a message."""
    if source.is_folder:
        names = (path.name for path in source.path.iterdir())
        return state_files.with_names("a folder", "entries", names)
    if databases := source.databases():
        return _database_kind(databases[0])
    if not source.head.startswith(exports.ZIP):
        return _text_kind(source)
    try:
        with zipfile.ZipFile(source.path) as archive:
            return state_files.with_names("a zip", "files", archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        return f"a damaged zip ({error})"


def _database_kind(copy: Copy) -> str:
    if copy.tables.keys() >= _OWN_TABLES:
        return "Thermocline's own database: import what `thermocline export` writes of it"
    if not copy.tables and copy.fault:
        return f"an SQLite database: it {copy.fault}"
    return state_files.with_names("an SQLite database", "tables", copy.tables)


def _text_kind(source: SourcePath) -> str:
    why = ""
    try:
        if source.stat.st_size <= LARGEST_FILE:
            return state_files.kind_of(json.loads(source.path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        why = f" ({error})"
    lines = source.first_lines()
    if lines and all(lines):
        keys = {key for line in lines for key in line}
        return state_files.with_names("JSON lines", "keys", keys)
    return "a binary file" if b"\0" in source.head else f"a text that is not JSON{why}"
