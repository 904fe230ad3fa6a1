"""The project of a folder, and whether agents that work there have this memory.

A file `.thermocline` in the project's folder says so in one word. It may come with somebody else's
code, so that it can switch the memory off or keep the project apart, and name no other agent.
"""

from __future__ import annotations

import os
import re
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

FILE: Final = ".thermocline"
ON: Final = "on"
OFF: Final = "off"
OWN: Final = "own"
WORDS: Final = (ON, OFF, OWN)
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_CHARS: Final = 40
_MOST_LEVELS: Final = 64


class Project:
    """A project: its folder, and what its file says; without one, or with another word, `on`."""

    __slots__ = ("root", "word")

    def __init__(self, root: str, word: str) -> None:
        self.root = root
        self.word = word

    @property
    def name(self) -> str:
        """The name of the folder, as far as it may be part of an id."""
        return _NO_NAME.sub("-", os.path.basename(self.root)).strip("-")[:_NAME_CHARS] or "root"

    @property
    def agent(self) -> str | None:
        """The agent that only this project has; None: it has none of its own."""
        if self.word != OWN:
            return None
        return f"{self.name}-{zlib.crc32(os.fsencode(self.root)):08x}"


def project_of(folder: str) -> Project:
    """The project that a folder belongs to.

    It is the nearest folder, from there upwards, with a file `.thermocline`; else the nearest with
    a `.git`; else the folder itself.
    """
    folder = os.path.realpath(folder)
    root = None
    here = folder
    for _ in range(_MOST_LEVELS):
        if (word := _word(os.path.join(here, FILE))) is not None:
            return Project(here, word)
        if root is None and os.path.exists(os.path.join(here, ".git")):
            root = here
        above = os.path.dirname(here)
        if above == here:
            break
        here = above
    return Project(root or folder, ON)


def switch(folder: str, word: str) -> Project:
    """Write the file of the project that a folder belongs to.

    Raises:
        OSError: it cannot be written.
    """
    project = Project(project_of(folder).root, word)
    path = os.path.join(project.root, FILE)
    if word == ON:
        if os.path.lexists(path):
            os.unlink(path)
        return project
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{word}\n")
    return project


def _word(path: str) -> str | None:
    """The word in a file; None where there is no such file."""
    try:
        # A pipe of that name must hold up nobody.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, encoding="utf-8", errors="replace") as file:
            word = file.read(64).strip().lower()
    except OSError:
        return None
    return word if word in WORDS else ON
