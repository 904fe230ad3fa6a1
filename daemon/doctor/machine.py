"""The device itself: SQLite, disk, clock, the limits of the kernel."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Final

from ..store.database import connect_look
from ..store.settling import read_clock
from ..store.watched import paths
from .exam import Exam, Symptom

# STRICT tables.
_OLDEST_SQLITE: Final = (3, 37, 0)
_LITTLE_BYTES: Final = 500_000_000
_LEAST_BYTES: Final = 50_000_000
_LITTLE_FILES: Final = 10_000
_LEAST_FILES: Final = 200
_FIRST_YEAR: Final = 2025
_LAST_YEAR: Final = 2100
_JUMP_SECONDS: Final = 3600.0
_MOST_FOLDERS: Final = 200_000
_NOT_FOR_DATABASES: Final = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "vfat", "exfat"}
_GONE_AT_SHUTDOWN: Final = {"tmpfs", "ramfs"}


def sqlite(_: Exam) -> Iterator[Symptom]:
    """The SQLite that Python was built with has what the memory needs."""
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        yield Symptom("failure", f"SQLite {version} is too old", "install 3.37 or newer")
    try:
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    except sqlite3.Error:
        remedy = "use a Python whose SQLite has it, such as that of Debian or python.org"
        yield Symptom("failure", f"SQLite {version} has no full text search (FTS5)", remedy)
        return
    yield Symptom("ok", f"SQLite {version} with FTS5")


def disk(exam: Exam) -> Iterator[Symptom]:
    """There is free space, on a file system that keeps data."""
    place = _existing(exam.state_dir)
    kind = _file_system(exam.system("proc/mounts"), place)
    if kind in _NOT_FOR_DATABASES:
        remedy = "move it to a disk of this device: --state-dir, or StateDirectory= of the unit"
        yield Symptom("failure", f"{place} is on {kind}, where SQLite cannot lock safely", remedy)
    elif kind in _GONE_AT_SHUTDOWN:
        remedy = "name a folder on a disk with --state-dir"
        yield Symptom("warning", f"{place} is on {kind}: all is lost at shutdown", remedy)
    found = os.statvfs(place)
    free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    text = f"{free / 1e9:.1f} of {total / 1e9:.1f} GB are free at {place}"
    yield from _room(free, _LITTLE_BYTES, _LEAST_BYTES, text)
    # Some file systems, such as btrfs, have no fixed number of files.
    if found.f_files:
        text = f"{found.f_favail:,} more files can be made at {place}"
        yield from _room(found.f_favail, _LITTLE_FILES, _LEAST_FILES, text)
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        remedy = "mount it for writing; look into the kernel's log for errors of the disk"
        yield Symptom("failure", f"{place} is mounted read-only", remedy)


def _room(free: int, little: int, least: int, text: str) -> Iterator[Symptom]:
    if free >= little:
        yield Symptom("ok", text)
        return
    remedy = "make room on that disk; without it reads go on, and writes are refused"
    yield Symptom("warning" if free >= least else "failure", f"only {text}", remedy)


def clock(exam: Exam) -> Iterator[Symptom]:
    """The clock is plausible, and has not been set back since the newest memory."""
    year = time.gmtime(exam.now).tm_year
    sync = "set the clock, and let it be kept: timedatectl set-ntp true"
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        yield Symptom("failure", f"the clock says that it is the year {year}", sync)
        return
    for agent, path in exam.agents():
        newest = 0.0
        with suppress(sqlite3.Error, OSError), closing(connect_look(path)) as db:
            newest = (read_clock(db)[0] >> 16) / 1000
        if newest > exam.now + _JUMP_SECONDS:
            hours = (newest - exam.now) / 3600
            text = f"the clock is {hours:,.0f} h behind the newest change of '{agent}'"
            yield Symptom("warning", text, f"{sync}; nothing is lost meanwhile")
            return
    yield Symptom("ok", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(exam.now)))


def inotify(exam: Exam) -> Iterator[Symptom]:
    """The kernel lets the daemon watch all watched folders."""
    limits = exam.system("proc/sys/fs/inotify")
    try:
        watches = int((limits / "max_user_watches").read_text())
        instances = int((limits / "max_user_instances").read_text())
    except (OSError, ValueError):
        yield Symptom("warning", "the limits of inotify cannot be read", "changes are polled")
        return
    folders = sum(1 for path in watched(exam) for _ in islice(os.walk(path), _MOST_FOLDERS))
    if folders > watches * 0.8:
        wanted = max(2 * folders, 65_536)
        yield Symptom(
            "warning",
            f"{folders:,} folders are to be watched, and the kernel allows {watches:,}",
            f"put fs.inotify.max_user_watches={wanted} into /etc/sysctl.d/50-thermocline.conf",
        )
    elif instances < 8:
        yield Symptom(
            "warning",
            f"the kernel allows only {instances} watchers for each user",
            "put fs.inotify.max_user_instances=128 into /etc/sysctl.d/50-thermocline.conf",
        )
    else:
        yield Symptom("ok", f"{folders:,} folders to watch, {watches:,} allowed")


def watched(exam: Exam) -> list[Path]:
    """Every folder and file that some agent watches, beside those in the state folder."""
    found: dict[str, None] = {}
    if exam.settings is not None:
        for folder in exam.settings.agents.values():
            named = (*folder.paths, *([folder.workspace] if folder.workspace else []))
            found.update(dict.fromkeys(named))
    for _, path in exam.agents():
        # What is wrong with a database is said by another check.
        with suppress(sqlite3.Error, OSError), closing(connect_look(path)) as db:
            found.update(dict.fromkeys(paths(db)))
    return [Path(path) for path in found]


def _existing(path: Path) -> Path:
    """The path itself, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _file_system(mounts: Path, path: Path) -> str:
    """The kind of the file system that a path is on, as the kernel calls it."""
    place, kind = path.resolve(), ""
    longest = -1
    with suppress(OSError):
        for line in mounts.read_text(errors="replace").splitlines():
            _, on, name, *_ = line.split(" ")
            folder = Path(on.replace("\\040", " "))
            if place.is_relative_to(folder) and len(folder.parts) >= longest:
                longest, kind = len(folder.parts), name
    return kind
