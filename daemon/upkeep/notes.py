"""Reads the daily notes of an agent safely."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from ..errors import Conflict, InvalidInput, TooLarge
from ..store import atomic

# EvoClaw's: `2026-02-11.md`, and also `2026-02-11-late.md`.
_NAME: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}).*\.md", re.DOTALL)


class Folder(msgspec.Struct, frozen=True):
    """A folder of notes; `label` identifies it even if it is moved."""

    label: str
    path: Path


class DailyNote(msgspec.Struct, frozen=True):
    """A note that was read.

    Attributes:
        key: its folder and name, which identify the note.
        day: the date at the beginning of its name.
        digest: the digest of its bytes.
    """

    key: str
    name: str
    day: date
    text: str
    digest: str


class Unread(msgspec.Struct, frozen=True):
    """A note that cannot be read, and why."""

    name: str
    why: str


Found: TypeAlias = DailyNote | Unread


def note_of(folders: Sequence[Folder], day: date, max_bytes: int) -> tuple[str, str] | None:
    """The path and the text of the note of a day, or None. Blocking.

    Raises:
        InvalidInput: it cannot be read.
    """
    found = list(read_notes(folders, day, 1, max_bytes))
    notes = [note for note in found if isinstance(note, DailyNote)]
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
) -> Iterator[Found]:
    """The notes of `days` days up to today, oldest first. Blocking; never raises.

    Links are not followed. A file that is not UTF-8 text, or larger than `max_bytes`, is returned
    as `Unread`.
    """
    first = today - timedelta(days=min(days, today.toordinal()) - 1)
    for folder in folders:
        try:
            if folder.path.is_symlink():
                yield Unread(folder.path.name, "it is a link")
                continue
            names = sorted(found.name for found in folder.path.iterdir())
        except FileNotFoundError:
            continue
        except OSError as error:
            yield Unread(folder.path.name, _reason(error))
            continue
        for name in names:
            day = _day_of(name)
            if day is not None and first <= day <= today:
                with suppress(FileNotFoundError):
                    yield _read(folder, name, day, max_bytes)


def _day_of(name: str) -> date | None:
    match = _NAME.fullmatch(name)
    if match is not None and name.isprintable():
        with suppress(ValueError):
            return date.fromisoformat(match[1])
    return None


def _read(folder: Folder, name: str, day: date, max_bytes: int) -> Found:
    path = folder.path / name
    try:
        content, _ = atomic.read(path, max_bytes, below=folder.path)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except TooLarge:
        return Unread(name, f"it is larger than {max_bytes // 1024} KB (ingest.max_note_kb)")
    except Conflict as error:
        return Unread(name, error.message.replace(f"cannot read {path}: '{name}'", "it"))
    except UnicodeDecodeError:
        return Unread(name, "it is not UTF-8 text")
    except OSError as error:
        return Unread(name, _reason(error))
    if "\0" in text:
        return Unread(name, "it is not text")
    return DailyNote(f"{folder.label}/{name}", name, day, text, hashlib.sha256(content).hexdigest())


def _reason(error: OSError) -> str:
    return (error.strerror or "it cannot be read").lower()
