"""Restoring one agent's memory from an archive, on a machine that may have nothing yet."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from thermocline.sync import restamped

from ..config.settings import Rules
from ..errors import translate_os
from ..files.walker import Skipped
from ..store import apply
from ..store.apply import rows_in
from ..store.kinds import kind_of
from . import archive
from .account import CREDENTIALS_FILE
from .archive import Manifest
from .join import RestoreRequest
from .staging import WORKSPACE, Staging, Target, locked, renewed

_AT_ONCE: Final = 2000


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What was restored."""

    agent: str  # by whose name it is restored
    folder: str  # where to
    set_aside: str | None  # where the previous memory is now; None if the place was empty
    archived: Manifest  # the manifest of the archive
    refused: int  # rows that this release cannot read, and left out
    # Of the archive, unpacked.
    files: int
    size_bytes: int
    skipped: tuple[Skipped, ...]  # what the workspace held and the archive does not


async def restore_file(
    file: Path,
    request: RestoreRequest,
    *,
    rules: Rules,
    say: Callable[[str], None],
    opened: Callable[[], BinaryIO] | None = None,
) -> Restored:
    """Restore an archive that `thermocline backup` wrote. Needs no daemon.

    Everything is read, checked and applied before it is moved into its place, all at once. However
    it is interrupted, the place is as it was, or the next start of the daemon finishes it.
    `opened` opens what is in a sealed one. Errors are those of `archive.read`,
    `Target.refuse_taken` and `locked`.
    """
    say(f"checking {file}")
    # The state folder may not be there yet.
    folders = (request.state_dir, *request.state_dir.absolute().parents)
    room = shutil.disk_usage(next(folder for folder in folders if folder.exists())).free
    contents = archive.read(file, room=room, opened=opened)
    # The files of the workspace come out of the archive.
    place = Target(request.state_dir, request.agent or contents.manifest.agent, (CREDENTIALS_FILE,))
    rows = sum(contents.manifest.counts.values())
    try:
        with locked(request.state_dir, f"a restore of {file}"):
            if not request.replace:
                place.refuse_taken()
            say(f"applying {rows:,} rows, {contents.size:,} bytes")
            refused, aside = await _restore(file, place, rules, opened)
    except OSError as error:
        if error.filename == str(file):
            raise
        raise translate_os(error, request.state_dir) from error
    return Restored(
        agent=place.agent,
        folder=str(place.folder),
        set_aside=None if aside is None else str(aside),
        archived=contents.manifest,
        refused=refused,
        files=len(contents.files),
        size_bytes=contents.size,
        skipped=contents.skipped,
    )


async def _restore(
    file: Path, place: Target, rules: Rules, opened: Callable[[], BinaryIO] | None
) -> tuple[int, Path | None]:
    staging = Staging(place.staged, device=renewed(place.state_dir), rules=rules)
    try:
        refused = await _unpack(file, staging, opened, place.agent)
        return refused, place.swap(place.free_name())
    finally:
        await staging.discard()
        await staging.close()


async def _unpack(
    file: Path, staging: Staging, opened: Callable[[], BinaryIO] | None, agent: str
) -> int:
    """Make a complete folder of an archive, durably; count the rows that were refused."""
    await staging.begin()
    manifest = archive.read(file, staging.folder, opened=opened).manifest
    lines, refused = staging.folder / archive.ROWS, 0
    with lines.open("rb") as content:
        rows = rows_in(content)
        while group := list(islice(rows, _AT_ONCE)):
            good = [row for row in group if row is not None]
            if agent != manifest.agent:
                # It never had the stamps of the archive's devices.
                good = [restamped(row, apply.IMPORT, (), kind_of(row.kind).sets) for row in good]
            applied = await staging.write(lambda tx, good=good: apply.apply(tx, good))  # type: ignore[misc]
            refused += len(group) - len(good) + applied.refused
    lines.unlink()
    workspace = staging.folder / archive.WORKSPACE
    if workspace.exists():
        workspace.rename(staging.folder / WORKSPACE)
    await staging.index()
    await staging.check()
    await staging.seal()
    return refused
