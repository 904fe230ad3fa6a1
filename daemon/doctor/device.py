"""The device: SQLite, disk, clock, kernel; the state folder, its databases, watched files."""

from __future__ import annotations

import errno
import os
import pwd
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Final

from ..client.wording import size
from ..runtime.problems import first_names
from ..store.database.connection import lost_words
from ..store.database.memory_database import connect_look
from ..store.database.meta import read_clock
from ..store.database.schema import MIGRATIONS
from ..store.records.watched import paths
from .context import UNIT, CheckResult, DeviceContext, failure, ok, warning

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
_ASIDE: Final = re.compile(r"\.(corrupt|too-large|changed|before-restore|v\d+)-\d{8}T\d{6}")
_NAMED: Final = 5


def sqlite(_: DeviceContext) -> Iterator[CheckResult]:
    """The SQLite that Python was built with has what the memory needs."""
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        yield failure(f"SQLite {version} is too old", "install 3.37 or newer")
    try:
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    except sqlite3.Error:
        fix = "use a Python whose SQLite has it, such as that of Debian or python.org"
        yield failure(f"SQLite {version} has no full text search (FTS5)", fix)
        return
    yield ok(f"SQLite {version} with FTS5")


def disk(context: DeviceContext) -> Iterator[CheckResult]:
    """There is free space, on a file system that keeps data."""
    folders = (context.state_dir, *context.state_dir.parents)
    place = next(folder for folder in folders if folder.exists())
    kind = _file_system(context.system("proc/mounts"), place)
    if kind in _NOT_FOR_DATABASES:
        fix = "move it to a disk of this device: --state-dir, or StateDirectory= of the unit"
        yield failure(f"{place} is on {kind}, where SQLite cannot lock safely", fix)
    elif kind in {"tmpfs", "ramfs"}:
        fix = "name a folder on a disk with --state-dir"
        yield warning(f"{place} is on {kind}: all is lost at shutdown", fix)
    space = os.statvfs(place)
    free, total = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    text = f"{size(free)} of {size(total)} are free at {place}"
    yield from _room(free, _LITTLE_BYTES, _LEAST_BYTES, text)
    # Some file systems, such as btrfs, have no fixed number of files.
    if space.f_files:
        text = f"{space.f_favail:,} more files can be made at {place}"
        yield from _room(space.f_favail, _LITTLE_FILES, _LEAST_FILES, text)
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        fix = "mount it for writing; look into the kernel's log for errors of the disk"
        yield failure(f"{place} is mounted read-only", fix)


def _room(free: int, little: int, least: int, text: str) -> Iterator[CheckResult]:
    if free >= little:
        yield ok(text)
        return
    fix = "make room on that disk; without it reads go on, and writes are refused"
    yield CheckResult("warning" if free >= least else "failure", f"only {text}", fix)


def clock(context: DeviceContext) -> Iterator[CheckResult]:
    """The clock is plausible, and has not been set back since the newest memory."""
    year = time.gmtime(context.now).tm_year
    sync = "set the clock, and have it synchronised: timedatectl set-ntp true"
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        yield failure(f"the clock says that it is the year {year}", sync)
        return
    for agent, path in context.agents():
        newest = 0.0
        with suppress(sqlite3.Error, OSError), closing(connect_look(path)) as db:
            newest = (read_clock(db)[0] >> 16) / 1000
        if newest > context.now + _JUMP_SECONDS:
            hours = (newest - context.now) / 3600
            text = f"the clock is {hours:,.0f} h behind the newest change of '{agent}'"
            right = "if it is right, it was ahead when that was stored"
            yield warning(text, f"{sync}; {right}; nothing is lost either way")
            return
    yield ok(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(context.now)))


def inotify(context: DeviceContext) -> Iterator[CheckResult]:
    """The kernel lets the daemon watch all watched folders."""
    limits = context.system("proc/sys/fs/inotify")
    try:
        watches = int((limits / "max_user_watches").read_text())
        instances = int((limits / "max_user_instances").read_text())
    except (OSError, ValueError):
        yield warning("the limits of inotify cannot be read", "changes are polled")
        return
    folders = sum(1 for path in watched(context) for _ in islice(os.walk(path), _MOST_FOLDERS))
    if folders > watches * 0.8:
        wanted = max(2 * folders, 65_536)
        yield warning(
            f"{folders:,} folders are to be watched, and the kernel allows {watches:,}",
            f"put fs.inotify.max_user_watches={wanted} into /etc/sysctl.d/50-thermocline.conf",
        )
    elif instances < 8:
        yield warning(
            f"the kernel allows only {instances} watchers for each user",
            "put fs.inotify.max_user_instances=128 into /etc/sysctl.d/50-thermocline.conf",
        )
    else:
        yield ok(f"{folders:,} folders to watch, {watches:,} allowed")


def watched(context: DeviceContext) -> list[Path]:
    """Every folder and file that some agent watches, beside those in the state folder."""
    watched_paths: dict[str, None] = {}
    if context.settings is not None:
        for folder in context.settings.agents.values():
            named = (*folder.paths, *([folder.workspace] if folder.workspace else []))
            watched_paths.update(dict.fromkeys(named))
    for _, path in context.agents():
        # What is wrong with a database is said by another check.
        with suppress(sqlite3.Error, OSError), closing(connect_look(path)) as db:
            watched_paths.update(dict.fromkeys(paths(db)))
    return [Path(path) for path in watched_paths]


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


