"""The project of a folder, and whether agents that work there have this memory.

A file `.thermocline` in the project's folder says so in one word. It may come with somebody else's
code, so that it can switch the memory off or keep the project apart, and name no other agent: the
agent of a project that is kept apart follows from its folder and a secret of the user.
"""

from __future__ import annotations

import os
import re

from .places import user_state_dir

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
# An agent's id has up to 64 characters, 32 of which are the digest.
_AGENT_NAME_CHARS: Final = 30
_DIGEST_BYTES: Final = 16
_KEY_BYTES: Final = 32
_MOST_LEVELS: Final = 64


class Project:
    """A project: its folder, and what its file says; without one `on`, with another word `off`."""

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
        """The agent that only this project has; None: it has none of its own.

        Raises:
            OSError: the user's secret can be neither read nor made.
        """
        if self.word != OWN:
            return None
        from hashlib import blake2b  # noqa: PLC0415 - few projects need it

        digest = blake2b(os.fsencode(self.root), digest_size=_DIGEST_BYTES, key=_key())
        return f"{self.name[:_AGENT_NAME_CHARS]}-{digest.hexdigest()}"


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
    """Write the file of the project that a folder belongs to; a link of that name is replaced.

    Raises:
        OSError: it cannot be written.
    """
    project = Project(project_of(folder).root, word)
    path = os.path.join(project.root, FILE)
    if word == ON:
        if os.path.lexists(path):
            os.unlink(path)
        return project
    _write(path, f"{word}\n".encode(), 0o644)
    return project


def _write(path: str, content: bytes, mode: int) -> None:
    new = f"{path}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(new, flags, mode)
        try:
            with open(handle, "wb") as file:
                file.write(content)
            os.replace(new, path)
        except BaseException:
            os.unlink(new)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def _key() -> bytes:
    """The user's secret, made when it is first needed."""
    folder = user_state_dir(os.environ)
    path = os.path.join(folder, "project.key")
    try:
        return _read_key(path)
    except FileNotFoundError:
        os.makedirs(folder, 0o700, exist_ok=True)
    new = f"{path}.{os.urandom(8).hex()}"
    _write(new, os.urandom(_KEY_BYTES), 0o600)
    try:
        # Of two that make it at once, the first is the one for both.
        os.link(new, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(new)
    return _read_key(path)


def _read_key(path: str) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:
        key = file.read(_KEY_BYTES + 1)
    if len(key) != _KEY_BYTES:
        raise OSError(f"cannot use {path}: it is not {_KEY_BYTES} bytes; remove it")
    return key


def _word(path: str) -> str | None:
    """The word in a file, `off` if it may not be read; None where there is no such file."""
    try:
        # A pipe of that name must hold up nobody.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, encoding="utf-8", errors="replace") as file:
            word = file.read(64).strip().lower()
    except PermissionError:
        return OFF
    except OSError:
        return None
    return word if word in WORDS else OFF
