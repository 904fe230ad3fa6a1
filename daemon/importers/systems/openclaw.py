"""OpenClaw: the Markdown files of a workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..found import Found, GivenPath, category
from ..memory_md import statements
from ..values import seconds

NAME: Final = "openclaw"
_USER, _MEMORY = "USER.md", "MEMORY.md"
_NOTE: Final = re.compile(r"(\d{4}-\d{2}-\d{2}).*\.md")
_BLANK: Final = re.compile(r"\*\*[^*]+:\*\*\s*(?:_\(.*\)_)?|_.*_|\*[^*].*\*|\(.*\)")


def detect(look: GivenPath) -> bool:
    """Whether a folder has a page about the user, or dated notes."""
    if not look.is_folder:
        return False
    memory = look.path / "memory"
    return (look.path / _USER).is_file() or (
        memory.is_dir() and any(_NOTE.fullmatch(one.name) for one in memory.iterdir())
    )


def read(look: GivenPath) -> Iterator[Found]:
    """Each statement of USER.md as a preference, and those of MEMORY.md and of the notes."""
    for name in (_USER, _MEMORY):
        path = look.path / name
        if path.is_file():
            yield from _page(look, path)
    for path in look.files(r".+\.md", "memory"):
        yield from _page(look, path)


def _page(look: GivenPath, path: Path) -> Iterator[Found]:
    name = str(path.relative_to(look.path))
    origin, dated = look.origin(NAME, path), _NOTE.fullmatch(path.name)
    for number, heading, said in statements(look.text(path)):
        if _BLANK.fullmatch(said):
            continue  # An empty form.
        parts = [] if heading == "general" else heading.split("/")
        first = "user" if path.name == _USER else "notes" if dated else "memory"
        yield from origin.memory(
            f"{name}/{said}", said, category=category(first, *parts[:2]),
            event="preference_learned" if path.name == _USER else None,
            importance=0.8 if path.name == _USER else None, type="episodic" if dated else None,
            group=name if dated else None, position=number if dated else None,
            created_at=seconds(dated[1]) if dated else None,
        )  # fmt: skip
