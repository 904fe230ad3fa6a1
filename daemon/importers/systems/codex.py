"""Codex: the memory files and the sessions below `~/.codex`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...language.turn_text import without_recalled
from ..found import (
    GivenPath,
    Origin,
    ReadFault,
    Reading,
    category,
    files_below,
    lines_of,
    project_name,
    spoken_text,
    tags_of,
    text_of,
    written,
)
from ..memory_md import statements

NAME: Final = "codex"
_SESSIONS: Final = r"rollout-.+\.jsonl"
_MEMORIES: Final = ("MEMORY.md", "memory_summary.md")
# What the program adds to the user's messages.
_ADDED: Final = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTR",
)


def detect(look: GivenPath) -> bool:
    """Whether there are sessions, or its folder of memories."""
    if look.is_folder:
        memories = look.path.name == ".codex" and (look.path / "memories").is_dir()
        return memories or next(files_below(look.path, _SESSIONS), None) is not None
    return any(one.get("type") == "session_meta" for one in look.first_lines())


def read(look: GivenPath) -> Reading:
    """Each message of a session, and each statement of the memory files."""
    if not look.is_folder:
        yield from _session(look.path, look.path.parent)
        return
    for name in _MEMORIES:
        path = look.path / "memories" / name
        if path.exists():
            yield from _memory(path, look.path)
    for path in look.files(_SESSIONS):
        yield from _session(path, look.path)


def _session(path: Path, below: Path) -> Reading:
    origin, session, project, position = Origin(NAME, written(path)), path.stem, "", 0
    for line in lines_of(path, below):
        if isinstance(line, ReadFault):
            yield line
            continue
        number, fields = line
        payload = fields.get("payload")
        if not isinstance(payload, dict):
            continue
        if fields.get("type") == "session_meta":
            session = str(payload.get("id") or session)
            project = project_name(payload.get("cwd"))
            continue
        if fields.get("type") != "response_item" or payload.get("type") != "message":
            continue
        text = without_recalled(spoken_text(payload.get("content")))
        if not text.strip() or text.lstrip().startswith(_ADDED):
            continue
        found = origin.turn(
            str(path), f"{session}/{fields.get('ordinal', number)}", text,
            group=f"{project}/{session}", role=str(payload.get("role") or ""), position=position,
            tags=tags_of(project), created_at=fields.get("timestamp"),
        )  # fmt: skip
        for one in found:
            yield one
            position += not isinstance(one, ReadFault)


def _memory(path: Path, below: Path) -> Reading:
    text = text_of(path, below)
    if isinstance(text, ReadFault):
        yield text
        return
    origin = Origin(NAME, written(path))
    for _, heading, said in statements(text):
        yield from origin.memory(
            str(path), f"memories/{said}", said, category=category(NAME, *heading.split("/")),
            importance=0.7,
        )  # fmt: skip
