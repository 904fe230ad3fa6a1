"""Claude Code: memory folders and transcripts below `~/.claude/projects`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from ...language.turn_text import without_recalled
from ..found import Found, GivenPath, category, project_name, spoken_text, tags_of
from ..memory_md import statements

NAME: Final = "claude-code"
_FILES: Final = r".+\.(?:jsonl|md)"
_LOOKED_AT: Final = 20
_TYPES: Final = frozenset({"user", "assistant"})
_FRONT: Final = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
# What the program adds as the user: commands and their output.
_MARKUP: Final = re.compile(r"<(?:command-|local-command-|bash-|system-reminder|task-notification)")


def detect(look: GivenPath) -> bool:
    """Whether there are transcripts, or the folder of projects, or a folder `memory`."""
    if look.is_folder:
        if (look.path / "projects").is_dir() and look.path.name == ".claude":
            return True
        transcripts = islice(look.files(r".+\.jsonl"), _LOOKED_AT)
        return any(_is_transcript(GivenPath(path)) for path in transcripts)
    return look.path.suffix == ".jsonl" and _is_transcript(look)


def read(look: GivenPath) -> Iterator[Found]:
    """Each turn of a transcript, and each statement of a memory file."""
    inside = ("projects",) if (look.path / "projects").is_dir() else ()
    for path in look.files(_FILES, *inside) if look.is_folder else [look.path]:
        if path.suffix == ".jsonl":
            yield from _transcript(look, path)
        elif path.parent.name == "memory":
            yield from _memory(look, path)


def _is_transcript(look: GivenPath) -> bool:
    return any("sessionId" in one and "type" in one for one in look.first_lines())


def _transcript(look: GivenPath, path: Path) -> Iterator[Found]:
    """The turns of a session, without those of tools, subagents and the program itself."""
    origin, position, project = look.origin(NAME, path), 0, ""
    for number, fields in look.lines(path):
        message = fields.get("message")
        if fields.get("type") not in _TYPES or fields.get("isSidechain") or fields.get("isMeta"):
            continue
        if not isinstance(message, dict) or fields.get("isCompactSummary"):
            continue
        text = without_recalled(spoken_text(message.get("content")))
        if not text.strip() or _MARKUP.match(text.lstrip()):
            continue
        session = str(fields.get("sessionId") or path.stem)
        project = project or project_name(fields.get("cwd")) or path.parent.name
        yield from origin.turn(
            f"{session}/{fields.get('uuid') or number}", text,
            role=message.get("role") or fields["type"], group=f"{project}/{session}",
            position=position, tags=tags_of(project), created_at=fields.get("timestamp"),
        )  # fmt: skip
        position += 1


def _memory(look: GivenPath, path: Path) -> Iterator[Found]:
    project, origin = path.parent.parent.name.rsplit("-", 1)[-1], look.origin(NAME, path)
    for _, below_heading, said in statements(_FRONT.sub("", look.text(path))):
        if path.name == "MEMORY.md" and re.match(r"\[[^\]]+\]\([^)]+\.md\)", said):
            continue  # The index of the other files.
        heading = "" if below_heading == "general" else below_heading
        yield from origin.memory(
            f"{path.parent.parent.name}/{path.name}/{said}", said,
            category=category("projects", project, *heading.split("/")),
            subject=path.stem, importance=0.7,
        )  # fmt: skip
