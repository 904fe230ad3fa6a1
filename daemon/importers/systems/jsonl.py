"""Thermocline's own formats: rows in lines of JSON, as in an export, and backup archives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from ...errors import ThermoclineError
from .. import state_files
from ..found import Document, GivenPath, open_file
from ..values import reason

NAME: Final = "jsonl"
_GZIP: Final = b"\x1f\x8b"
_LINES: Final = 1_000
_BYTES: Final = 400_000
_LONGEST: Final = 16_777_216


def detect(look: GivenPath) -> bool:
    """Whether the first lines are rows, or it is an archive."""
    whole = len(look.head) == look.stat.st_size
    return look.head.startswith(_GZIP) or state_files.are_rows(look.head, whole=whole)


def read(look: GivenPath) -> Iterator[Document]:
    """The lines in parts; those of an archive after all its checksums were verified."""
    try:
        if not look.head.startswith(_GZIP):
            with open_file(look.path, look.path.parent) as file:
                yield from _parts(look.path, file)
            return
        from ...restore import archive  # noqa: PLC0415 - only archives need it

        with tempfile.TemporaryDirectory(prefix="thermocline-import-") as folder:
            found = archive.read(look.path, Path(folder))
            with (Path(folder) / archive.ROWS).open("rb") as file:
                yield from _parts(look.path, file)
        prefix = f"{archive.WORKSPACE}/"
        if files := sum(entry.path.startswith(prefix) for entry in found.files):
            look.fault(look.path, f"{files} files of its workspace")
    except (OSError, ThermoclineError) as error:
        look.fault(look.path, reason(error, look.path))


def _parts(path: Path, file: BinaryIO) -> Iterator[Document]:
    lines: list[bytes] = []
    size = 0
    while line := file.readline(_LONGEST):
        lines.append(line)
        size += len(line)
        if size > _BYTES or len(lines) >= _LINES:
            yield Document(path, b"".join(lines), 0.0, "rows")
            lines, size = [], 0
    if lines:
        yield Document(path, b"".join(lines), 0.0, "rows")
