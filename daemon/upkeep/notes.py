"""The daily notes of an agent, read so that none of them can do harm."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from ..errors import InvalidInput

# EvoClaw's: `2026-02-11.md`, and also `2026-02-11-late.md`.
_NAME: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}).*\.md", re.DOTALL)
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A link could lead to any file of the daemon's user, and a pipe would hold up its reader.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Folder(msgspec.Struct, frozen=True):
    """Where notes are; `label` tells two such places apart, wherever they are moved."""

    label: str
    path: Path


class Note(msgspec.Struct, frozen=True):
    """A note that was read.

    Attributes:
        key: its place and name, the same as long as it is this note.
        day: the one that its name begins with.
        digest: of its bytes.
    """

    key: str
    name: str
    day: date
    text: str
    digest: str


class Unread(msgspec.Struct, frozen=True):
    """A note that is not read, and why not."""

    name: str
    why: str


Found: TypeAlias = Note | Unread


def note_of(folders: Sequence[Folder], day: date, max_bytes: int) -> tuple[str, str] | None:
    """The path and the text of the note of a day, if there is one. Blocking.

    Raises:
        InvalidInput: there is one, but it is not read.
    """
    found = list(read_notes(folders, day, 1, max_bytes))
    notes = [note for note in found if isinstance(note, Note)]
    if notes:
        note = min(notes, key=lambda note: note.name != f"{day}.md")
        folder = next(folder for folder in folders if note.key.startswith(f"{folder.label}/"))
        return str(folder.path / note.name), note.text
    for unread in found:
        if isinstance(unread, Unread):
            raise InvalidInput(f"cannot read {unread.name}: {unread.why}", field="file")
    return None


def read_notes(
    folders: Sequence[Folder], today: date, days: int, max_bytes: int
) -> Generator[Found, None, None]:
    """The notes of `days` days up to today, the oldest first. Blocking; never raises.

    Links are not followed. A file that is no UTF-8 text, or larger than `max_bytes`, is named
    and left alone.
    """
    first = today - timedelta(days=min(days, today.toordinal()) - 1)
    for folder in folders:
        try:
            handle = os.open(folder.path, _FOLDER)
        except FileNotFoundError:
            continue
        except OSError as error:
            why = "it is a link" if folder.path.is_symlink() else _reason(error)
            yield Unread(folder.path.name, why)
            continue
        try:
            yield from _read_folder(handle, folder, first, today, max_bytes)
        finally:
            os.close(handle)


def _read_folder(
    handle: int, folder: Folder, first: date, today: date, max_bytes: int
) -> Iterator[Found]:
    try:
        names = sorted(os.listdir(handle))
    except OSError as error:
        yield Unread(folder.path.name, _reason(error))
        return
    for name in names:
        day = _day_of(name)
        if day is not None and first <= day <= today:
            found = _read(handle, name, day, folder.label, max_bytes)
            if found is not None:
                yield found


def _day_of(name: str) -> date | None:
    match = _NAME.fullmatch(name)
    if match is not None and name.isprintable():
        with suppress(ValueError):
            return date.fromisoformat(match[1])
    return None


class _Unreadable(Exception):
    """A file that is not read; its only argument says why."""


def _read(folder: int, name: str, day: date, label: str, max_bytes: int) -> Found | None:
    try:
        content = _content(folder, name, max_bytes)
        text = _text(content)
    except FileNotFoundError:
        return None
    except _Unreadable as error:
        return Unread(name, str(error))
    except OSError as error:
        return Unread(name, "it is a link" if _is_link(name, folder) else _reason(error))
    return Note(f"{label}/{name}", name, day, text, hashlib.sha256(content).hexdigest())


def _content(folder: int, name: str, max_bytes: int) -> bytes:
    handle = os.open(name, _FILE, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _Unreadable("it is no regular file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise _Unreadable(f"it is larger than {max_bytes // 1024} KB (ingest.max_note_kb)")
    return content


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Unreadable("it is no UTF-8 text") from error
    if "\0" in text:
        raise _Unreadable("it is no text")
    return text


def _is_link(name: str, folder: int) -> bool:
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False


def _reason(error: OSError) -> str:
    return (error.strerror or "it cannot be read").lower()
