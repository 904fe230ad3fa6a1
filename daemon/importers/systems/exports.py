"""The conversations in an export: a zip, its folder, or the file in it."""

from __future__ import annotations

import contextlib
import re
import zipfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from ..found import GivenPath, open_file
from ..json_stream import CutOff, elements
from ..values import reason

_FILES: Final = re.compile(r"conversations(?:-\d+)?\.json")
_ZIP: Final = b"PK\x03\x04"
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
# The place of its file, its number there, and its fields.
Conversation: TypeAlias = tuple[str, int, dict[str, Any]]
# More than any export has: a larger one is an attack.
_MOST_BYTES: Final = 32 << 30


def conversations(look: GivenPath) -> Generator[Conversation, None, None]:
    """Each conversation with the place of its file and its number there.

    A member of a zip is read as a stream, and never written anywhere, whatever its name.
    """
    if look.head.startswith(_ZIP):
        yield from _zipped(look)
        return
    for path in _paths(look):
        try:
            with open_file(path, path.parent) as file:
                yield from _listed(look, file, str(path))
        except OSError as error:
            look.fault(path, reason(error, path))


def begins_with(look: GivenPath, field: str) -> bool:
    """Whether the first conversation has a field."""
    if not look.is_folder and not look.head.startswith((_ZIP, b"[", b"\xef\xbb\xbf[", b" ", b"\n")):
        return False
    with contextlib.closing(conversations(look)) as found:
        first = next(found, None)
    return first is not None and field in first[2]


def others_in(look: GivenPath) -> list[str]:
    """The names of the other files of an export."""
    if look.head.startswith(_ZIP):
        with contextlib.suppress(*_DAMAGED, OSError), zipfile.ZipFile(look.path) as archive:
            return [name.rsplit("/", 1)[-1] for name in archive.namelist()]
    return [one.name for one in look.path.iterdir()] if look.is_folder else []


def _paths(look: GivenPath) -> list[Path]:
    if not look.is_folder:
        return [look.path]
    return sorted(one for one in look.path.iterdir() if _FILES.fullmatch(one.name))


def _zipped(look: GivenPath) -> Iterator[Conversation]:
    path = look.path
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename.rsplit("/", 1)[-1]
                if not _FILES.fullmatch(name):
                    continue
                if member.file_size > _MOST_BYTES:
                    look.fault(f"{path}: {name}", f"unpacks to {member.file_size:,} bytes")
                    continue
                with archive.open(member) as file:
                    yield from _listed(look, file, f"{path}: {name}")  # type: ignore[arg-type]
    except (*_DAMAGED, OSError) as error:
        look.fault(path, f"the zip is damaged ({error})")


def _listed(look: GivenPath, file: BinaryIO, place: str) -> Iterator[Conversation]:
    number = 0
    try:
        for number, one in enumerate(elements(file), 1):
            if isinstance(one, dict):
                yield place, number, one
            else:
                look.fault(place, f"conversation {number} is not an object")
    except CutOff as error:
        look.fault(place, str(error))
    except _DAMAGED as error:
        look.fault(place, f"damaged after {number} conversations ({error})")