def permissions(context: DeviceContext) -> Iterator[CheckResult]:
    """Only the daemon's user can read the memories, and that user can write all of them."""
    top = context.state_dir
    if not top.exists():
        yield ok(f"{top} does not exist yet; the daemon makes it")
        return
    owner_status = top.stat()
    if owner_status.st_mode & 0o077:
        text = f"other users may enter {top} (mode {stat.S_IMODE(owner_status.st_mode):o})"
        yield warning(text, f"chmod 700 {top}")
    # Of the folder and of each agent, without those in the folders below.
    near = [path for pattern in ("*", "agents/*", "agents/*/*") for path in top.glob(pattern)]
    strange = [path for path in near if path.lstat().st_uid != owner_status.st_uid]
    if strange:
        owner, names = _user(owner_status.st_uid), first_names([*map(str, strange)], _NAMED)
        text = f"not {owner}'s, whose daemon cannot write them: {names}"
        yield failure(text, f"chown -R {owner}: {top}")
    elif os.getuid() not in (0, owner_status.st_uid):
        text = f"{top} is {_user(owner_status.st_uid)}'s: what is in it was not looked at"
        yield warning(text, "run it as that user, or with sudo")
    elif closed := [path for path in (top, *near) if _is_closed(path)]:
        names = first_names([*map(str, closed)], _NAMED)
        yield failure(f"cannot be read and written: {names}", f"chmod -R u+rwX {top}")
    else:
        yield ok(f"{top} is {_user(owner_status.st_uid)}'s")


def _is_closed(path: Path) -> bool:
    """Whether a folder or a part of a database cannot be read and written."""
    if path.is_dir():
        return not os.access(path, os.R_OK | os.W_OK | os.X_OK)
    return ".db" in path.name and not os.access(path, os.R_OK | os.W_OK)


def integrity(context: DeviceContext) -> Iterator[CheckResult]:
    """Every agent's database is sound; nothing is written or locked."""
    newest, sound = MIGRATIONS[-1].version, 0
    for agent, path in context.agents():
        for file in (path, *path.parent.glob(f"{path.name}-*")):
            if not os.access(file, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), file)
        schema, faults = _inspect(path)
        if faults != ["ok"]:
            # A daemon may have opened the database in between.
            schema, faults = _inspect(path)
        if schema > newest:
            text = f"a later release wrote the memory of '{agent}' (schema {schema}, not {newest})"
            yield failure(text, "install that release again, or a later one")
        elif faults != ["ok"]:
            yield failure(
                f"the database of '{agent}' is damaged: {'; '.join(faults)}",
                "restart the daemon: it sets the file aside and rebuilds all that can be read;"
                f" `thermocline restore --agent-id {agent}` brings the rest from the replica",
            )
        else:
            sound += 1
    yield ok(f"{sound} sound" if sound else "no agent has a memory yet")


def _inspect(path: Path) -> tuple[int, list[str]]:
    try:
        with closing(connect_look(path)) as db:
            schema = int(db.execute("PRAGMA user_version").fetchone()[0])
            faults = [str(text) for (text,) in db.execute("PRAGMA integrity_check(3)")]
            lost = lost_words(db) if faults == ["ok"] else ""
            return schema, [f"'{lost}' has lost words"] if lost else faults
    except sqlite3.Error as error:
        return 0, [str(error)]


def set_aside(context: DeviceContext) -> Iterator[CheckResult]:
    """Damaged, foreign or replaced files that were set aside for a person to look at."""
    agents = context.state_dir / "agents"
    places = (context.state_dir, agents, *agents.glob("*"))
    left = [path for place in places for path in place.glob("*") if _ASIDE.search(path.name)]
    if left:
        files = [file for path in left for file in (path.rglob("*") if path.is_dir() else [path])]
        size = sum(file.lstat().st_size for file in files) / 1e6
        names = first_names([*map(str, left)], _NAMED)
        text = f"{len(left)} set aside ({size:,.1f} MB): {names}"
        yield warning(text, "look into them, then delete them")
    else:
        yield ok("nothing was set aside")


def watched_files(context: DeviceContext) -> Iterator[CheckResult]:
    """The daemon can read the files that it watches."""
    count = 0
    unit = context.system(UNIT)
    drops = "".join(
        drop.read_text(errors="replace") for drop in unit.with_suffix(".service.d").glob("*.conf")
    )
    for path in watched(context):
        count += 1
        sandboxed = unit.exists() and path.is_relative_to("/home")
        if not path.exists():
            fix = f"bring it back, or `thermocline index remove {path}`"
            yield warning(f"{path} is not there", fix)
        elif sandboxed and not any(str(folder) in drops for folder in (path, *path.parents[:-2])):
            text = f"the service's sandbox hides {path}"
            yield warning(text, "name it in a drop-in: see the example watch-home.conf")
    yield ok(f"{count} beside the agents' own")


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
