"""Restoring one agent's memory from an archive, on a machine that may have nothing yet."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from ..errors import StoreDamaged
from ..store import atomic
from ..store.archive import Archive, unpack, verify
from ..store.database import FILE_NAME, translate_os
from ..store.tar_blocks import Member
from ..store.workspace_files import Skipped
from .database import check_database
from .place import RestorePlace

# Times beyond this no file system keeps; it is in the year 2446.
_LATEST: Final = 15_000_000_000
_ANOTHER: Final = "take another backup"


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What was restored, or with `dry_run` would be.

    Attributes:
        agent: by whose name it is restored.
        folder: where to.
        set_aside: where what was there before is now; None where there was nothing.
        archived_agent, device, made_at: whose it was, on which device and when.
        counts: how many things of each kind.
        files, size_bytes: of the archive, unpacked.
        skipped: what the archive left out when it was made.
        workspace: the folder elsewhere that was its workspace, if there was one. The notes in
            it are restored to `memory/` in the agent's own folder.
    """

    agent: str
    folder: str
    set_aside: str | None
    archived_agent: str
    device: str
    made_at: float
    counts: dict[str, int]
    files: int
    size_bytes: int
    skipped: tuple[Skipped, ...]
    workspace: str | None
    dry_run: bool


def restore_file(
    file: Path,
    state_dir: Path,
    agent: str | None,
    *,
    replace: bool,
    dry_run: bool,
    tell: Callable[[str], None],
) -> Restored:
    """Restore an archive that `thermocline backup` wrote. Needs no daemon. Blocking.

    Everything is read and checked before it is moved into its place, all at once. Whenever it is
    interrupted, the place is as it was, or empty with what was there set aside; it can then be
    run again.

    Args:
        file: the archive.
        state_dir: where the daemon keeps its memories; made, if it is not there.
        agent: whose memory it becomes; None: whose it was.
        replace: set aside what is there, instead of refusing.
        dry_run: check all of it, and change nothing. A daemon may run meanwhile.
        tell: given a line for people at each step.

    Raises:
        InvalidInput: it is no archive of ours, or the agent's id is none.
        StoreDamaged: it is cut off, or not what was written.
        Conflict: a later release wrote it, or the place is not empty.
        AlreadyRunning: a daemon runs in the state folder.
        DiskFull, ReadOnly: the disk refuses.
        OSError: the archive cannot be read.
    """
    tell(f"checking {file}")
    archive = verify(file, room=_room(state_dir))
    place = RestorePlace(state_dir, archive.manifest.agent if agent is None else agent)
    if dry_run:
        place.refuse_taken(replace=replace)
        _rehearse(file, archive, state_dir, tell)
        return _summary(place, archive, None, dry_run=True)
    try:
        with place.locked(f"a restore of {file}"):
            place.refuse_taken(replace=replace)
            aside = _restore(file, archive, place, tell)
    except OSError as error:
        if error.filename == str(file):
            raise
        raise translate_os(error, state_dir) from error
    return _summary(place, archive, aside, dry_run=False)


def _restore(
    file: Path, archive: Archive, place: RestorePlace, tell: Callable[[str], None]
) -> Path | None:
    with place.staging() as staging:
        tell(f"unpacking {len(archive.files):,} files, {archive.size:,} bytes")
        unpack(file, archive, lambda member, content: _put(staging, member, content))
        tell("checking the database")
        _check(file, archive, staging)
        _settle(staging, place)
        return place.move_in(staging)


def _rehearse(file: Path, archive: Archive, state_dir: Path, tell: Callable[[str], None]) -> None:
    """Check the database as well, in a folder that goes again."""
    parent = state_dir if os.access(state_dir, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=parent) as folder:

        def put(member: Member, content: Iterator[bytes]) -> None:
            if member.name == FILE_NAME:
                _put(Path(folder), member, content)
            else:
                for _ in content:
                    pass

        tell("checking the database")
        unpack(file, archive, put)
        _check(file, archive, Path(folder))


def _check(file: Path, archive: Archive, folder: Path) -> None:
    try:
        check_database(folder / FILE_NAME, archive.manifest.counts)
    except StoreDamaged as error:
        why = " ".join(error.message.split())
        raise StoreDamaged(
            f"cannot use {file}: its database is not sound ({why})", hint=_ANOTHER
        ) from error
    # Looking at a database may leave an empty log beside it.
    for beside in folder.glob(f"{FILE_NAME}-*"):
        beside.unlink()


def _put(folder: Path, member: Member, content: Iterator[bytes]) -> None:
    """Write one file, durably. Its path leads nowhere but downwards: the archive's reader saw."""
    path = folder / member.name
    mode = 0o600 | (member.mode & 0o100)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreDamaged(
            f"cannot unpack {member.name!r}: it stands where another file of the archive stands",
            hint=_ANOTHER,
        ) from error
    with os.fdopen(handle, "wb") as out:
        for piece in content:
            out.write(piece)
        out.flush()
        when = min(member.mtime, _LATEST)
        os.utime(out.fileno(), (when, when))
        os.fsync(out.fileno())


def _settle(staging: Path, place: RestorePlace) -> None:
    """Make every name durable, and everything its who owns the place."""
    for path, _, names in os.walk(staging, topdown=False):
        for name in names:
            place.give(Path(path, name))
        Path(path).chmod(0o700)
        place.give(Path(path))
        atomic.sync_folder(Path(path))


def _room(state_dir: Path) -> int:
    """The bytes that are free where the state folder is, or will be."""
    there = next(path for path in (state_dir, *state_dir.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free


def _summary(
    place: RestorePlace, archive: Archive, aside: Path | None, *, dry_run: bool
) -> Restored:
    manifest = archive.manifest
    return Restored(
        agent=place.agent,
        folder=str(place.folder),
        set_aside=None if aside is None else str(aside),
        archived_agent=manifest.agent,
        device=manifest.device,
        made_at=manifest.made_at,
        counts=manifest.counts,
        files=len(archive.files),
        size_bytes=archive.size,
        skipped=archive.skipped,
        workspace=manifest.workspace,
        dry_run=dry_run,
    )
