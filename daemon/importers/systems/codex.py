"""Codex: the memory files and the sessions below `~/.codex`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...language.turn_text import without_recalled
from ..found import Found, GivenPath, category, project_name, spoken_text, tags_of
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
        return memories or next(look.files(_SESSIONS), None) is not None
    return any(one.get("type") == "session_meta" for one in look.first_lines())


def read(look: GivenPath) -> Iterator[Found]:
    """Each message of a session, and each statement of the memory files."""
    if not look.is_folder:
        yield from _session(look, look.path)
        return
    for name in _MEMORIES:
        path = look.path / "memories" / name
        if path.exists():
            yield from _memory(look, path)
    for path in look.files(_SESSIONS):
        yield from _session(look, path)


def _session(look: GivenPath, path: Path) -> Iterator[Found]:
    origin, session, project, position = look.origin(NAME, path), path.stem, "", 0
    for number, fields in look.lines(path):
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
            f"{session}/{fields.get('ordinal', number)}", text,
            group=f"{project}/{session}", role=payload.get("role"), position=position,
            tags=tags_of(project), created_at=fields.get("timestamp"),
        )  # fmt: skip
        for one in found:
            yield one
            position += 1


def _memory(look: GivenPath, path: Path) -> Iterator[Found]:
    origin = look.origin(NAME, path)
    for _, heading, said in statements(look.text(path)):
        place = category(NAME, *heading.split("/"))
        yield from origin.memory(f"memories/{said}", said, category=place, importance=0.7)
